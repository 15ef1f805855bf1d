// Package howto runs the how-to guides with the clients that they name. Start with TestPages.
package howto

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/pages"
	"github.com/nameplane/nameplane/test/server"
)

const (
	root  = "../.."
	dir   = "docs/how-to"
	index = dir + "/README.md"
)

// programs are the programs that the pages run.
var programs = need.Programs{
	"curl": "curl", "dig": "bind9-dnsutils", "ip": "iproute2", "jq": "jq", "openssl": "openssl",
	"unshare": "util-linux", "named": "bind9", "knotd": "knot", "nsd": "nsd", "pdns_server": "pdns-server",
	"sqlite3": "sqlite3", "lego": "lego", "pebble": "pebble", "certbot": "certbot", "nsupdate": "bind9-dnsutils",
	"openstack": "python3-openstackclient", "python3": "python3", "ansible-playbook": "ansible",
	"kea-dhcp4": "kea-dhcp4-server", "kea-dhcp-ddns": "kea-dhcp-ddns-server", "perfdhcp": "kea-admin",
	"prometheus": "prometheus", "systemd-analyze": "systemd", "buildah": "buildah",
}

// elsewhere names the pages that need a cluster, each with the test that runs its shell blocks.
var elsewhere = map[string]string{"kubernetes": "kubernetes/test/deploy.TestHowTo",
	"watch-hostnames": "kubernetes/test/deploy.TestWatchHostnames"}

// built names the pages whose clients Debian does not have, and these clients. They take minutes to build, so that only
// `make test-all` builds them and runs TestBuiltPages. The lego of Debian 12 has no provider designate.
var built = map[string][]string{
	"certificates-lego-designate": {"lego"},
	"dnscontrol":                  {"dnscontrol"},
	"opentofu":                    {"tofu", "terraform-provider-openstack"},
}

// TestPages runs every page whose clients are packages of Debian.
func TestPages(t *testing.T) {
	need.OrFail(t, programs)
	for _, page := range list(t) {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if built[name] != nil || elsewhere[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, ran := script(t, page)
			if ran == 0 {
				t.Fatalf("%s has no shell block", page)
			}
			runPage(t, page, script)
		})
	}
}

// script returns the shell blocks of a page as one script, after the block of the index that starts the server. It also
// returns their number.
func script(t *testing.T, page string) (text string, blocks int) {
	t.Helper()
	var b strings.Builder
	b.WriteString(pages.Prologue)
	b.WriteString(startBlock(t).Shell())
	for _, block := range pages.Blocks(t, root, page) {
		if block.Lang == "sh" {
			b.WriteString(block.Shell())
			blocks++
		}
	}
	return b.String(), blocks
}

// runPage runs the script of a page in a clone of its own that has bin/nameplane.
func runPage(t *testing.T, page, script string) {
	t.Helper()
	work := folder(t)
	if out, err := pages.Run(t, work, script); err != nil {
		log, _ := os.ReadFile(filepath.Join(work, "server.log"))
		t.Fatalf("%s: %v\n%s\nthe log of the server:\n%s", page, err, out, log)
	}
}

// startBlock returns the block of the index that starts the server, with the command of `make run`.
func startBlock(t *testing.T) pages.Block {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	run := regexp.MustCompile(`(?m)^run: .*\n\t(.*)$`).FindSubmatch(makefile)
	for _, b := range pages.Blocks(t, root, index) {
		if b.Lang == "sh" {
			if run == nil || !strings.HasPrefix(b.Text, string(run[1])+" ") {
				t.Fatalf("%s does not start the server as `make run` does, with %q:\n%s", index, run, b.Text)
			}
			return b
		}
	}
	t.Fatalf("%s has no shell block that starts the server", index)
	return pages.Block{}
}

// folder returns a new folder with the program and what a reader has in a clone of the repository.
func folder(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	// The server, and some of the clients, become another user than root and must reach the folder.
	if err := os.Chmod(filepath.Dir(work), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(work, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(server.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "bin", "nameplane"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	pages.Clone(t, root, work)
	return work
}

// list returns the pages other than the index.
func list(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if page := dir + "/" + filepath.Base(file); page != index {
			out = append(out, page)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no pages", dir)
	}
	return out
}

// TestIndex checks that the index lists every page once, and that every page has the parts that readers expect.
func TestIndex(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(root, index))
	if err != nil {
		t.Fatal(err)
	}
	for page, test := range elsewhere {
		dir, name, _ := strings.Cut(test, ".")
		b, err := os.ReadFile(filepath.Join(root, dir, "howto_test.go"))
		if err != nil || !strings.Contains(string(b), "func "+name+"(") {
			t.Errorf("%s is said to be run by %s: %v", page, test, err)
		}
	}
	for _, page := range list(t) {
		link := "](" + filepath.Base(page) + ") |\n"
		if n := strings.Count(string(table), link); n != 1 {
			t.Errorf("%s links to %s in %d rows of its table, want 1", index, page, n)
		}
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, title := range []string{"What you need", "Steps", "Check the result", "When it fails"} {
			if !strings.Contains(string(text), "\n## "+title+"\n") {
				t.Errorf("%s has no section %q", page, title)
			}
		}
		_, check, _ := strings.Cut(string(text), "\n## Check the result\n")
		check, _, _ = strings.Cut(check, "\n## ")
		if !strings.Contains(check, "\n```sh\n") {
			t.Errorf("%s has no shell block that checks the result", page)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if n := len([]rune(line)); n > 120 {
				t.Errorf("%s:%d has %d columns, more than 120", page, i+1, n)
			}
		}
	}
}

// Package pages reads the code blocks of Markdown pages and runs their shell blocks, for the suites that keep the
// documentation true. Start with Blocks and Run.
package pages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Block is one fenced code block of a page.
type Block struct {
	Page, Lang, Text string
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// Blocks returns the blocks of the page at the path page below root. A page without blocks fails the test.
func Blocks(t testing.TB, root, page string) []Block {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var out []Block
	for _, m := range fence.FindAllStringSubmatch(string(b), -1) {
		out = append(out, Block{page, m[1], m[2]})
	}
	if len(out) == 0 {
		t.Fatalf("%s has no blocks: is the pattern still right?", page)
	}
	return out
}

// Shell returns the shell block as a part of a script. The script prints the page and each command that it runs.
func (b Block) Shell() string {
	return "echo '== " + b.Page + "'\nset -x\n" + b.Text + "{ set +x; } 2>/dev/null\n"
}

// Prologue begins a script: it stops at the first command that fails, prints standard error between the lines of
// standard output, and ends the processes that it started.
const Prologue = `set -eu -o pipefail
ip link set lo up
exec 2>&1
finish() { kill $(jobs -p) 2>/dev/null || true; wait; }
trap finish EXIT
`

// Run runs a script with bash in the folder dir and returns its output. The script has a network of its own, of which
// it must set up the loopback interface, so that the ports that pages name are free and no packet leaves the machine.
// It has processes of its own, too, which end with it at the latest.
func Run(t testing.TB, dir, script string) (string, error) {
	t.Helper()
	file := filepath.Join(dir, "pages.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return "", err
	}
	args := []string{"--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", file}
	if os.Geteuid() != 0 {
		args = slices.Insert(args, 0, "--map-root-user")
	}
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Dir = dir
	cmd.Env = append(cleanEnv(), fmt.Sprintf("PATH=%s:/usr/sbin:/sbin", os.Getenv("PATH")), "LC_ALL=C.UTF-8")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// cleanEnv returns the environment without the variables that could make the commands call other servers.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "OS_") || strings.HasPrefix(kv, "NAMEPLANE_") || strings.HasPrefix(kv, "MAKE") ||
			strings.HasPrefix(kv, "MFLAGS") || strings.Contains(strings.ToLower(kv), "_proxy=")
	})
}

// clone are the files and folders that build and deploy the nameplane program.
var clone = []string{"cmd", "deploy", "internal", "test", "bench", "docs", "go.mod", "go.sum", "go.work", "Makefile"}

// Clone copies into the folder to what a reader has in a clone of the repository, and what is not committed yet.
func Clone(t testing.TB, root, to string) {
	t.Helper()
	for _, name := range clone {
		from := filepath.Join(root, name)
		info, err := os.Stat(from)
		switch {
		case err != nil:
		case info.IsDir():
			err = os.CopyFS(filepath.Join(to, name), os.DirFS(from))
		default:
			var b []byte
			if b, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(filepath.Join(to, name), b, info.Mode().Perm())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

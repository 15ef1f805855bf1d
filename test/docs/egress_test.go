package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/nameplane/nameplane/test/pages"
)

const (
	egressPage  = "docs/reference/egress.md"
	podTutorial = "docs/tutorials/one-name-for-a-pod.md"
)

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	helpFlag    = regexp.MustCompile(`(?m)^ +(?:-[a-z], | {4})--([a-z0-9-]+)[ \n](.*)$`)
	helpDefault = regexp.MustCompile(`\(default "?([^")]+)"?\)$`)
	rowFlags    = regexp.MustCompile("(?m)^\\| ((?:`--[a-z0-9-]+`(?:, )?)+) \\| (.*?) \\| .* \\|$")
)

// flagsOf returns the flags of a command with their defaults, from its help, which a test of the command compares
// with the program.
func flagsOf(t *testing.T, command string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range helpFlag.FindAllStringSubmatch(text(t,
		"kubernetes/cmd/nameplane-egress/testdata/help/nameplane-egress-"+command+".txt"), -1) {
		if m[1] == "help" {
			continue
		}
		out[m[1]] = ""
		if d := helpDefault.FindStringSubmatch(m[2]); d != nil {
			out[m[1]] = strings.Trim(d[1], "[]")
		}
	}
	if len(out) == 0 {
		t.Fatalf("no flags in the help of %s: is the pattern still right?", command)
	}
	return out
}

// tableOf returns the flags in the tables of a part of the page, with the text of their default column.
func tableOf(section string) map[string]string {
	out := map[string]string{}
	for _, m := range rowFlags.FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			out[strings.Trim(name, "`-")] = m[2]
		}
	}
	return out
}

// TestEgressFlags compares the tables of flags with the help of the commands, including defaults.
func TestEgressFlags(t *testing.T) {
	_, page, _ := strings.Cut(text(t, egressPage), "\n## The commands\n")
	page, _, _ = strings.Cut(page, "\n## ")
	common, rest, _ := strings.Cut(page, "\n**manager**")
	for _, command := range []string{"manager", "resolver", "agent", "explain"} {
		section := rest
		if command != "manager" {
			_, section, _ = strings.Cut(page, "\n**"+command+"**")
		}
		section, _, _ = strings.Cut(section, "\n**")
		said := tableOf(section)
		if command != "explain" {
			maps.Copy(said, tableOf(common))
		}
		flags := flagsOf(t, command)
		for name, def := range flags {
			cell, ok := said[name]
			switch {
			case !ok && command == "explain" && name == "kubeconfig":
			case !ok:
				t.Errorf("%s: --%s of %s is not there", egressPage, name, command)
			case def != "" && !strings.Contains(cell, strings.TrimPrefix(def, "127.0.0.1")):
				t.Errorf("%s: --%s of %s has the default %q, not %s", egressPage, name, command, def, cell)
			}
			delete(said, name)
		}
		for name := range said {
			t.Errorf("%s: %s has no --%s", egressPage, command, name)
		}
	}
}

var (
	property  = regexp.MustCompile(`(?m)^\t"([A-Za-z0-9_]+)": +(?:plain\(|number\(|\{)`)
	rowOption = regexp.MustCompile("(?m)^\\| `([A-Za-z0-9_]+)[ `]")
)

func sorted(found [][]string) []string {
	var out []string
	for _, m := range found {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// options returns the options of the CoreDNS directive.
func options(t *testing.T) []string {
	t.Helper()
	out := sorted(property.FindAllStringSubmatch(text(t, "kubernetes/plugin/dnsnameresolver/config.go"), -1))
	if len(out) < 10 {
		t.Fatalf("the plugin has the options %v: is the pattern still right?", out)
	}
	return out
}

// TestEgressOptions compares the table of options, and every Corefile in the documentation, with the plugin.
func TestEgressOptions(t *testing.T) {
	known := options(t)
	_, section, _ := strings.Cut(text(t, egressPage), "\n## The directive\n")
	section, _, _ = strings.Cut(section, "\n### ")
	if diff := cmp.Diff(known, sorted(rowOption.FindAllStringSubmatch(section, -1))); diff != "" {
		t.Errorf("%s (-plugin +page):\n%s", egressPage, diff)
	}
	shown := 0
	const example = "deploy/kubernetes/egress/examples/Corefile"
	corefiles := []pages.Block{{Page: example, Lang: "corefile", Text: text(t, example)}}
	for _, b := range append(corefiles, blocks(t, egressPage)...) {
		if b.Lang != "corefile" {
			continue
		}
		_, inside, ok := strings.Cut(b.Text, "ocp_dnsnameresolver {\n")
		inside, _, _ = strings.Cut(inside, "}")
		for line := range strings.Lines(inside) {
			if f := strings.Fields(line); len(f) > 0 && !slices.Contains(known, f[0]) {
				t.Errorf("%s: the directive has no %q", b.Page, f[0])
			}
		}
		if ok {
			shown++
		}
	}
	if shown < 2 {
		t.Errorf("%d Corefiles with the directive", shown)
	}
}

var (
	ownMetric    = regexp.MustCompile(`"(nameplane_egress_[a-z_]+[a-z])"`)
	agentMetric  = regexp.MustCompile(`(?:counter|gauge|histogram)\("([a-z_]+)"`)
	pluginMetric = regexp.MustCompile(`(?:Name: |opts\()"([a-z_]+)"`)
	pageMetric   = regexp.MustCompile("`((?:nameplane_egress|coredns_dnsnameresolver)_[a-z_]+)[`{]")
)

// TestEgressMetrics checks that the page lists exactly the metrics of the programs.
func TestEgressMetrics(t *testing.T) {
	var want []string
	for _, part := range []string{"manager", "resolver", "agent"} {
		source := text(t, "kubernetes/internal/controller/"+part+"/metrics.go")
		want = append(want, sorted(ownMetric.FindAllStringSubmatch(source, -1))...)
		if part != "agent" {
			continue
		}
		for _, name := range sorted(agentMetric.FindAllStringSubmatch(source, -1)) {
			want = append(want, "nameplane_egress_agent_"+name)
		}
	}
	for _, name := range sorted(pluginMetric.FindAllStringSubmatch(text(t,
		"kubernetes/plugin/dnsnameresolver/metrics.go"), -1)) {
		want = append(want, "coredns_dnsnameresolver_"+name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, sorted(pageMetric.FindAllStringSubmatch(text(t, egressPage), -1))); diff != "" {
		t.Errorf("%s (-programs +page):\n%s", egressPage, diff)
	}
}

var kubectlFile = regexp.MustCompile(`(?:-k|-f|--patch-file) ([^ \n]+)`)

// TestEgressConsole checks the commands that need a cluster, or programs of others: files must exist, and so must our
// own commands and their flags. TestShell runs the commands that need no cluster, and TestTutorial of
// kubernetes/test/deploy those of the tutorial that need no running pods.
func TestEgressConsole(t *testing.T) {
	read := 0
	for _, page := range []string{egressPage, podTutorial, "README.md"} {
		for _, b := range blocks(t, page) {
			if b.Lang != "console" {
				continue
			}
			for line := range strings.Lines(b.Text) {
				args := strings.Fields(strings.TrimPrefix(line, "$ "))
				if !strings.HasPrefix(line, "$ ") || len(args) < 2 {
					continue // output of a command
				}
				read++
				switch args[0] {
				case "kubectl":
					for _, m := range kubectlFile.FindAllStringSubmatch(line, -1) {
						if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
							t.Errorf("%s: %s: %v", page, line, err)
						}
					}
				case "nameplane-egress":
					known := flagsOf(t, args[1])
					for _, a := range args[2:] {
						name, isFlag := strings.CutPrefix(a, "--")
						if _, ok := known[name]; isFlag && !ok {
							t.Errorf("%s: %s has no %s", page, args[1], a)
						}
					}
				default:
					t.Errorf("%s: no test checks the command %q", page, line)
				}
			}
		}
	}
	if read < 8 {
		t.Errorf("only %d commands", read)
	}
}

// TestEgressExample checks that the firewall on the page is the one that the tests of the manifests apply.
func TestEgressExample(t *testing.T) {
	var want, got any
	if err := yaml.Unmarshal([]byte(text(t, "deploy/kubernetes/egress/examples/egressfirewall.yaml")), &want); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks(t, egressPage) {
		if b.Lang == "yaml" {
			if err := yaml.Unmarshal([]byte(b.Text), &got); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example (-file +page):\n%s", diff)
	}
}

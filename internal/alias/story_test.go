package alias_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/simnet"
)

var update = flag.Bool("update", false, "write the actual events into the scenarios")

// TestStories runs the scenarios in testdata. The comment of each file says what must happen. Then come the script of
// the resolver (simnet), our zones, the steps of their owner, and the expected events: every change of the served
// addresses, and the states that the steps request.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			last := &a.Files[len(a.Files)-1]
			if last.Name != "what happens" {
				t.Fatalf("%s ends in %q", file, last.Name)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, a) })
			if *update {
				last.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(sameMoment(string(last.Data)), sameMoment(got)); diff != "" {
				t.Errorf("%s(-want +got):\n%s", a.Comment, diff)
			}
		})
	}
}

// play runs a scenario and returns its events.
func play(t *testing.T, a *txtar.Archive) string {
	net := simnet.New(1)
	path := filepath.Join(t.TempDir(), "db")
	opts := follow.Options{}
	var r *testEnv
	for _, f := range a.Files {
		lines := strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		if apex, ok := strings.CutPrefix(f.Name, "zone "); ok {
			if lines[0] == "" {
				lines = nil
			}
			r.zone(apex, lines...)
			continue
		}
		switch f.Name {
		case "resolver":
			net.MustServer(resolver, string(f.Data))
			r = open(t, path, net, alias.Options{}, opts)
		case "steps":
			for _, line := range lines {
				r = step(t, r, path, opts, strings.Fields(line))
			}
		}
	}
	synctest.Wait()
	return strings.Join(r.log, "\n") + "\n"
}

// step waits for the time of a step and executes it.
func step(t *testing.T, r *testEnv, path string, opts follow.Options, words []string) *testEnv {
	t.Helper()
	at, err := time.ParseDuration(words[0])
	r.must(err)
	r.wait(at - r.net.Age())
	args := words[2:]
	switch words[1] {
	case "put":
		if err := r.put(strings.Join(args, " ")); err != nil {
			r.logf("refused: %v", err)
		}
	case "drop":
		r.must(r.drop(args[0], args[1]))
	case "show":
		r.logf("%s is %s, with %s", args[0], r.status(args[0]), r.rows(args[0]))
	case "restart":
		log := r.log
		r.stop()
		r = open(t, path, r.net, alias.Options{}, opts)
		r.log = append(log, r.log...)
	default:
		t.Fatalf("%q is no step", words[1])
	}
	return r
}

// sameMoment sorts the events of one commit: the record sets of a commit have no order.
func sameMoment(story string) string {
	lines := strings.SplitAfter(story, "\n")
	for i := 0; i < len(lines); {
		j := i + 1
		at, rest, _ := strings.Cut(lines[i], " ")
		for j < len(lines) && strings.HasPrefix(rest, "serves ") && strings.HasPrefix(lines[j], at+" serves ") {
			j++
		}
		slices.Sort(lines[i:j])
		i = j
	}
	return strings.Join(lines, "")
}

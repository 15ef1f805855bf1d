package follow_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/simnet"
)

var update = flag.Bool("update", false, "write the actual events into the scenarios")

// TestStories runs the scenarios in testdata. The comment of each file says what must happen. Then come the scripts of
// the servers (simnet), the steps of the followers, and the expected events: every query and every reported change.
// There is no jitter, unless the steps begin with a line "chance".
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
			if diff := cmp.Diff(string(last.Data), got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", a.Comment, diff)
			}
		})
	}
}

// scenario is a running scenario.
type scenario struct {
	*testEnv
	t     *testing.T
	lines []line
}

// line is one event.
type line struct {
	at   time.Duration
	text string
}

// play runs a scenario and returns its events.
func play(t *testing.T, a *txtar.Archive) string {
	net := simnet.New(1)
	var servers []string
	var steps string
	for _, f := range a.Files {
		if addr, ok := strings.CutPrefix(f.Name, "server "); ok {
			net.MustServer(addr, string(f.Data))
		} else if addr, ok := strings.CutPrefix(f.Name, "resolver "); ok {
			net.MustServer(addr, string(f.Data))
			servers = append(servers, addr)
		} else if f.Name == "steps" {
			steps = string(f.Data)
		}
	}
	opts := follow.Options{Rand: noJitter}
	if rest, ok := strings.CutPrefix(steps, "chance "); ok {
		number, rest, _ := strings.Cut(rest, "\n")
		chance, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		opts.Rand, steps = func() float64 { return chance }, rest
	}
	s := &scenario{testEnv: newTestEnv(net, opts, servers...), t: t}
	s.start(t)
	for text := range strings.Lines(steps) {
		s.step(strings.Fields(text))
	}
	s.end()
	return s.log()
}

// step waits for the time of a step and executes it.
func (s *scenario) step(words []string) {
	s.t.Helper()
	at, err := time.ParseDuration(words[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.until(at)
	args := words[2:]
	switch words[1] {
	case "end":
	case "follow":
		s.Follow(name(args[0]), family(args[1:]))
	case "unfollow":
		s.Unfollow(name(args[0]), family(args[1:]))
	case "refresh":
		s.Refresh(name(args[0]))
	case "seed": // NAME TYPE TTL LEFT ADDRESS...
		ttl, left := seconds(s.t, args[2]), seconds(s.t, args[3])
		now := time.Now()
		s.Seed(name(args[0]), family(args[1:2]), follow.State{Addrs: addrs(args[4:]...), TTL: ttl, Answer: follow.Found,
			ValidUntil: now.Add(left), LastSuccess: now.Add(left - ttl)})
	case "state":
		s.state(args[0], family(args[1:]))
	default:
		s.t.Fatalf("%q is no step", words[1])
	}
	synctest.Wait()
}

func seconds(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func family(types []string) (f follow.Family) {
	for _, s := range types {
		f |= map[string]follow.Family{"A": follow.IPv4, "AAAA": follow.IPv6}[s]
	}
	return f
}

// state logs all fields of a state.
func (s *scenario) state(n string, f follow.Family) {
	st, _ := s.State(name(n), f)
	text := fmt.Sprintf("state %s %v: %s", n, f, brief(st))
	for i, l := range st.Chain {
		if i == 0 {
			text += "; by"
		}
		text += fmt.Sprintf(" %v(%d)", l.Name, l.TTL/time.Second)
	}
	since := func(at time.Time) time.Duration { return s.net.Age() + time.Until(at) }
	if st.Err != nil {
		text += fmt.Sprintf("; %d failures since %v, %s", st.Failures, since(st.Since), st.Err)
	}
	if !st.LastSuccess.IsZero() {
		text += fmt.Sprintf("; last success %v, valid until %v", since(st.LastSuccess), since(st.ValidUntil))
	}
	s.lines = append(s.lines, line{s.net.Age(), text + fmt.Sprintf("; next attempt %v", since(st.NextAttempt))})
}

// log returns the events sorted by time; events of the same moment are sorted by text.
func (s *scenario) log() string {
	for _, q := range s.net.History() {
		s.lines = append(s.lines, line{q.At, fmt.Sprintf("ask %s://%v %v %v", q.Transport, q.Server.Addr(), q.Name, q.Type)})
	}
	for _, c := range s.changesSince(0) {
		s.lines = append(s.lines, line{c.at, fmt.Sprintf("reported %v %v: %s", c.Name, c.Family, brief(c.New))})
	}
	slices.SortFunc(s.lines, func(a, b line) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.text, b.text)
	})
	var b bytes.Buffer
	for _, l := range s.lines {
		fmt.Fprintln(&b, l.at, l.text)
	}
	return b.String()
}

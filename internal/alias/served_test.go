package alias_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// reported returns the reported status of an ALIAS and the addresses that are reported as served.
func (r *testEnv) reported(owner string) string {
	st, ok := r.State(r.key(owner))
	status := r.Progress(r.key(owner))[0].Status
	if !ok || status != st.Status {
		return fmt.Sprintf("none (%v, %s)", ok, status)
	}
	return fmt.Sprint(st.Status, st.Families[0].Addrs)
}

// Until a commit is on disk, the reported state is the old one, or pending. When it is served, the new state is
// reported.
func TestReportedWhenServed(t *testing.T) {
	tests := []struct {
		name                string
		edit                func(*testEnv) error
		before, then, after string
	}{
		{"a lookup brings the first addresses",
			func(r *testEnv) error { return r.put("a.example.org. 60 ALIAS cdn.example.net.") },
			"none (false, )", "PENDING[]", "ACTIVE[203.0.113.1 203.0.113.2]"},
		{"an ALIAS on a target of ours", func(r *testEnv) error { return r.put("a.example.org. 60 ALIAS www.example.com.") },
			"none (false, )", "none (false, )", "ACTIVE[203.0.113.7]"},
		{"a target of ours changes", func(r *testEnv) error { return r.put("www.example.com. 60 A 203.0.113.8") },
			"ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.8]"},
		{"a target of ours loses its addresses", func(r *testEnv) error { return r.put("www.example.com. 60 TXT x") },
			"ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]"},
		{"another target", func(r *testEnv) error { return r.put("a.example.org. 60 ALIAS alt.example.com.") },
			"ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.9]"},
		{"another target elsewhere", func(r *testEnv) error { return r.put("a.example.org. 60 ALIAS cdn.example.net.") },
			"ACTIVE[203.0.113.7]", "PENDING[203.0.113.7]", "ACTIVE[203.0.113.1 203.0.113.2]"},
		{"a target of ours goes", func(r *testEnv) error { return r.drop("www.example.com.", "A") },
			"ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]", "STALE[203.0.113.7]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, cdn)
				r.zone("example.com.", "www.example.com. 60 A 203.0.113.7", "alt.example.com. 60 A 203.0.113.9")
				r.zone("example.org.")
				if tt.before[0] != 'n' {
					r.must(r.put("a.example.org. 60 ALIAS www.example.com."))
				}
				r.wait(0)
				got := []string{r.reported("a.example.org.")}
				then := ""
				r.store.beforeCommit(func() { then = r.reported("a.example.org.") })
				r.must(tt.edit(r))
				r.wait(time.Second)
				got = append(got, then, r.reported("a.example.org."))
				if diff := cmp.Diff([]string{tt.before, tt.then, tt.after}, got); diff != "" {
					t.Errorf("reported before, during and after the commit (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The author of an edit reads its outcome at once, and nothing of an edit that the disk refused.
func TestReportedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		r.zone("example.com.", "www.example.com. 60 A 203.0.113.7")
		r.zone("example.org.", "a.example.org. 60 ALIAS www.example.com.")
		check := func(want string) {
			t.Helper()
			if got := r.reported("a.example.org."); got != want {
				t.Errorf("reported %s, want %s", got, want)
			}
		}
		check("ACTIVE[203.0.113.7]")
		r.must(r.put("www.example.com. 60 A 203.0.113.8"))
		check("ACTIVE[203.0.113.8]")
		r.store.setBroken(true)
		if err := r.put("www.example.com. 60 A 203.0.113.9"); err == nil {
			t.Fatal("a full disk took a change")
		}
		check("ACTIVE[203.0.113.8]")
		r.store.setBroken(false)
		r.must(r.put("other.example.org. 60 A 203.0.113.1"))
		check("ACTIVE[203.0.113.8]")
	})
}

// group commits edits in one group: the first one blocks the committer until all others wait behind it.
func (r *testEnv) group(edits ...func(*publish.Tx) error) {
	r.t.Helper()
	commits := r.store.commits()
	gate := make(chan struct{})
	for i, fn := range edits {
		go r.commit(func(tx *publish.Tx) error {
			if i == 0 {
				<-gate
			}
			return fn(tx)
		})
		synctest.Wait()
	}
	close(gate)
	synctest.Wait()
	if n := r.store.commits() - commits; n != 1 {
		r.t.Errorf("%d commits, want all edits in one", n)
	}
}

// An edit sees the aliases as earlier edits of its group left them, though none of these is committed.
func TestGroup(t *testing.T) {
	put := func(r *testEnv, line string) func(*publish.Tx) error {
		return func(tx *publish.Tx) error { return r.putIn(tx, line) }
	}
	drop := func(tx *publish.Tx) error { return dropIn(tx, "a.example.org.", "ALIAS") }
	refused := errors.New("refused")
	tests := []struct {
		name  string
		edits func(*testEnv) []func(*publish.Tx) error
		want  string
	}{
		{"the target changes behind it", func(r *testEnv) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."),
				put(r, "www.example.com. 60 A 203.0.113.8")}
		}, "ACTIVE[203.0.113.8]"},
		{"an edit behind it fails", func(r *testEnv) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."),
				func(tx *publish.Tx) error { return errors.Join(drop(tx), refused) }, put(r, "www.example.com. 60 A 203.0.113.8")}
		}, "ACTIVE[203.0.113.8]"},
		{"an edit before it fails", func(r *testEnv) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{
				func(tx *publish.Tx) error {
					return errors.Join(r.putIn(tx, "a.example.org. 60 ALIAS alt.example.com."), refused)
				},
				put(r, "a.example.org. 60 ALIAS www.example.com.")}
		}, "ACTIVE[203.0.113.7]"},
		{"it goes and comes", func(r *testEnv) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."), drop,
				put(r, "a.example.org. 60 ALIAS alt.example.com.")}
		}, "ACTIVE[203.0.113.9]"},
		{"its target changes and changes back", func(r *testEnv) []func(*publish.Tx) error {
			r.must(r.put("a.example.org. 60 ALIAS www.example.com."))
			return []func(*publish.Tx) error{put(r, "www.example.com. 60 A 203.0.113.8"),
				put(r, "www.example.com. 60 A 203.0.113.7")}
		}, "ACTIVE[203.0.113.7]"},
		{"it comes and goes", func(r *testEnv) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."), drop}
		}, "none (false, )"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, "")
				r.zone("example.com.", "www.example.com. 60 A 203.0.113.7", "alt.example.com. 60 A 203.0.113.9")
				r.zone("example.org.")
				r.group(tt.edits(r)...)
				if got := r.reported("a.example.org."); got != tt.want {
					t.Errorf("after the group %s, want %s", got, tt.want)
				}
				r.must(r.pub.View(func(v store.View) error {
					rows, err := store.ObjectsOf[alias.Record](v, store.KindAlias)
					for _, row := range rows {
						if got := fmt.Sprint(row.Status, row.Families[0].Addrs); got != tt.want {
							t.Errorf("row after the group %s, want %s", got, tt.want)
						}
					}
					if len(rows) == 0 && tt.want[0] == 'A' {
						t.Error("no row after the group")
					}
					return err
				}))
				r.must(r.put("www.example.com. 60 A 203.0.113.10", "alt.example.com. 60 A 203.0.113.10"))
				if got := r.reported("a.example.org."); tt.want[0] == 'A' && got != "ACTIVE[203.0.113.10]" {
					t.Errorf("after its target changed %s", got)
				}
			})
		})
	}
}

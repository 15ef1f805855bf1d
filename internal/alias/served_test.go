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

// saidOf is what is said of an ALIAS: its status, and the addresses that are said to be served.
func (r *rig) saidOf(owner string) string {
	st, ok := r.State(r.key(owner))
	status, _, same := r.Status(r.key(owner))
	if !ok || !same || status != st.Status {
		return fmt.Sprintf("none (%v, %v, %s)", ok, same, status)
	}
	return fmt.Sprint(st.Status, st.Families[0].Addrs)
}

// While a commit is on its way to the disk, nothing of it is told but that something is pending; when it is served, all is.
func TestToldWhenServed(t *testing.T) {
	tests := []struct {
		name                string
		edit                func(*rig) error
		before, then, after string
	}{
		{"a lookup brings the first addresses", func(r *rig) error { return r.put("a.example.org. 60 ALIAS cdn.example.net.") },
			"none (false, false, )", "PENDING[]", "ACTIVE[203.0.113.1 203.0.113.2]"},
		{"an ALIAS on a target of ours", func(r *rig) error { return r.put("a.example.org. 60 ALIAS www.example.com.") },
			"none (false, false, )", "none (false, false, )", "ACTIVE[203.0.113.7]"},
		{"a target of ours changes", func(r *rig) error { return r.put("www.example.com. 60 A 203.0.113.8") },
			"ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.8]"},
		{"a target of ours loses its addresses", func(r *rig) error { return r.put("www.example.com. 60 TXT x") },
			"ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]"},
		{"another target", func(r *rig) error { return r.put("a.example.org. 60 ALIAS alt.example.com.") },
			"ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.7]", "ACTIVE[203.0.113.9]"},
		{"another target elsewhere", func(r *rig) error { return r.put("a.example.org. 60 ALIAS cdn.example.net.") },
			"ACTIVE[203.0.113.7]", "PENDING[203.0.113.7]", "ACTIVE[203.0.113.1 203.0.113.2]"},
		{"a target of ours goes", func(r *rig) error { return r.drop("www.example.com.", "A") },
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
				got := []string{r.saidOf("a.example.org.")}
				then := ""
				r.store.on(func() { then = r.saidOf("a.example.org.") })
				r.must(tt.edit(r))
				r.wait(time.Second)
				got = append(got, then, r.saidOf("a.example.org."))
				if diff := cmp.Diff([]string{tt.before, tt.then, tt.after}, got); diff != "" {
					t.Errorf("told before, on the way to the disk, and after (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Who made the edit reads its outcome at once, and nothing of one that the disk refused.
func TestToldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "")
		r.zone("example.com.", "www.example.com. 60 A 203.0.113.7")
		r.zone("example.org.", "a.example.org. 60 ALIAS www.example.com.")
		said := func(want string) {
			t.Helper()
			if got := r.saidOf("a.example.org."); got != want {
				t.Errorf("told %s, want %s", got, want)
			}
		}
		said("ACTIVE[203.0.113.7]")
		r.must(r.put("www.example.com. 60 A 203.0.113.8"))
		said("ACTIVE[203.0.113.8]")
		r.store.breaks(true)
		if err := r.put("www.example.com. 60 A 203.0.113.9"); err == nil {
			t.Fatal("a full disk took a change")
		}
		said("ACTIVE[203.0.113.8]")
		r.store.breaks(false)
		r.must(r.put("other.example.org. 60 A 203.0.113.1"))
		said("ACTIVE[203.0.113.8]")
	})
}

// group commits edits in one group: the first one holds the committer until all others wait behind it.
func (r *rig) group(edits ...func(*publish.Tx) error) {
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

// An edit sees what the edits before it in its group made of aliases, though none of them is committed.
func TestGroup(t *testing.T) {
	put := func(r *rig, line string) func(*publish.Tx) error {
		return func(tx *publish.Tx) error { return r.putIn(tx, line) }
	}
	drop := func(tx *publish.Tx) error { return dropIn(tx, "a.example.org.", "ALIAS") }
	refused := errors.New("refused")
	tests := []struct {
		name  string
		edits func(*rig) []func(*publish.Tx) error
		want  string
	}{
		{"the target changes behind it", func(r *rig) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."),
				put(r, "www.example.com. 60 A 203.0.113.8")}
		}, "ACTIVE[203.0.113.8]"},
		{"an edit behind it fails", func(r *rig) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."),
				func(tx *publish.Tx) error { return errors.Join(drop(tx), refused) }, put(r, "www.example.com. 60 A 203.0.113.8")}
		}, "ACTIVE[203.0.113.8]"},
		{"an edit before it fails", func(r *rig) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{
				func(tx *publish.Tx) error {
					return errors.Join(r.putIn(tx, "a.example.org. 60 ALIAS alt.example.com."), refused)
				},
				put(r, "a.example.org. 60 ALIAS www.example.com.")}
		}, "ACTIVE[203.0.113.7]"},
		{"it goes and comes", func(r *rig) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."), drop,
				put(r, "a.example.org. 60 ALIAS alt.example.com.")}
		}, "ACTIVE[203.0.113.9]"},
		{"its target changes and changes back", func(r *rig) []func(*publish.Tx) error {
			r.must(r.put("a.example.org. 60 ALIAS www.example.com."))
			return []func(*publish.Tx) error{put(r, "www.example.com. 60 A 203.0.113.8"),
				put(r, "www.example.com. 60 A 203.0.113.7")}
		}, "ACTIVE[203.0.113.7]"},
		{"it comes and goes", func(r *rig) []func(*publish.Tx) error {
			return []func(*publish.Tx) error{put(r, "a.example.org. 60 ALIAS www.example.com."), drop}
		}, "none (false, false, )"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, "")
				r.zone("example.com.", "www.example.com. 60 A 203.0.113.7", "alt.example.com. 60 A 203.0.113.9")
				r.zone("example.org.")
				r.group(tt.edits(r)...)
				if got := r.saidOf("a.example.org."); got != tt.want {
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
				if got := r.saidOf("a.example.org."); tt.want[0] == 'A' && got != "ACTIVE[203.0.113.10]" {
					t.Errorf("after its target changed %s", got)
				}
			})
		})
	}
}

package mec_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
)

// TestTaskProgress reads a task whenever its commit writes a row. The steps must come in order, and the task must
// succeed when its rules are served, not when they are on disk.
func TestTaskProgress(t *testing.T) {
	tests := []struct {
		name  string
		rules []string
		want  []string
	}{
		{"rules", []string{"a a.example.com 192.0.2.1", "b b.example.com 192.0.2.2 INACTIVE", "c c.example.com 192.0.2.3"},
			[]string{
				"PROCESSING 0 0 of 3 rules checked refused",
				"PROCESSING 20 1 of 3 rules checked refused", // the inactive rule, which has no claim
				"PROCESSING 40 2 of 3 rules checked refused",
				"PROCESSING 60 3 of 3 rules checked refused",
				"PROCESSING 80 written refused",
				"SUCCESS 100  30 192.0.2.1"}},
		{"one name", []string{"a a.example.com 192.0.2.1", "b a.example.com 192.0.2.1"}, []string{
			"PROCESSING 0 0 of 2 rules checked refused",
			"PROCESSING 50 2 of 2 rules checked refused",
			"PROCESSING 75 written refused",
			"SUCCESS 100  30 192.0.2.1"}},
		{"nothing", nil, []string{
			"PROCESSING 0 0 of 0 rules checked refused",
			"PROCESSING 50 written refused",
			"SUCCESS 100  refused"}},
		{"a conflict", []string{"a a.example.com 192.0.2.1", "b taken.example.com 192.0.2.2", "c c.example.com 192.0.2.1"},
			[]string{
				"PROCESSING 0 0 of 3 rules checked refused",
				"PROCESSING 20 1 of 3 rules checked refused",
				"FAILURE 0 taken.example.com. has other A addresses from rule x of application app2 refused"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &breakable{}
				var g *rig
				var id atomic.Value
				var got []string
				read := func() {
					task, err := g.Task(id.Load().(string))
					if err != nil {
						t.Error(err)
					}
					text := fmt.Sprintf("%s %d %s %s", task.State, task.Progress, task.Detail, g.ask("a.example.com.", rr.TypeA))
					if len(got) == 0 || got[len(got)-1] != text {
						got = append(got, text)
					}
				}
				disk.onWrite = func() {
					if id.Load() != nil {
						read()
					}
				}
				g = openOn(t, t.TempDir()+"/db", mec.Options{}, false, disk)
				g.create("app2", "x taken.example.com 192.0.2.9")
				task, err := g.configure("app1", mec.TaskCreate, "", tt.rules...)
				if err != nil {
					t.Fatal(err)
				}
				id.Store(task.ID)
				go func() {
					if err := g.Run(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				synctest.Wait()
				read()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("the states of the task (-want +got):\n%s", diff)
				}
			})
		})
	}
}

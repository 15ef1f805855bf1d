package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

func TestJudge(t *testing.T) {
	ok := func(zone string) string { return zone + ": " + egress.Applied }
	bad := func(zone string) string { return zone + ": " + egress.NotApplied + ": no such table" }
	own := []string{egress.ManagerZone + ": " + egress.NotApplied + ": spec.egress[0].type: x"}
	tests := []struct {
		name                 string
		own, reported, zones []string
		want                 string
	}{
		{"nobody yet", nil, nil, []string{"a", "b"}, ""},
		{"one of two", nil, []string{ok("a")}, []string{"a", "b"}, ""},
		{"all", nil, []string{ok("b"), ok("a")}, []string{"a", "b"}, egress.Applied},
		{"one says it failed", nil, []string{ok("a"), bad("b")}, []string{"a", "b"}, egress.NotApplied},
		{"one says it failed, the other nothing", nil, []string{bad("b")}, []string{"a", "b"}, egress.NotApplied},
		{"a zone that is none does not fill in", nil, []string{ok("a"), ok("c")}, []string{"a", "b"}, ""},
		{"a zone that is none does not spoil", nil, []string{ok("a"), bad("c")}, []string{"a"}, egress.Applied},
		{"ours", own, []string{ok("a")}, []string{"a"}, egress.NotApplied},
		{"ours of before", nil, []string{ok("a"), own[0]}, []string{"a"}, egress.Applied},
		{"zones are not known", nil, []string{ok("a")}, nil, egress.Applied},
		{"zones are not known, one failed", nil, []string{ok("a"), bad("b")}, nil, egress.NotApplied},
		{"zones are not known, ours of before", nil, own, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judge(tt.own, tt.reported, tt.zones)
			if got.Status != tt.want {
				t.Errorf("status %q, want %q", got.Status, tt.want)
			}
			if diff := cmp.Diff(tt.own, got.Messages); diff != "" {
				t.Errorf("messages (-want +got)\n%s", diff)
			}
		})
	}
}

func TestZones(t *testing.T) {
	z := newZones()
	steps := []struct {
		node, zone string
		changed    bool
		list, left []string
	}{
		{"n1", "a", true, []string{"a"}, []string{}},
		{"n1", "a", false, []string{"a"}, []string{}},
		{"n2", "a", false, []string{"a"}, []string{}},
		{"n3", "b", true, []string{"a", "b"}, []string{}},
		{"n1", "b", false, []string{"a", "b"}, []string{}},
		{"n2", "", true, []string{"b"}, []string{"a"}},
		{"n2", "", false, []string{"b"}, []string{"a"}},
		{"n3", "c", true, []string{"b", "c"}, []string{"a"}},
		{"n4", "a", true, []string{"a", "b", "c"}, []string{}},
		{"n1", "c", true, []string{"a", "c"}, []string{"b"}},
	}
	for i, s := range steps {
		if got := z.put(s.node, s.zone); got != s.changed {
			t.Errorf("step %d: put(%s, %s) = %v", i, s.node, s.zone, got)
		}
		if diff := cmp.Diff(s.list, z.list()); diff != "" {
			t.Errorf("step %d: list (-want +got)\n%s", i, diff)
		}
		if diff := cmp.Diff(s.left, z.left(client.ObjectKey{Name: "x"}, []string{"a", "b", "c", "never"})); diff != "" {
			t.Errorf("step %d: left (-want +got)\n%s", i, diff)
		}
	}
	x, y := client.ObjectKey{Name: "x"}, client.ObjectKey{Name: "y"}
	z.removed(x, "b")
	if diff := cmp.Diff([][]string{{}, {"b"}},
		[][]string{z.left(x, []string{"a", "b"}), z.left(y, []string{"a", "b"})}); diff != "" {
		t.Errorf("left after its word was removed from x (-want +got)\n%s", diff)
	}
	z.put("n5", "b")
	z.put("n5", "")
	if diff := cmp.Diff([]string{"b"}, z.left(x, []string{"a", "b"})); diff != "" {
		t.Errorf("left after it came and went (-want +got)\n%s", diff)
	}
}

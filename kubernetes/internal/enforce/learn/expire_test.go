package learn_test

import (
	"testing"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

func TestExpire(t *testing.T) {
	r := newRig(t, "*.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/10s 192.0.2.2/20s")
	r.sees(0, "b.example.com.", "192.0.2.3/12s")
	old := r.state()
	tests := []struct {
		after   time.Duration
		changed bool
		next    time.Duration
		want    string
	}{
		{14 * time.Second, false, 15 * time.Second, "a.example.com. 192.0.2.1/10s 192.0.2.2/20s NOERROR; b.example.com. 192.0.2.3/12s NOERROR"},
		{15 * time.Second, true, 17 * time.Second, "a.example.com. 192.0.2.2/20s NOERROR; b.example.com. 192.0.2.3/12s NOERROR"},
		{17 * time.Second, true, 25 * time.Second, "a.example.com. 192.0.2.2/20s NOERROR; b.example.com. NOERROR"},
		{25 * time.Second, true, 0, "a.example.com. NOERROR; b.example.com. NOERROR"},
	}
	for _, tt := range tests {
		got, changed, next := learn.Expire(r.stored, start.Add(tt.after))
		after := &rig{stored: got, now: start}
		if changed != tt.changed || after.state() != tt.want {
			t.Errorf("after %v: changed %v, %s, want %s", tt.after, changed, after.state(), tt.want)
		}
		if tt.next == 0 != next.IsZero() || tt.next != 0 && next.Sub(start) != tt.next {
			t.Errorf("after %v: next is %v, want %v", tt.after, next.Sub(start), tt.next)
		}
	}
	if r.state() != old {
		t.Errorf("what was given became %s", r.state())
	}
}

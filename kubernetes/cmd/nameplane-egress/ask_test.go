package main

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/controller/agent"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// TestAskHung has an agent that accepts queries and does not answer: it costs one timeout, and the other agent is
// queried every time.
func TestAskHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{agents: []string{"hung", "well"}, limit: time.Second, gone: map[string]string{},
			ask: func(ctx context.Context, endpoint, _ string, _ netip.Addr) (hold.Explanation, error) {
				if endpoint == "hung" {
					<-ctx.Done()
					return hold.Explanation{}, ctx.Err()
				}
				return hold.Explanation{Node: "n", Programmed: true}, ctx.Err()
			}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		want := []agent.NodeState{{Agent: "hung", Error: "no answer within 1s"}, {Agent: "well", Node: "n", Programmed: true}}
		for range 10 {
			if diff := cmp.Diff(want, a.all(ctx, must.Pattern("www.example.com"),
				netip.MustParseAddr("192.0.2.1"))); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("ten questions took %v, want one limit", took)
		}
	})
}

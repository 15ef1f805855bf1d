package dnsnameresolver

import (
	"context"
	"fmt"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/match"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// busy returns a plugin with 100,000 patterns, before a plugin that does nothing.
func busy() *Plugin {
	tree := &match.Tree[*object]{}
	for i := range 50_000 {
		tree.Add(must.Pattern(fmt.Sprintf("host%d.domain%d.example", i, i%1000)), &object{})
		tree.Add(must.Pattern(fmt.Sprintf("*.zone%d.domain%d.example", i, i%1000)), &object{})
	}
	p := &Plugin{engine: &engine{},
		Next: plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 0, nil })}
	p.engine.tree.Store(tree)
	return p
}

func unmatched() *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion("wWw.domain7.Example.", dns.TypeA)
	return m
}

// TestNoAllocations checks that a name without a rule costs only the allocation with which CoreDNS calls the next
// plugin.
func TestNoAllocations(t *testing.T) {
	p, m, w := busy(), unmatched(), &client{}
	remote := &fixedClient{client: w}
	base := testing.AllocsPerRun(200, func() { _, _ = plugin.NextOrFailure(Name, p.Next, t.Context(), remote, m) })
	if n := testing.AllocsPerRun(200, func() { _, _ = p.ServeDNS(t.Context(), remote, m) }); n != base {
		t.Errorf("%v allocations, %v without the plugin", n, base)
	}
}

func BenchmarkUnmatched(b *testing.B) {
	p, m, w := busy(), unmatched(), &fixedClient{client: &client{}}
	b.Run("with", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = p.ServeDNS(b.Context(), w, m)
		}
	})
	b.Run("without", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = plugin.NextOrFailure(Name, p.Next, b.Context(), w, m)
		}
	})
}

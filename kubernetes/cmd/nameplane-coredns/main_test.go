package main

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/nameplane/nameplane/kubernetes/plugin/dnsnameresolver"
)

func TestOrder(t *testing.T) {
	before := slices.Clone(dnsserver.Directives)
	got := withPlugin(dnsserver.Directives)
	if !slices.Equal(before, dnsserver.Directives) || len(got) != len(before)+1 {
		t.Fatalf("%d directives became %d", len(before), len(got))
	}
	at := slices.Index(got, dnsnameresolver.Name)
	for _, later := range []string{"dns64", "rewrite", "autopath", "cache", "template", "hosts", "kubernetes", "forward"} {
		if i := slices.Index(got, later); i < at {
			t.Errorf("%s is at %d, the plugin at %d", later, i, at)
		}
	}
	for _, earlier := range []string{"bufsize", "prometheus", "errors", "log"} {
		if i := slices.Index(got, earlier); i < 0 || i > at {
			t.Errorf("%s is at %d, the plugin at %d", earlier, i, at)
		}
	}
}

// Command nameplane-coredns is CoreDNS, with all its plugins, and with the one that learns addresses for egress firewalls.
package main

import (
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/core/plugin" // all plugins of CoreDNS
	"github.com/coredns/coredns/coremain"

	"github.com/nameplane/nameplane/kubernetes/plugin/dnsnameresolver"
)

func main() {
	dnsserver.Directives = withPlugin(dnsserver.Directives)
	dnsnameresolver.Register()
	coremain.Run()
}

// withPlugin puts our directive where it sees what clients get: before `dns64`, which makes addresses of other ones, and so
// before `cache` and all that answer. The stock build has it some places further down, behind `tsig`, with nothing
// in between but plugins that do not change addresses, and `dns64`.
func withPlugin(directives []string) []string {
	at := slices.Index(directives, "dns64")
	if at < 0 {
		at = slices.Index(directives, "cache")
	}
	return slices.Insert(slices.Clone(directives), at, dnsnameresolver.Name)
}

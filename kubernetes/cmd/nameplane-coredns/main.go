// Command nameplane-coredns is CoreDNS with all its plugins and the one that learns addresses for egress firewalls.
// Start with withPlugin, which puts that plugin into the order of directives.
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
	coremain.Run()
}

// withPlugin returns the directives with our plugin before `dns64`, which changes addresses, and thus before `cache`
// and all plugins that answer: the plugin must see the addresses that clients get. The stock build has it after `tsig`.
// Of the plugins in between, only `dns64` changes addresses.
func withPlugin(directives []string) []string {
	at := slices.Index(directives, "dns64")
	if at < 0 {
		at = slices.Index(directives, "cache")
	}
	return slices.Insert(slices.Clone(directives), at, dnsnameresolver.Name)
}

package dnsnameresolver

import (
	"fmt"

	"github.com/coredns/caddy"
)

// The directive in a Corefile, with a reply that waits at most 250 ms for the firewall.
func Example() {
	o, err := parse(caddy.NewTestController("dns", `ocp_dnsnameresolver {
		namespaces ovn-kubernetes
		agents 192.0.2.1:6650
		tls tls.crt tls.key ca.crt
		hold 250ms
	}`))
	fmt.Println(o.namespaces, o.agents, o.timeout, err)
	// Output: [ovn-kubernetes] [192.0.2.1:6650] 250ms <nil>
}

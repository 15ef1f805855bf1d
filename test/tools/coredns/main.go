// Command coredns is CoreDNS with only the plugins the benchmark needs, so that
// the figures beside ours are those of its file plugin and nothing else. It is
// a module of its own because its dependencies are no business of the product.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/file"
)

func main() {
	coremain.Run()
}

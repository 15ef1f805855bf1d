package dnsnameresolver

import (
	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
)

// Register makes the directive known to CoreDNS. Where it stands in the chain is for dnsserver.Directives to say: before
// `cache`, so that replies from the cache are seen, and before `dns64`, so that the addresses are those that clients get.
func Register() { plugin.Register(Name, setup) }

// engineKey is under which an engine is kept for the server blocks of one Corefile.
type engineKey string

func setup(c *caddy.Controller) error {
	o, err := parse(c)
	if err != nil {
		return plugin.Error(Name, err)
	}
	e, _ := c.Get(engineKey(o.key())).(*engine)
	if e == nil {
		s, err := newStore(o.kubeconfig)
		if err != nil {
			return plugin.Error(Name, err)
		}
		e = newEngine(o, s)
		c.Set(engineKey(o.key()), e)
		c.OnStartup(e.start)
		c.OnShutdown(e.shutdown)
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &Plugin{Next: next, engine: e} })
	return nil
}

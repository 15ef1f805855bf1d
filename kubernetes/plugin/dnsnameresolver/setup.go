package dnsnameresolver

import (
	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
)

// init makes the directive known to CoreDNS, as the init of every CoreDNS plugin does: the import that CoreDNS generates
// from a line of plugin.cfg is then all that a build needs. The order in plugin.cfg decides the place in the chain: before
// `cache`, so that the plugin sees replies from the cache, and before `dns64`, so that it sees the addresses clients get.
func init() { plugin.Register(Name, setup) }

// engineKey is the key of the engine that the server blocks of one Corefile share.
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

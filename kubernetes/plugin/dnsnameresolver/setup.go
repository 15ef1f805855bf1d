package dnsnameresolver

import (
	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
)

// init registers the directive with CoreDNS, as in every CoreDNS plugin: the import that CoreDNS generates from a line
// of plugin.cfg is all that a build needs. The order in plugin.cfg defines the position in the chain. The plugin is
// before `cache`, so that it sees replies from the cache. It is before `dns64`, so that it sees the addresses that
// clients get.
func init() { plugin.Register(Name, setup) }

// engineKey is the key of the engine that server blocks with the same options share.
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

package dnspeer

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// notify hears that a zone has changed at its master (RFC 1996). Only masters are heard: everybody else could make us ask them
// as often as they like.
func (c *conversation) notify() error {
	_, z, err := c.zoneOf()
	if err != nil {
		c.stat.notifies.WithLabelValues("unknown_zone").Inc()
		return c.fail("hear a NOTIFY", err)
	}
	if c.cfg.Notified == nil || z.Kind != zone.Secondary || !c.isMaster(z) {
		c.stat.notifies.WithLabelValues("refused").Inc()
		return c.refuse()
	}
	c.stat.notifies.WithLabelValues("heard").Inc()
	c.cfg.Notified(z.ID, c.m.From)
	c.head[2] |= wire.FlagAA >> 8
	return c.reply(dns.RcodeSuccess, wire.EDENone)
}

// isMaster reports whether the peer is a master of the zone, by its address or by its key.
func (c *conversation) isMaster(z zone.Zone) bool {
	if c.signed != nil && c.signed.key.For(z) {
		return true
	}
	return slices.ContainsFunc(z.Masters, func(m string) bool {
		a, err := transfer.ParseMaster(m)
		return err == nil && a.Addr() == c.m.From.Unmap().WithZone("")
	})
}

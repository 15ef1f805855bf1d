package dnspeer

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// notify handles a NOTIFY of a changed zone (RFC 1996). Only masters are accepted: any other client could make us query
// the masters as often as it likes.
func (r *request) notify() error {
	_, z, err := r.zoneOf()
	if err != nil {
		r.stat.notifies.WithLabelValues("unknown_zone").Inc()
		return r.fail("handle a NOTIFY", err)
	}
	if r.cfg.Notified == nil || z.Kind != zone.Secondary || !r.isMaster(z) {
		r.stat.notifies.WithLabelValues("refused").Inc()
		return r.refuse()
	}
	r.stat.notifies.WithLabelValues("heard").Inc()
	r.cfg.Notified(z.ID, r.m.From)
	r.head[2] |= wire.FlagAA >> 8
	return r.reply(dns.RcodeSuccess, wire.EDENone)
}

// isMaster reports whether the peer is a master of the zone, by its address or by its key.
func (r *request) isMaster(z zone.Zone) bool {
	if r.signed != nil && r.signed.key.MayTransfer(z) {
		return true
	}
	return slices.ContainsFunc(z.Masters, func(m string) bool {
		a, err := transfer.ParseMaster(m)
		return err == nil && a.Addr() == r.m.From.Unmap().WithZone("")
	})
}

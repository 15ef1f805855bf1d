package dnspeer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/update"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// update makes a dynamic update (RFC 2136). Nobody may who does not sign with a key that is for the zone.
func (c *conversation) update(sig *wire.TSIG) error {
	if c.signed != nil {
		now := time.Now()
		if v := c.replays.begin(sig, now); v != fresh {
			c.stat.signatures.WithLabelValues("replay").Inc()
			if v == underway {
				return nil
			}
			return c.badTime(c.signed, sig, now)
		}
		defer c.replays.end(sig)
	}
	rcode := c.tryUpdate()
	c.stat.updates.WithLabelValues(wire.RcodeText(rcode)).Inc()
	ede := wire.EDENone
	if rcode == dns.RcodeRefused {
		ede = wire.EDEProhibited
	}
	return c.reply(rcode, ede)
}

func (c *conversation) tryUpdate() int {
	if c.q.Question[0].Qtype != dns.TypeSOA { // RFC 2136 §3.1.1; the name server has seen that there is one
		return dns.RcodeFormatError
	}
	_, z, err := c.zoneOf()
	switch {
	case errors.Is(err, errNoZone):
		return dns.RcodeNotAuth
	case err != nil:
		c.cfg.Log.Error("update", "zone", c.name.String(), "peer", c.who(), "error", err)
		return dns.RcodeServerFailure
	case c.signed == nil || !c.signed.key.For(z):
		return dns.RcodeRefused
	}
	var m update.Message
	if m.Prerequisites, err = records(c.q.Answer); err == nil {
		m.Updates, err = records(c.q.Ns)
	}
	if err != nil {
		return dns.RcodeFormatError
	}
	actor := store.Actor{Who: strings.TrimSuffix(c.signed.key.Name.String(), "."), Project: z.Project, Door: "update"}
	err = c.cfg.Publisher.Commit(c.ctx, actor, func(tx *publish.Tx) error {
		cur, err := tx.Zone(z.ID)
		if err != nil {
			return err
		}
		return update.Apply(tx, cur, m)
	})
	return c.rcodeOf(err)
}

// rcodeOf is the answer to an update that came to err.
func (c *conversation) rcodeOf(err error) int {
	if err == nil {
		return dns.RcodeSuccess
	}
	level := c.cfg.Log.Info
	rcode := dns.RcodeServerFailure
	if e, ok := errors.AsType[*update.Error](err); ok {
		rcode = e.Rcode
	} else if _, ok := errors.AsType[*zone.PlacementError](err); ok {
		rcode = dns.RcodeRefused
	} else if _, ok := errors.AsType[*zone.InvalidError](err); ok {
		rcode = dns.RcodeRefused
	} else if _, ok := errors.AsType[*publish.QuotaError](err); ok {
		rcode = dns.RcodeRefused
	} else if errors.Is(err, store.ErrNotFound) {
		rcode = dns.RcodeNotAuth
	} else {
		level = c.cfg.Log.Error
	}
	level("update not made", "zone", c.name.String(), "peer", c.who(), "rcode", wire.RcodeText(rcode), "error", err)
	return rcode
}

// records reads a section of an update.
func records(section []dns.RR) ([]update.Record, error) {
	out := make([]update.Record, 0, len(section))
	for _, rec := range section {
		h := rec.Header()
		name, err := dnsname.Parse(h.Name)
		if err != nil {
			return nil, err
		}
		r := update.Record{Name: name, Type: rr.Type(h.Rrtype), Class: h.Class, TTL: h.Ttl}
		if h.Rdlength > 0 {
			if r.Data, err = rr.FromRR(rec); err != nil {
				return nil, fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

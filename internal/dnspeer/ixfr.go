package dnspeer

import (
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// minDifference is how long a difference may be in any case, and octetsPerRecord about what a record of an AXFR takes: a longer
// difference than the zone is not worth its name.
const (
	minDifference   = 16 << 10
	octetsPerRecord = 32
)

// ixfr tells how a zone came to be what it is (RFC 1995).
func (c *conversation) ixfr() error {
	n, z, err := c.zoneOf()
	if err != nil {
		return c.fail("transfer", err)
	}
	if !c.mayTransfer(z) {
		c.stat.transfer("ixfr", "refused")
		return c.refuse()
	}
	if len(c.q.Ns) != 1 {
		return c.reply(dns.RcodeFormatError, wire.EDENone)
	}
	has, ok := c.q.Ns[0].(*dns.SOA)
	if !ok {
		return c.reply(dns.RcodeFormatError, wire.EDENone)
	}
	_, served := n.Find(nil).Find(rr.TypeSOA)
	if !served || int32(has.Serial-n.Serial()) >= 0 { // RFC 1982; a copy that has expired is in the journal still
		return c.sendSOA(n)
	}
	var diffs []transfer.Difference
	err = c.cfg.Publisher.View(func(v store.View) (err error) {
		if z, err = v.Zone(z.ID); err != nil {
			return err
		}
		diffs, ok = transfer.Since(v, z, has.Serial, max(minDifference, z.Records*octetsPerRecord))
		return nil
	})
	switch {
	case err != nil:
		return c.fail("read the journal", err)
	case !c.m.TCP:
		return c.ixfrUDP(n, diffs, ok)
	case !ok || len(diffs) == 0:
		return c.transferring("axfr", z, func() error { return c.sendZone(n) })
	}
	return c.transferring("ixfr", z, func() error {
		s := c.newStream()
		if err := s.putDifferences(c.name, diffs, s.flush); err != nil {
			return err
		}
		return s.flush()
	})
}

// ixfrUDP answers in one message: with the difference, or with the SOA alone, which sends the client to TCP (RFC 1995 §4).
func (c *conversation) ixfrUDP(n *zone.Nodes, diffs []transfer.Difference, ok bool) error {
	if !ok || len(diffs) == 0 {
		return c.sendSOA(n)
	}
	s := c.newStream()
	s.packer = newPacker(c.head, c.m.Limit, c.m.Limit, c.reserve())
	if s.putDifferences(c.name, diffs, func() error { return errTooLarge }) != nil {
		return c.sendSOA(n)
	}
	c.stat.transfer("ixfr", "done")
	return s.flush()
}

// putDifferences writes the SOA, all differences, and the SOA again.
func (p *packer) putDifferences(apex dnsname.Name, diffs []transfer.Difference, flush func() error) error {
	newest := diffs[len(diffs)-1].Added[:1]
	parts := [][]rr.Set{newest}
	for _, d := range diffs {
		parts = append(parts, d.Removed, d.Added)
	}
	for _, sets := range append(parts, newest) {
		for _, s := range sets {
			if err := p.putData(s.Name.In(apex), s, flush); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendSOA answers that there is nothing newer, or nothing that fits.
func (c *conversation) sendSOA(n *zone.Nodes) error {
	soa, ok := n.Find(nil).Find(rr.TypeSOA)
	if !ok {
		return c.reply(dns.RcodeServerFailure, wire.EDENotReady)
	}
	c.stat.transfer("ixfr", "soa")
	s := c.newStream()
	if err := s.putSet("", soa, s.flush); err != nil {
		return err
	}
	return s.flush()
}

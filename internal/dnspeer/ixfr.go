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

// A difference may have minDifference bytes, or as many as the zone, at about bytesPerRecord bytes for each record in
// an AXFR. A difference that is larger than the zone has no benefit.
const (
	minDifference  = 16 << 10
	bytesPerRecord = 32
)

// ixfr sends the differences between the client's serial and ours (RFC 1995).
func (r *request) ixfr() error {
	n, z, err := r.zoneOf()
	if err != nil {
		return r.fail("transfer", err)
	}
	if !r.mayTransfer(z) {
		return r.refuseTransfer("ixfr")
	}
	if len(r.q.Ns) != 1 {
		return r.reply(dns.RcodeFormatError, wire.EDENone)
	}
	has, ok := r.q.Ns[0].(*dns.SOA)
	if !ok {
		return r.reply(dns.RcodeFormatError, wire.EDENone)
	}
	_, served := n.Find(nil).Find(rr.TypeSOA)
	if !served || int32(has.Serial-n.Serial()) >= 0 { // RFC 1982; an expired copy is still in the journal
		return r.sendSOA(n)
	}
	var diffs []transfer.Difference
	err = r.cfg.Publisher.View(func(v store.View) (err error) {
		if z, err = v.Zone(z.ID); err != nil {
			return err
		}
		diffs, ok = transfer.Since(v, z, has.Serial, max(minDifference, z.Records*bytesPerRecord))
		return nil
	})
	switch {
	case err != nil:
		return r.fail("read the journal", err)
	case !r.m.TCP:
		return r.ixfrUDP(n, diffs, ok)
	case !ok || len(diffs) == 0:
		return r.runTransfer("axfr", z, func() error { return r.sendZone(n) })
	}
	return r.runTransfer("ixfr", z, func() error {
		s := r.newStream()
		if err := s.putDifferences(r.name, diffs, s.flush); err != nil {
			return err
		}
		return s.flush()
	})
}

// ixfrUDP answers in one message: with the difference, or with the SOA alone, which sends the client to TCP (RFC 1995
// §4).
func (r *request) ixfrUDP(n *zone.Nodes, diffs []transfer.Difference, ok bool) error {
	if !ok || len(diffs) == 0 {
		return r.sendSOA(n)
	}
	s := r.newStream()
	s.packer = newPacker(r.head, r.m.Limit, r.m.Limit, r.reserved())
	if s.putDifferences(r.name, diffs, func() error { return errTooLarge }) != nil {
		return r.sendSOA(n)
	}
	r.stat.transfer("ixfr", "done")
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
func (r *request) sendSOA(n *zone.Nodes) error {
	soa, ok := n.Find(nil).Find(rr.TypeSOA)
	if !ok {
		return r.reply(dns.RcodeServerFailure, wire.EDENotReady)
	}
	r.stat.transfer("ixfr", "soa")
	s := r.newStream()
	if err := s.putSet("", soa, s.flush); err != nil {
		return err
	}
	return s.flush()
}

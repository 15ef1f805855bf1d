package dnspeer

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// messageSize is what a message of a transfer aims at. Beyond 16 KiB pointers do not reach, and every record of a name
// would have to spell it out; four times as many messages cost nothing that can be measured. The packer relies on it.
const messageSize = 16 << 10

// axfr gives a whole zone away (RFC 5936).
func (c *conversation) axfr() error {
	n, z, err := c.zoneOf()
	if err != nil {
		return c.fail("transfer", err)
	}
	if !c.mayTransfer(z) {
		c.stat.transfer("axfr", "refused")
		return c.refuse()
	}
	if !c.m.TCP {
		return c.reply(dns.RcodeFormatError, wire.EDENone) // RFC 5936 §4.2
	}
	return c.transferring("axfr", z, func() error { return c.sendZone(n) })
}

// sendZone sends all records of a zone, the SOA first and last. Nodes are immutable: whoever reads slowly has an old
// state, and a whole one.
func (c *conversation) sendZone(n *zone.Nodes) error {
	soa, ok := n.Find(nil).Find(rr.TypeSOA)
	if !ok {
		return c.reply(dns.RcodeServerFailure, wire.EDENotReady)
	}
	s := c.newStream()
	if err := s.putSet("", soa, s.flush); err != nil {
		return err
	}
	var failed error
	n.Walk(func(labels string, r zone.Records) bool {
		if labels == "" && r.Type == rr.TypeSOA {
			return true
		}
		failed = s.putSet(labels, r, s.flush)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	if err := s.putSet("", soa, s.flush); err != nil {
		return err
	}
	return s.flush()
}

// stream is a transfer on its way.
type stream struct {
	*packer
	c     *conversation
	begun bool
}

func (c *conversation) newStream() *stream {
	c.head[2] |= wire.FlagAA >> 8
	return &stream{packer: newPacker(c.head, messageSize, wire.MaxSize, c.reserve()), c: c}
}

// flush sends the message that is full, and begins the next.
func (s *stream) flush() error {
	msg := s.message()
	if !s.begun {
		msg = s.c.appendOPT(msg, wire.EDENone) // RFC 5936 §2.2.5: in the first message at least
		s.begun = true
	}
	if err := context.Cause(s.c.ctx); err != nil { // the time of the transfer is over
		return err
	}
	s.c.stat.octets.Add(float64(len(msg)))
	err := s.c.send(msg)
	s.reset()
	return err
}

// mayTransfer reports whether the peer may have a zone.
func (c *conversation) mayTransfer(z zone.Zone) bool {
	return c.mayTransferAll() || c.signed != nil && c.signed.key.For(z)
}

// mayTransferAll reports whether the peer may have every zone: it is the operator's.
func (c *conversation) mayTransferAll() bool {
	r := c.rules.Load()
	return slices.ContainsFunc(r.Networks, func(p netip.Prefix) bool { return p.Contains(c.m.From) }) ||
		c.signed != nil && slices.Contains(r.Keys, c.signed.key.Name)
}

// transferring runs a transfer when there is room for it.
func (c *conversation) transferring(kind string, z zone.Zone, fn func() error) error {
	by := parties{client: transfer.SourceOf(c.m.From)}
	if !c.mayTransferAll() {
		by.project = z.Project
	}
	if !c.slots.take(c.ctx, by, patience) {
		c.stat.transfer(kind, "over_bound")
		return c.reply(dns.RcodeServerFailure, wire.EDENone)
	}
	defer c.slots.give(by)
	ctx, cancel := context.WithTimeoutCause(c.ctx, longest, errSlow)
	defer cancel()
	c.ctx = ctx
	c.stat.running.Inc()
	defer c.stat.running.Dec()
	start := time.Now()
	err := fn()
	if err != nil {
		c.stat.transfer(kind, "broken")
		c.cfg.Log.Warn("transfer broken off", "kind", kind, "zone", c.name.String(), "peer", c.who(), "error", err)
		return err
	}
	c.stat.transfer(kind, "done")
	c.cfg.Log.Debug("transferred", "kind", kind, "zone", c.name.String(), "peer", c.who(), "took", time.Since(start))
	return nil
}

var errSlow = errors.New("the reader took too long")

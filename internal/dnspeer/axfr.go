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

// messageSize is the target size of a message of a transfer. Compression pointers do not reach beyond 16 KiB, so larger
// messages would repeat the names. Four times as many messages cost nothing measurable. The packer relies on this size.
const messageSize = 16 << 10

// axfr sends a whole zone (RFC 5936).
func (r *request) axfr() error {
	n, z, err := r.zoneOf()
	if err != nil {
		return r.fail("transfer", err)
	}
	if !r.mayTransfer(z) {
		r.stat.transfer("axfr", "refused")
		return r.refuse()
	}
	if !r.m.TCP {
		return r.reply(dns.RcodeFormatError, wire.EDENone) // RFC 5936 §4.2
	}
	return r.runTransfer("axfr", z, func() error { return r.sendZone(n) })
}

// sendZone sends all records of a zone, the SOA first and last. Nodes are immutable: a slow reader gets an old but
// complete state.
func (r *request) sendZone(n *zone.Nodes) error {
	soa, ok := n.Find(nil).Find(rr.TypeSOA)
	if !ok {
		return r.reply(dns.RcodeServerFailure, wire.EDENotReady)
	}
	s := r.newStream()
	if err := s.putSet("", soa, s.flush); err != nil {
		return err
	}
	var failed error
	n.Walk(func(labels string, set zone.Records) bool {
		if labels == "" && set.Type == rr.TypeSOA {
			return true
		}
		failed = s.putSet(labels, set, s.flush)
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

// stream is a running transfer.
type stream struct {
	*packer
	req   *request
	begun bool
}

func (r *request) newStream() *stream {
	r.head[2] |= wire.FlagAA >> 8
	return &stream{packer: newPacker(r.head, messageSize, wire.MaxSize, r.reserved()), req: r}
}

// flush sends the current message and begins the next.
func (s *stream) flush() error {
	msg := s.message()
	if !s.begun {
		msg = s.req.appendOPT(msg, wire.EDENone) // RFC 5936 §2.2.5: at least in the first message
		s.begun = true
	}
	if err := context.Cause(s.req.ctx); err != nil { // the transfer has timed out
		return err
	}
	s.req.stat.bytes.Add(float64(len(msg)))
	err := s.req.send(msg)
	s.reset()
	return err
}

// mayTransfer reports whether the peer may transfer a zone.
func (r *request) mayTransfer(z zone.Zone) bool {
	return r.mayTransferAll() || r.signed != nil && r.signed.key.For(z)
}

// mayTransferAll reports whether the peer may transfer every zone: it belongs to the operator.
func (r *request) mayTransferAll() bool {
	rules := r.rules.Load()
	return slices.ContainsFunc(rules.Networks, func(p netip.Prefix) bool { return p.Contains(r.m.From) }) ||
		r.signed != nil && slices.Contains(rules.Keys, r.signed.key.Name)
}

// runTransfer runs a transfer as soon as a slot is free.
func (r *request) runTransfer(kind string, z zone.Zone, fn func() error) error {
	by := parties{client: transfer.SourceOf(r.m.From)}
	if !r.mayTransferAll() {
		by.project = z.Project
	}
	if !r.slots.acquire(r.ctx, by, maxWait) {
		r.stat.transfer(kind, "over_bound")
		return r.reply(dns.RcodeServerFailure, wire.EDENone)
	}
	defer r.slots.release(by)
	ctx, cancel := context.WithTimeoutCause(r.ctx, transferTimeout, errSlow)
	defer cancel()
	r.ctx = ctx
	r.stat.running.Inc()
	defer r.stat.running.Dec()
	start := time.Now()
	err := fn()
	if err != nil {
		r.stat.transfer(kind, "broken")
		r.cfg.Log.Warn("transfer failed", "kind", kind, "zone", r.name.String(), "peer", r.peer(), "error", err)
		return err
	}
	r.stat.transfer(kind, "done")
	r.cfg.Log.Debug("transferred", "kind", kind, "zone", r.name.String(), "peer", r.peer(), "took", time.Since(start))
	return nil
}

var errSlow = errors.New("the client read too slowly")

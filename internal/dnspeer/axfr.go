package dnspeer

import (
	"context"
	"crypto/tls"
	"errors"
	"net/netip"
	"slices"
	"strings"
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
		return r.refuseTransfer("axfr")
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
		msg = s.req.appendOPT(msg, wire.EDENone, "") // RFC 5936 §2.2.5: at least in the first message
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

// mayTransfer reports whether the peer may transfer a zone. RFC 9103 §7.2: over TLS, a transfer needs version 1.3.
func (r *request) mayTransfer(z zone.Zone) bool {
	if e := r.m.Encryption; e != nil && e.Version < tls.VersionTLS13 {
		return false
	}
	return r.mayTransferAll() || r.keyIsEnough() && r.signed.key.MayTransfer(z)
}

// refuseTransfer answers that the peer may not transfer the zone.
func (r *request) refuseTransfer(kind string) error {
	r.stat.transfer(kind, "refused")
	r.cfg.Log.Debug("transfer refused", "kind", kind, "zone", r.name.String(), "peer", r.peer())
	return r.refuse()
}

// mayTransferAll reports whether the peer may transfer every zone: it belongs to the operator.
func (r *request) mayTransferAll() bool {
	rules := r.rules.Load()
	return slices.ContainsFunc(rules.Networks, func(p netip.Prefix) bool { return p.Contains(r.m.From) }) ||
		slices.ContainsFunc(rules.Certificates, r.shows) ||
		r.keyIsEnough() && slices.Contains(rules.Keys, r.signed.key.Name)
}

// keyIsEnough reports whether the peer has signed with a key that no rule combines with a certificate.
func (r *request) keyIsEnough() bool {
	return r.signed != nil && !slices.ContainsFunc(r.rules.Load().Certificates, func(c Certificate) bool {
		return c.Key == r.signed.key.Name
	})
}

// shows reports whether the peer has the certificate and the key of a rule.
func (r *request) shows(c Certificate) bool {
	named := r.m.Encryption != nil && slices.ContainsFunc(r.m.Encryption.Names, func(name string) bool {
		return strings.EqualFold(strings.TrimSuffix(name, "."), strings.TrimSuffix(c.Name, "."))
	})
	return named && (c.Key.IsZero() || r.signed != nil && r.signed.key.Name == c.Key)
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

// Package dnspeer answers other name servers and dynamic-update clients: AXFR, IXFR, NOTIFY and UPDATE, with TSIG.
//
// Start with Server.Serve in this file: it verifies the signature of a message and calls the handler in axfr.go,
// ixfr.go, notify.go or update.go. reply.go builds replies, pack.go packs records into messages, and replay.go refuses
// replayed updates.
package dnspeer

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// Config configures a Server.
type Config struct {
	Publisher *publish.Publisher
	Keys      *transfer.Keyring
	Rules     Rules
	// Notified is called when a master of a SECONDARY zone announces a new serial; nil: there are no such zones.
	Notified func(zone uuid.UUID, from netip.Addr)
	Log      *slog.Logger // default: discard
	Budget   *budget.Budget
}

const (
	maxTransfers    = 32               // concurrent transfers; further ones wait for maxWait, then get SERVFAIL
	maxWait         = 10 * time.Second // maximum wait for a slot or for memory
	transferTimeout = time.Hour        // maximum duration of one transfer, however slow its reader
)

// Rules is the set of clients that may transfer every zone. In addition, keys of the tsigkeys API may transfer the
// zones in their scope.
type Rules struct {
	Networks []netip.Prefix
	Keys     []dnsname.Name
}

// Server answers messages of peers.
type Server struct {
	cfg   Config
	rules atomic.Pointer[Rules]
	slots *slots
	stat  *stats

	replays *replays
}

var _ dnsserver.Peers = (*Server)(nil)

// New returns a Server. It starts no goroutines.
func New(cfg Config) *Server {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := &Server{cfg: cfg, slots: newSlots(maxTransfers), stat: newStats(),
		replays: newReplays(time.Now(), cfg.timeSigned)}
	s.SetRules(cfg.Rules)
	return s
}

// timeSigned returns the newest stored Time Signed of the updates with a key, or 0.
func (c Config) timeSigned(key dnsname.Name) (int64, error) {
	return publish.Read(c.Publisher, func(v store.View) (int64, error) { return timeSigned(v, key) })
}

// SetRules replaces the rules for transfers.
func (s *Server) SetRules(r Rules) { s.rules.Store(&r) }

// request is one message of a peer and the state of its reply.
type request struct {
	*Server
	ctx    context.Context
	m      dnsserver.PeerMessage
	q      dns.Msg
	name   dnsname.Name // name in the question
	signed *session     // nil: the message was not signed
	opt    *dns.OPT     // nil: the message has no OPT record
	head   []byte       // header and question of every reply

	release func() // returns the memory of the message to the budget; it may be called twice
}

// Serve implements dnsserver.Peers.
func (s *Server) Serve(ctx context.Context, m dnsserver.PeerMessage) error {
	r := &request{Server: s, ctx: ctx, m: m}
	err := r.takeMemory(transfer.SourceOf(m.From.Unmap()).String())
	if err != nil {
		return r.replyHeader(dns.RcodeServerFailure)
	}
	defer func() { r.release() }()
	sig, ok := wire.ReadTSIG(m.Wire)
	if !ok || r.q.Unpack(m.Wire) != nil || len(r.q.Question) != 1 {
		return r.replyHeader(dns.RcodeFormatError)
	}
	if r.name, err = dnsname.Parse(r.q.Question[0].Name); err != nil {
		return r.replyHeader(dns.RcodeFormatError)
	}
	r.opt = r.q.IsEdns0()
	r.head = replyHead(m.Wire)
	if sig != nil {
		if done, err := r.authenticate(sig); done {
			return err
		}
	}
	switch {
	case r.q.Opcode == dns.OpcodeNotify:
		return r.notify()
	case r.q.Opcode == dns.OpcodeUpdate:
		return r.update(sig)
	case r.q.Question[0].Qtype == dns.TypeAXFR:
		return r.axfr()
	case r.q.Question[0].Qtype == dns.TypeIXFR:
		return r.ixfr()
	}
	return r.answerSigned(sig)
}

// messageMemory is the memory for each byte of a message, from unpacking to the commit of an update: a record of twenty
// bytes may become a record set of its own.
const messageMemory = 128

// takeMemory blocks until the budget has the memory for the message, and returns the memory of an earlier call. The
// owner is the source of the message, or the project of the zone for an update that is authenticated.
func (r *request) takeMemory(owner string) (err error) {
	if r.release != nil {
		r.release()
	}
	ctx, cancel := context.WithTimeout(r.ctx, maxWait)
	defer cancel()
	release, err := r.cfg.Budget.Take(ctx, owner, int64(len(r.m.Wire))*messageMemory)
	if err == nil {
		r.release = release
	}
	return err
}

// session is the exchange with a peer that signed its message.
type session struct {
	key transfer.Key
	wire.TSIGChain
}

// authenticate verifies the signature of the message. It returns true if that failed and was answered.
func (r *request) authenticate(sig *wire.TSIG) (bool, error) {
	key, found, err := r.cfg.Keys.Find(sig.Key)
	if err != nil {
		return true, r.fail("read the keys", err)
	}
	now := time.Now()
	s := &session{key, wire.TSIGChain{Key: key.TSIGKey}}
	code := uint16(wire.TSIGBadKey)
	if found {
		code = s.Verify(r.m.Wire, sig, now)
	}
	if code == wire.TSIGNoError {
		r.signed = s
		return false, nil
	}
	r.stat.signatures.WithLabelValues(wire.TSIGErrorText(code)).Inc()
	if code == wire.TSIGFormErr {
		return true, r.reply(dns.RcodeFormatError, wire.EDENone)
	}
	msg := r.unsignedReply(dns.RcodeNotAuth, wire.EDENone)
	switch code {
	case wire.TSIGBadTime:
		return true, r.badTime(s, sig, now)
	case wire.TSIGBadTrunc:
		return true, r.m.Send(s.Sign(msg, wire.TSIG{Time: uint64(now.Unix()), Error: code}))
	}
	// RFC 8945 §5.3.2: with an unknown or wrong key the reply cannot be signed.
	refusal := wire.TSIG{Key: sig.Key, Algorithm: sig.Algorithm, Time: sig.Time, Fudge: sig.Fudge, ID: sig.ID, Error: code}
	return true, r.m.Send(refusal.Append(msg))
}

// badTime answers that the time of a signature is not acceptable. RFC 8945 §5.2.3: the reply has the client's time, so
// that the client can verify it, and our time as other data.
func (r *request) badTime(s *session, sig *wire.TSIG, now time.Time) error {
	other := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))[2:]
	msg := r.unsignedReply(dns.RcodeNotAuth, wire.EDENone)
	return r.m.Send(s.Sign(msg, wire.TSIG{Time: sig.Time, Error: wire.TSIGBadTime, Other: other}))
}

// answerSigned answers a signed query that is not special to this package, such as a query for the SOA by a secondary.
func (r *request) answerSigned(sig *wire.TSIG) error {
	if r.signed == nil {
		return r.reply(dns.RcodeRefused, wire.EDENone)
	}
	query := append([]byte(nil), r.m.Wire[:sig.At]...)
	query[11]-- // one record less; the count was at least one
	if query[11] == 0xFF {
		query[10]--
	}
	return r.send(r.m.Answer(query, r.signed.Size()))
}

// zoneOf returns the zone of the question, as it is served and as it is stored. Overlays are not visible as zones.
func (r *request) zoneOf() (*zone.Nodes, zone.Zone, error) {
	snap := r.cfg.Publisher.Snapshot()
	if snap == nil {
		return nil, zone.Zone{}, errNoZone
	}
	n := snap.ZoneOf(r.name)
	if n == nil || n.IsOverlay() || r.q.Question[0].Qclass != dns.ClassINET {
		return nil, zone.Zone{}, errNoZone
	}
	var z zone.Zone
	err := r.cfg.Publisher.View(func(v store.View) (err error) { z, err = v.Zone(n.ID()); return err })
	if errors.Is(err, store.ErrNotFound) {
		err = errNoZone // deleted in this moment
	}
	return n, z, err
}

// peer returns the name of the peer for the log.
func (r *request) peer() string {
	if r.signed != nil {
		return r.m.From.String() + " with key " + r.signed.key.Name.String()
	}
	return r.m.From.String()
}

var (
	errNoZone   = errors.New("no such zone")
	errTooLarge = errors.New("a record does not fit a message")
)

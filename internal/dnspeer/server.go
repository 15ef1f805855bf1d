// Package dnspeer answers other name servers and dynamic-update clients: AXFR, IXFR, NOTIFY and UPDATE, with TSIG.
//
// Start with Server.Serve in this file: it verifies the signature of a message and calls the handler in axfr.go,
// ixfr.go, notify.go or update.go. reply.go builds replies, pack.go packs records into messages, refusal.go reports
// refused updates, and replay.go refuses replayed ones.
package dnspeer

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
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
	Networks     []netip.Prefix
	Keys         []dnsname.Name
	Certificates []Certificate
}

// Certificate is a rule for clients with a certificate of the CA for other servers. It needs TLS: the same client
// without TLS, or with another certificate of that CA, is not covered by the rule.
type Certificate struct {
	Name string       // DNS name in the certificate
	Key  dnsname.Name // TSIG key that the client must use, too; zero: none
}

// Server answers messages of peers.
type Server struct {
	cfg   Config
	rules atomic.Pointer[Rules]
	slots *slots
	stat  *stats

	replays  *replays
	refusals *refusalLog
}

var _ dnsserver.Peers = (*Server)(nil)

// New returns a Server. It starts no goroutines.
func New(cfg Config) *Server {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := &Server{cfg: cfg, slots: newSlots(maxTransfers), stat: newStats(),
		replays: newReplays(time.Now(), cfg.timeSigned), refusals: newRefusalLog()}
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
	head   []byte       // header and question of every reply
	optAt  int          // offset of the OPT record in the reply that is not yet sent; 0 for none

	release func() // returns the memory of the message to the budget; it may be called twice
}

// Serve implements dnsserver.Peers. It verifies the signature before it parses the records: anyone can send a large
// message with a forged source address, and every later error must be in a signed reply.
func (s *Server) Serve(ctx context.Context, m dnsserver.PeerMessage) error {
	r := &request{Server: s, ctx: ctx, m: m, head: replyHead(m.Wire)}
	sig, ok := wire.ReadTSIG(m.Wire)
	if !ok {
		return r.replyHeader(dns.RcodeFormatError)
	}
	if len(r.head) > wire.HeaderSize {
		r.name, _, _ = dnsname.FromWire(r.head[wire.HeaderSize:]) // replyHead has read it, too
	}
	if sig != nil {
		if done, err := r.authenticate(sig); done {
			return err
		}
	}
	switch {
	case m.Rejected == dns.RcodeFormatError || m.Rejected == 0 && r.name.IsZero():
		return r.malformed("the message is malformed")
	case m.Rejected != 0:
		return r.reply(m.Rejected, wire.EDENone)
	case r.signed == nil && r.isUpdate():
		return r.refuseUpdate(unsigned)
	}
	if err := r.takeMemory(transfer.SourceOf(m.From.Unmap()).String()); err != nil {
		return r.reply(dns.RcodeServerFailure, wire.EDENone)
	}
	defer func() { r.release() }()
	if err := r.q.Unpack(m.Wire); err != nil {
		return r.malformed("the records cannot be read: " + err.Error())
	}
	return r.dispatch(sig)
}

// malformed answers FORMERR.
func (r *request) malformed(why string) error {
	if r.isUpdate() {
		return r.refuseUpdate(refusal{dns.RcodeFormatError, wire.EDEOther, "content", why})
	}
	return r.reply(dns.RcodeFormatError, wire.EDENone)
}

// isUpdate reports whether the message is a dynamic update.
func (r *request) isUpdate() bool { return r.m.Wire[2]>>3&0xF == dns.OpcodeUpdate }

// dispatch calls the handler of the message.
func (r *request) dispatch(sig *wire.TSIG) error {
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

// authenticate verifies the signature of the message. It returns true if the verification failed; then it has sent the
// reply.
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
	why := signatureProblem(sig, code)
	if r.isUpdate() {
		r.logRefusal(refusal{rcode: dns.RcodeNotAuth, kind: "signature", reason: why})
	}
	msg := r.unsignedReply(dns.RcodeNotAuth, wire.EDEProhibited, why)
	switch code {
	case wire.TSIGBadTime:
		return true, r.badTime(s, sig, now, why)
	case wire.TSIGBadTrunc:
		return true, r.m.Send(s.Sign(msg, wire.TSIG{Time: uint64(now.Unix()), Error: code}))
	}
	// RFC 8945 §5.3.2: with an unknown or wrong key the reply cannot be signed.
	refusal := wire.TSIG{Key: sig.Key, Algorithm: sig.Algorithm, Time: sig.Time, Fudge: sig.Fudge, ID: sig.ID, Error: code}
	return true, r.m.Send(refusal.Append(msg))
}

// badTime answers that the time of a signature is not acceptable. RFC 8945 §5.2.3: the reply has the client's time, so
// that the client can verify it, and our time as other data.
func (r *request) badTime(s *session, sig *wire.TSIG, now time.Time, why string) error {
	other := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))[2:]
	msg := r.unsignedReply(dns.RcodeNotAuth, wire.EDEProhibited, why)
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
	text := r.m.From.String()
	if e := r.m.Encryption; e != nil {
		text += " over " + tls.VersionName(e.Version)
		if len(e.Names) > 0 {
			text += " with the certificate of " + strings.Join(e.Names, ", ")
		}
	}
	if r.signed != nil {
		text += " with key " + r.signed.key.Name.String()
	}
	return text
}

var (
	errNoZone   = errors.New("no such zone")
	errTooLarge = errors.New("a record does not fit a message")
)

// Package dnspeer speaks with other name servers, and with those who keep zones by DNS: it gives zones away (AXFR, IXFR), hears
// that others have changed (NOTIFY), takes changes (UPDATE), and believes what is signed (TSIG).
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
	// Notified is told that a master of a SECONDARY zone has something new; nil: there are no such zones.
	Notified func(zone uuid.UUID, from netip.Addr)
	Log      *slog.Logger // default: none
	Budget   *budget.Budget
}

const (
	maxTransfers = 32               // at once; those beyond wait for patience, then get SERVFAIL
	patience     = 10 * time.Second // for a slot
	longest      = time.Hour        // time for one transfer, however slow its reader
)

// Rules say who may transfer every zone. Keys of the API may transfer the zones they are for as well.
type Rules struct {
	Networks []netip.Prefix
	Keys     []dnsname.Name
}

// Server answers peers.
type Server struct {
	cfg   Config
	rules atomic.Pointer[Rules]
	slots *slots
	stat  *stats

	replays *replays
}

var _ dnsserver.Peers = (*Server)(nil)

// New starts nothing.
func New(c Config) *Server {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	s := &Server{cfg: c, slots: newSlots(maxTransfers), stat: newStats(), replays: newReplays(time.Now())}
	s.SetRules(c.Rules)
	return s
}

// SetRules changes who may transfer.
func (s *Server) SetRules(r Rules) { s.rules.Store(&r) }

// conversation is one message and what is said to it.
type conversation struct {
	*Server
	ctx    context.Context
	m      dnsserver.PeerMessage
	q      dns.Msg
	name   dnsname.Name // of the question
	signed *session     // nil: the message was not signed
	opt    *dns.OPT     // nil: none
	head   []byte       // header and question of every reply
}

// Serve implements dnsserver.Peers.
func (s *Server) Serve(ctx context.Context, m dnsserver.PeerMessage) error {
	c := &conversation{Server: s, ctx: ctx, m: m}
	release, err := s.takeMemory(ctx, m)
	if err != nil {
		return c.bare(dns.RcodeServerFailure)
	}
	defer release()
	sig, ok := wire.ReadTSIG(m.Wire)
	if !ok || c.q.Unpack(m.Wire) != nil || len(c.q.Question) != 1 {
		return c.bare(dns.RcodeFormatError)
	}
	if c.name, err = dnsname.Parse(c.q.Question[0].Name); err != nil {
		return c.bare(dns.RcodeFormatError)
	}
	c.opt = c.q.IsEdns0()
	c.head = replyHead(m.Wire)
	if sig != nil {
		if done, err := c.authenticate(sig); done {
			return err
		}
	}
	switch {
	case c.q.Opcode == dns.OpcodeNotify:
		return c.notify()
	case c.q.Opcode == dns.OpcodeUpdate:
		return c.update(sig)
	case c.q.Question[0].Qtype == dns.TypeAXFR:
		return c.axfr()
	case c.q.Question[0].Qtype == dns.TypeIXFR:
		return c.ixfr()
	}
	return c.ordinary(sig)
}

// messageMemory is what a message takes for each of its bytes, from its records to the commit of an update: a record of
// twenty bytes may become a record set of its own.
const messageMemory = 128

// takeMemory waits for the memory that a message takes.
func (s *Server) takeMemory(ctx context.Context, m dnsserver.PeerMessage) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.cfg.Budget.Take(ctx, m.From.String(), int64(len(m.Wire))*messageMemory)
}

// session is the exchange with a peer that has signed its message.
type session struct {
	key transfer.Key
	wire.TSIGChain
}

// authenticate finds out whether the message was signed with a key that we know. It reports true when it was not, and that was
// answered.
func (c *conversation) authenticate(sig *wire.TSIG) (bool, error) {
	key, found, err := c.cfg.Keys.Find(sig.Key)
	if err != nil {
		return true, c.fail("read the keys", err)
	}
	now := time.Now()
	s := &session{key, wire.TSIGChain{Key: key.TSIGKey}}
	code := uint16(wire.TSIGBadKey)
	if found {
		code = s.Verify(c.m.Wire, sig, now)
	}
	if code == wire.TSIGNoError {
		c.signed = s
		return false, nil
	}
	c.stat.signatures.WithLabelValues(wire.TSIGErrorText(code)).Inc()
	if code == wire.TSIGFormErr {
		return true, c.reply(dns.RcodeFormatError, wire.EDENone)
	}
	msg := c.plain(dns.RcodeNotAuth, wire.EDENone)
	switch code {
	case wire.TSIGBadTime:
		return true, c.badTime(s, sig, now)
	case wire.TSIGBadTrunc:
		return true, c.m.Send(s.Sign(msg, wire.TSIG{Time: uint64(now.Unix()), Error: code}))
	}
	// RFC 8945 §5.3.2: neither an unknown key nor a wrong one can sign the reply.
	refusal := wire.TSIG{Key: sig.Key, Algorithm: sig.Algorithm, Time: sig.Time, Fudge: sig.Fudge, ID: sig.ID, Error: code}
	return true, c.m.Send(refusal.Append(msg))
}

// badTime answers that a message was not signed at a time that can be taken. RFC 8945 §5.2.3: the reply has the client's
// time, so that the client can verify it, and ours as other data.
func (c *conversation) badTime(s *session, sig *wire.TSIG, now time.Time) error {
	other := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))[2:]
	msg := c.plain(dns.RcodeNotAuth, wire.EDENone)
	return c.m.Send(s.Sign(msg, wire.TSIG{Time: sig.Time, Error: wire.TSIGBadTime, Other: other}))
}

// ordinary answers a query that is signed but asks nothing special, such as a secondary's for the SOA.
func (c *conversation) ordinary(sig *wire.TSIG) error {
	if c.signed == nil {
		return c.reply(dns.RcodeRefused, wire.EDENone)
	}
	query := append([]byte(nil), c.m.Wire[:sig.At]...)
	query[11]-- // one record less; it cannot have been none
	if query[11] == 0xFF {
		query[10]--
	}
	return c.send(c.m.Answer(query, c.signed.Size()))
}

// zoneOf is the zone of the question, as it is served and as its owner has it. Overlays are no zones to anybody outside.
func (c *conversation) zoneOf() (*zone.Nodes, zone.Zone, error) {
	snap := c.cfg.Publisher.Snapshot()
	if snap == nil {
		return nil, zone.Zone{}, errNoZone
	}
	n := snap.ZoneOf(c.name)
	if n == nil || n.IsOverlay() || c.q.Question[0].Qclass != dns.ClassINET {
		return nil, zone.Zone{}, errNoZone
	}
	var z zone.Zone
	err := c.cfg.Publisher.View(func(v store.View) (err error) { z, err = v.Zone(n.ID()); return err })
	if errors.Is(err, store.ErrNotFound) {
		err = errNoZone // deleted at this moment
	}
	return n, z, err
}

// who is how the log calls the peer.
func (c *conversation) who() string {
	if c.signed != nil {
		return c.m.From.String() + " with key " + c.signed.key.Name.String()
	}
	return c.m.From.String()
}

var (
	errNoZone   = errors.New("no such zone")
	errTooLarge = errors.New("a record does not fit a message")
)

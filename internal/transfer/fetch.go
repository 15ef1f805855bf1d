package transfer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// request is a request for a zone from a master.
type request struct {
	master netip.AddrPort
	tls    *tls.Config // nil: TCP without TLS
	zone   dnsname.Name
	key    Key     // zero: unsigned
	has    *uint32 // serial of our copy, to request only the difference; nil: the whole zone
	to     *spool
	check  func(*incoming) error // incoming.check
}

const (
	dialTime = 5 * time.Second

	// A transfer holds a slot for which other zones wait. A master may be silent for stallTime, because it may have to
	// compute a difference first. Every slowest bytes that it sends extend the deadline by one second, up to stallTime
	// from now.
	stallTime = 10 * time.Second
	slowest   = 8 << 10
)

// fetch transfers a zone, or the difference to our copy, over TCP or TLS.
func fetch(ctx context.Context, r request) (*incoming, error) {
	conn, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return r.transferOver(conn)
}

func (r request) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if r.tls != nil {
		return (&tls.Dialer{Config: r.tls}).DialContext(ctx, "tcp", r.master.String())
	}
	return new(net.Dialer).DialContext(ctx, "tcp", r.master.String())
}

// transferOver requests the zone on a connection and reads the answer.
func (r request) transferOver(conn net.Conn) (*incoming, error) {
	v, err := r.ask(conn)
	if err != nil {
		return nil, err
	}
	c := &incoming{apex: r.zone, has: r.has, to: r.to, check: r.check}
	in := &paced{conn: conn, end: time.Now().Add(stallTime)}
	var buf []byte
	for !c.done {
		raw, err := in.message(buf)
		if err != nil {
			return nil, err
		}
		if err := c.addMessage(raw, v); err != nil {
			return nil, err
		}
		buf = raw
	}
	return c, v.end()
}

// ask sends the query.
func (r request) ask(conn net.Conn) (*verifier, error) {
	m := new(dns.Msg)
	if r.has == nil {
		m.SetAxfr(r.zone.String())
	} else {
		m.SetIxfr(r.zone.String(), *r.has, ".", ".")
	}
	query, err := m.Pack()
	if err != nil {
		return nil, err
	}
	v := &verifier{id: m.Id}
	if !r.key.Name.IsZero() {
		v.chain = &wire.TSIGChain{Key: r.key.TSIGKey}
		query = v.chain.Sign(query, wire.TSIG{Time: uint64(time.Now().Unix())})
	}
	conn.SetDeadline(time.Now().Add(stallTime))
	_, err = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...))
	return v, err
}

// paced reads from a connection whose peer must send at least slowest bytes per second.
type paced struct {
	conn net.Conn
	end  time.Time // deadline of the peer
}

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	p.conn.SetReadDeadline(p.end)
	n, err := p.conn.Read(b)
	p.end = p.end.Add(time.Duration(n) * time.Second / slowest)
	if most := time.Now().Add(stallTime); p.end.After(most) {
		p.end = most
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the master sends fewer than %d bytes per second: %w", slowest, err)
	}
	return n, err
}

// message reads the next message into buf, which it grows if needed.
func (p *paced) message(buf []byte) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(p, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	buf = slices.Grow(buf[:0], n)[:n]
	_, err := io.ReadFull(p, buf)
	return buf, err
}

var errMalformed = errors.New("a message of the transfer is malformed")

// addMessage adds the records of one message, one by one: unpacked together, the records of one message can take a
// hundred times its size.
func (c *incoming) addMessage(raw []byte, v *verifier) error {
	if len(raw) < wire.HeaderSize {
		return errMalformed
	}
	if err := v.verify(raw); err != nil {
		return err
	}
	flags := binary.BigEndian.Uint16(raw[2:])
	if rcode := int(flags & 0xF); flags&wire.FlagQR == 0 || rcode != dns.RcodeSuccess {
		return fmt.Errorf("the transfer was answered with %s", wire.RcodeText(rcode))
	}
	at := wire.HeaderSize
	for range binary.BigEndian.Uint16(raw[4:]) {
		var ok bool
		if at, ok = wire.SkipName(raw, at); !ok {
			return errMalformed
		}
		at += 4 // type and class
	}
	answers := binary.BigEndian.Uint16(raw[6:])
	if answers == 0 {
		return errors.New("a message of the transfer has no records")
	}
	for range answers {
		rec, next, err := dns.UnpackRR(raw, at)
		if err != nil {
			return err
		}
		if err := c.add(rec); err != nil {
			return err
		}
		at = next
	}
	if c.count == 1 && c.has != nil && int32(c.serial-*c.has) <= 0 { // RFC 1982: the master has nothing newer
		c.done = true
	}
	return nil
}

// verifier checks the signatures of the messages of a transfer (RFC 8945 §5.3.1).
type verifier struct {
	id     uint16
	chain  *wire.TSIGChain // nil: unsigned
	signed bool            // the first message was signed
	count  int             // number of messages since the last signature
}

// maxUnsigned is the largest number of messages in a row without a signature.
const maxUnsigned = 99

var errUnsigned = errors.New("the answer is not signed, but the query was")

// verify checks a message, which has at least a header.
func (v *verifier) verify(raw []byte) error {
	if binary.BigEndian.Uint16(raw) != v.id {
		return errors.New("the answer has the ID of another query")
	}
	if v.chain == nil {
		return nil
	}
	sig, ok := wire.ReadTSIG(raw)
	switch {
	case !ok:
		return errors.New("the signature of the answer is malformed")
	case sig == nil:
		if v.count++; !v.signed || v.count > maxUnsigned {
			return errUnsigned
		}
		v.chain.Unsigned(raw)
		return nil
	case sig.Error != wire.TSIGNoError:
		return fmt.Errorf("the master refuses our signature: %s", wire.TSIGErrorText(sig.Error))
	}
	if code := v.chain.Verify(raw, sig, time.Now()); code != wire.TSIGNoError {
		return fmt.Errorf("the signature of the answer is wrong: %s", wire.TSIGErrorText(code))
	}
	v.signed, v.count = true, 0
	return nil
}

// end returns an error if the last messages were not signed.
func (v *verifier) end() error {
	if v.count > 0 {
		return errUnsigned
	}
	return nil
}

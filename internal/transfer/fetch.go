package transfer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// request is a zone that is wanted from a master.
type request struct {
	master netip.AddrPort
	zone   dnsname.Name
	key    Key     // the zero Key for none
	has    *uint32 // serial of our copy: only the difference is wanted; nil: all of it
	limit  int     // octets
}

const (
	dialTime  = 5 * time.Second
	stallTime = 30 * time.Second // between two messages; a master may first have to compute a difference

	// Who sends drop by drop holds a place that other zones wait for. A transfer has graceTime, and a second more for each
	// slowest octets that have come.
	graceTime = time.Minute
	slowest   = 8 << 10
)

// fetch transfers a zone, or the difference to our copy, over TCP.
func fetch(ctx context.Context, r request) (*copied, error) {
	d := net.Dialer{Timeout: dialTime}
	conn, err := d.DialContext(ctx, "tcp", r.master.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	v, err := r.ask(conn)
	if err != nil {
		return nil, err
	}
	c := &copied{apex: r.zone, has: r.has, limit: r.limit}
	start := time.Now()
	for total := 0; !c.done; {
		raw, err := readMessage(conn, start.Add(graceTime+time.Duration(total/slowest)*time.Second))
		if err != nil {
			return nil, err
		}
		total += len(raw)
		if err := c.take(raw, v); err != nil {
			return nil, err
		}
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

// readMessage waits for the next message, but not beyond end.
func readMessage(conn net.Conn, end time.Time) ([]byte, error) {
	if stalled := time.Now().Add(stallTime); stalled.Before(end) {
		end = stalled
	}
	conn.SetDeadline(end)
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	raw := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(conn, raw)
	return raw, err
}

// take reads one message of a transfer.
func (c *copied) take(raw []byte, v *verifier) error {
	m := new(dns.Msg)
	if err := m.Unpack(raw); err != nil {
		return err
	}
	if err := v.verify(raw, m); err != nil {
		return err
	}
	if !m.Response || m.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("the transfer was answered with %s", wire.RcodeText(m.Rcode))
	}
	for _, rec := range m.Answer {
		if err := c.add(rec); err != nil {
			return err
		}
	}
	if len(m.Answer) == 0 {
		return errors.New("a message of the transfer has no records")
	}
	if c.count == 1 && c.has != nil && int32(c.serial-*c.has) <= 0 { // RFC 1982: there is nothing newer
		c.done = true
	}
	return nil
}

// verifier checks the signatures of a transfer's messages (RFC 8945 §5.3.1).
type verifier struct {
	id     uint16
	chain  *wire.TSIGChain // nil: nothing is signed
	signed bool            // the first message was
	count  int             // of messages since the last signature
}

// maxUnsigned is how many messages in a row may be without a signature.
const maxUnsigned = 99

var errUnsigned = errors.New("the answer is not signed, and the question was")

func (v *verifier) verify(raw []byte, m *dns.Msg) error {
	if m.Id != v.id {
		return errors.New("the answer is to another question")
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
		return fmt.Errorf("the master does not take our signature: %s", wire.TSIGErrorText(sig.Error))
	}
	if code := v.chain.Verify(raw, sig, time.Now()); code != wire.TSIGNoError {
		return fmt.Errorf("the signature of the answer is wrong: %s", wire.TSIGErrorText(code))
	}
	v.signed, v.count = true, 0
	return nil
}

// end reports whether all that came was signed.
func (v *verifier) end() error {
	if v.count > 0 {
		return errUnsigned
	}
	return nil
}

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
	v := &verifier{id: m.Id}
	var wire []byte
	var err error
	if r.key.Name.IsZero() {
		wire, err = m.Pack()
	} else {
		v.key = r.key.Secret
		m.SetTsig(r.key.Name.String(), r.key.Algorithm, 300, time.Now().Unix())
		wire, v.mac, err = dns.TsigGenerate(m, r.key.Secret, "", false)
	}
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(stallTime))
	_, err = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...))
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
		return fmt.Errorf("the transfer was answered with %s", dns.RcodeToString[m.Rcode])
	}
	for _, rec := range m.Answer {
		if err := c.add(rec); err != nil {
			return err
		}
	}
	if len(m.Answer) == 0 {
		return errors.New("a message of the transfer has no records")
	}
	c.current()
	return nil
}

// verifier checks the signatures of a transfer's messages (RFC 8945 §5.3.1). The library would take messages without one.
type verifier struct {
	id      uint16
	key     string // base64; empty: nothing is signed
	mac     string // of the last signed message, in hex
	timers  bool
	between []byte // messages since then, which the next signature covers too
	count   int    // of them
}

// maxUnsigned is how many messages in a row may be without a signature.
const maxUnsigned = 99

var errUnsigned = errors.New("the answer is not signed, and the question was")

func (v *verifier) verify(raw []byte, m *dns.Msg) error {
	if m.Id != v.id {
		return errors.New("the answer is to another question")
	}
	if v.key == "" {
		return nil
	}
	sig := m.IsTsig()
	if sig == nil {
		if v.count++; !v.timers || v.count > maxUnsigned {
			return errUnsigned
		}
		v.between = append(v.between, raw...)
		return nil
	}
	if sig.Error != dns.RcodeSuccess {
		return fmt.Errorf("the master does not take our signature: %s", dns.RcodeToString[int(sig.Error)])
	}
	if err := dns.TsigVerifyWithProvider(raw, v, v.mac, v.timers); err != nil {
		return err
	}
	v.mac, v.timers, v.between, v.count = sig.MAC, true, nil, 0
	return nil
}

// end reports whether all that came was signed.
func (v *verifier) end() error {
	if v.count > 0 {
		return errUnsigned
	}
	return nil
}

// Generate and Verify make a dns.TsigProvider, which sees the octets that are signed.
func (v *verifier) Generate(msg []byte, t *dns.TSIG) ([]byte, error) {
	return nil, errors.New("answers are not signed here")
}

// Verify puts the messages without a signature where they were signed: behind the last MAC.
func (v *verifier) Verify(msg []byte, t *dns.TSIG) error {
	at := 2 + len(v.mac)/2
	all := append(append(append([]byte(nil), msg[:at]...), v.between...), msg[at:]...)
	return verifyMAC(v.key, all, t)
}

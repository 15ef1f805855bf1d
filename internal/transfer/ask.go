package transfer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// askTime is the timeout of a query to another server.
const askTime = 3 * time.Second

// Ask sends a query to another server, signed with the TSIG key of that server. It is the function for
// NotifierOptions.Ask. Of the records in the reply, it returns only the first SOA record of the answer.
func (k *Keyring) Ask(ctx context.Context, s Secondary, m *dns.Msg) (*dns.Msg, error) {
	if s.Addr.TLS {
		return k.exchange(ctx, "tcp-tls", s, m)
	}
	r, err := k.exchange(ctx, "udp", s, m)
	if err == nil && r.Truncated {
		r, err = k.exchange(ctx, "tcp", s, m)
	}
	return r, err
}

// exchange sends a query over a network of dns.Client and reads the reply.
func (k *Keyring) exchange(ctx context.Context, network string, s Secondary, m *dns.Msg) (*dns.Msg, error) {
	query, err := m.Pack()
	if err != nil {
		return nil, err
	}
	v := &verifier{id: m.Id}
	if !s.Key.IsZero() {
		key, found, err := k.Find(s.Key)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return nil, fmt.Errorf("TSIG key %s: %w", s.Key, errNoKey)
		}
		v.chain = &wire.TSIGChain{Key: key.TSIGKey}
		query = v.chain.Sign(query, wire.TSIG{Time: uint64(time.Now().Unix())})
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	client := dns.Client{Net: network, Timeout: askTime, TLSConfig: k.tlsFor(s.Addr)}
	conn, err := client.DialContext(ctx, s.Addr.AddrPort.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end) // a closed connection fails at the next call
	}
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	for {
		raw, err := conn.ReadMsgHeader(nil)
		if err != nil {
			return nil, err
		}
		if network == "udp" && binary.BigEndian.Uint16(raw) != m.Id {
			continue // a late reply to an earlier query, or a forged one
		}
		if network == "udp" && binary.BigEndian.Uint16(raw[2:])&wire.FlagTC != 0 {
			return &dns.Msg{MsgHdr: dns.MsgHdr{Truncated: true}}, nil // a server that limits its rate may not sign it
		}
		return readReply(raw, v)
	}
}

// readReply verifies a reply and reads its header and the first SOA record of its answer. All records of a hostile
// reply of 64 KiB would take 6 MiB, which no memory budget counts.
func readReply(raw []byte, v *verifier) (*dns.Msg, error) {
	if err := v.verify(raw); err != nil {
		return nil, err
	}
	if err := v.end(); err != nil {
		return nil, err
	}
	flags := binary.BigEndian.Uint16(raw[2:])
	if flags&wire.FlagQR == 0 {
		return nil, errReply
	}
	r := &dns.Msg{MsgHdr: dns.MsgHdr{Id: v.id, Response: true, Authoritative: flags&wire.FlagAA != 0,
		Rcode: int(flags & 0xF)}}
	at := wire.HeaderSize
	for range binary.BigEndian.Uint16(raw[4:]) {
		var ok bool
		if at, ok = wire.SkipName(raw, at); !ok {
			return nil, errReply
		}
		at += 4 // type and class
	}
	for range binary.BigEndian.Uint16(raw[6:]) {
		rec, ok := wire.ReadRecord(raw, at)
		if !ok {
			return nil, errReply
		}
		if rec.Type == rr.TypeSOA {
			soa, _, err := dns.UnpackRR(raw, at)
			if err != nil {
				return nil, err
			}
			r.Answer = []dns.RR{soa}
			return r, nil
		}
		at = rec.Next
	}
	return r, nil
}

var errReply = errors.New("the reply is malformed")

// queryFunc sends one query to another server.
type queryFunc = func(context.Context, Secondary, *dns.Msg) (*dns.Msg, error)

// serialAt queries a server for its serial of a zone.
func serialAt(ctx context.Context, ask queryFunc, at Secondary, zone dnsname.Name) (uint32, error) {
	q := new(dns.Msg).SetQuestion(zone.String(), dns.TypeSOA)
	q.RecursionDesired = false
	r, err := ask(ctx, at, q)
	if err != nil {
		return 0, err
	}
	if r.Rcode == dns.RcodeSuccess && r.Authoritative {
		for _, rec := range r.Answer {
			if soa, ok := rec.(*dns.SOA); ok {
				return soa.Serial, nil
			}
		}
	}
	return 0, fmt.Errorf("the SOA query was answered with %s and without authority", wire.RcodeText(r.Rcode))
}

var errNoKey = errors.New("not found, or its algorithm is too weak; create it with the tsigkeys API")

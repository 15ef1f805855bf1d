package dnsserver

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// seeds returns messages that reach every decision, complete and cut at every byte.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	var list [][]byte
	for _, q := range slices.Concat(allocQueries, forwardQueries) {
		list = append(list, packed(f, q.query))
	}
	for _, q := range forwardCases {
		list = append(list, packed(f, q.query))
	}
	full := withOPT(question("wWw.example.org.", dns.TypeA), 4096,
		&dns.EDNS0_NSID{Code: dns.EDNS0NSID},
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708010000005cf79f111f8130c3eee29480"},
		&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE})
	full.SetTsig("key.example.org.", dns.HmacSHA256, 300, 1)
	signed, _, err := dns.TsigGenerate(full, "c2VjcmV0", "", false)
	if err != nil {
		f.Fatal(err)
	}
	for i := range signed {
		list = append(list, signed[:i])
	}
	response := bytes.Clone(signed)
	response[2] |= 0x80
	list = append(list, signed, response, longName(255), longName(256))
	for op := range 16 {
		list = append(list, packed(f, opcode(question("example.org.", dns.TypeSOA), op)))
	}
	for _, qtype := range []uint16{0, dns.TypeOPT, dns.TypeIXFR, dns.TypeAXFR, dns.TypeANY, dns.TypeTSIG, dns.TypeDS,
		65535} {
		list = append(list, packed(f, question("sub.example.org.", qtype)))
	}
	// A name that points to itself, counts of 65,535, and a chain of pointers in a TSIG's owner.
	list = append(list,
		[]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"),
		[]byte("\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\x00\x00\x01\x00\x01"),
		append([]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01a\x00\x00\x01\x00\x01"+
			"\xc0\x13\x00\xfa\x00\xff\x00\x00\x00\x00\x00\x12\xc0\x13"), make([]byte, 16)...))
	return list
}

// checkReply checks the properties of any reply to any bytes. Recursion is available to all clients or to none.
func checkReply(t *testing.T, in, out []byte, limit int, available bool) {
	t.Helper()
	if len(in) < wire.HeaderSize || in[2]&0x80 != 0 {
		if len(out) > 0 {
			t.Fatalf("%x is no query, and got the reply %x", in, out)
		}
		return
	}
	if len(out) < wire.HeaderSize || len(out) > limit {
		t.Fatalf("reply to %x has %d bytes, want %d to %d", in, len(out), wire.HeaderSize, limit)
	}
	m := unpacked(t, out)
	if !m.Response || m.Id != binary.BigEndian.Uint16(in) || m.RecursionAvailable != available || m.AuthenticatedData &&
		!available {
		t.Fatalf("reply to %x has a wrong header: %v", in, m.MsgHdr)
	}
	if m.Opcode != int(in[2]>>3&0xF) {
		t.Fatalf("reply to %x has opcode %d", in, m.Opcode)
	}
	if n := len(m.Question); n > 1 || n == 0 && m.Rcode == dns.RcodeNameError {
		t.Fatalf("reply to %x has %d questions", in, n)
	}
	if len(m.Question) == 1 {
		var q query
		var scratch [256]byte
		q.readHeader(in)
		if !q.readQuestion(&scratch) || !bytes.Equal(in[wire.HeaderSize:q.end], out[wire.HeaderSize:q.end]) {
			t.Fatalf("reply to %x does not echo its question: %x", in, out)
		}
	}
}

func FuzzUDP(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	var handlers []*handler
	for _, by := range []Forwarder{nil, &fake{knows: upstream}, &fake{knows: upstream, cached: true}} {
		handlers = append(handlers, newHandler(f, Config{Version: "1", NSID: "ns1", RRL: RRLConfig{Off: true}, Forward: by}))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for i, h := range handlers {
			out := settle(h, in, stranger)
			limit := minUDPSize
			if h.q.edns.present && len(in) >= wire.HeaderSize && in[2]&0x80 == 0 {
				limit = h.settings.udpSize
				if opt := unpacked(t, out).IsEdns0(); opt == nil {
					t.Fatalf("query %x has OPT, its reply has not", in)
				}
			}
			checkReply(t, in, out, limit, i > 0)
		}
	})
}

// FuzzMove copies arbitrary bytes as records. The result must have as many complete records as counted, within the
// limit.
func FuzzMove(f *testing.F) {
	by := &fake{knows: upstream}
	for key := range upstream {
		name, qtype, _ := strings.Cut(key, " ")
		wire := []byte(dnsname.MustParse(name).Wire())
		r := by.find(forward.Question{Name: wire, Type: rr.Type(dns.StringToType[qtype])},
			appendQuestion(make([]byte, 0, initialReplySize), wire))
		f.Add(r.Msg, r.Answers, r.Authorities, 512)
		f.Add(r.Msg, r.Answers+1, r.Authorities+1, 100)
	}
	f.Fuzz(func(t *testing.T, from []byte, answers, authorities, limit int) {
		const at = 40 // within the 60 bytes of the message
		limit = min(max(limit, 60), initialReplySize)
		m := recordCopier{from: from, name: []byte("\x03www\x07example\x03net\x00"), at: at}
		r := lookup.Reply{Msg: make([]byte, 60, initialReplySize), Limit: limit}
		answers, authorities = min(max(answers, 0), 1000), min(max(authorities, 0), 1000)
		copy(r.Msg[at:], m.name)
		m.copySections(&r, answers, authorities)
		if len(r.Msg) > limit || !r.Truncated && (r.Answers != answers || r.Authorities != authorities) {
			t.Fatalf("%d bytes of %d, %d and %d records of %d and %d", len(r.Msg), limit, r.Answers, r.Authorities, answers,
				authorities)
		}
		end := 60
		for range r.Answers + r.Authorities {
			owner, ok := wire.AppendName(nil, r.Msg, end)
			fixed, _ := wire.SkipName(r.Msg, end)
			if !ok || len(owner) > dnsname.MaxWire || len(r.Msg) < fixed+wire.RecordFixed {
				t.Fatalf("broken record at %d of %x", end, r.Msg)
			}
			end = fixed + wire.RecordFixed + int(binary.BigEndian.Uint16(r.Msg[fixed+8:]))
		}
		if end != len(r.Msg) {
			t.Fatalf("records end at %d of %d", end, len(r.Msg))
		}
	})
}

// FuzzTCP sends bytes to a connection and reads replies until it closes: one to each complete query, in order.
func FuzzTCP(f *testing.F) {
	for _, s := range seeds(f) {
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...)
		f.Add(framed)
		f.Add(append(framed, framed...))
	}
	// The forwarder answers from its cache, so that replies come in order.
	server := listening(f, Config{Forward: &fake{knows: upstream, cached: true}})
	f.Cleanup(server.Close)
	at := net.TCPAddrFromAddrPort(server.Addrs()[0])
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := net.DialTCP("tcp", nil, at)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		accepted, err := server.tcp[0].AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(accepted, server.tcp[0], server)
		if !c.admit() {
			t.Fatal("no room for the connection")
		}
		go func() {
			out.Write(in)
			out.CloseWrite()
		}()
		go c.serve()
		replies, _ := io.ReadAll(out) // a connection that the server aborts may be reset
		for len(replies) >= lengthSize {
			size := int(binary.BigEndian.Uint16(in))
			n := int(binary.BigEndian.Uint16(replies))
			if len(in) < lengthSize+size || len(replies) < lengthSize+n {
				t.Fatalf("a reply too many, or half of one: %x", replies)
			}
			checkReply(t, in[lengthSize:lengthSize+size], replies[lengthSize:lengthSize+n], wire.MaxSize, true)
			in, replies = in[lengthSize+size:], replies[lengthSize+n:]
		}
	})
}

func TestSourcePorts(t *testing.T) {
	for port, want := range map[uint16]bool{0: false, 7: false, 13: false, 17: false, 19: false, 37: false, 53: true,
		63: true, 64: true, 1024: true, 0x0700: true, 65535: true} {
		if got := isClientPort(port); got != want {
			t.Errorf("answersPort(%d) = %v, want %v", port, got, want)
		}
	}
}

// TestSourceAddresses checks that the handler answers clients with any address.
func TestSourceAddresses(t *testing.T) {
	h := newHandler(t, Config{})
	in := packed(t, withOPT(question("www.example.org.", dns.TypeA), 1232,
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}))
	out := make([]byte, h.settings.udpSize)
	for _, a := range []string{"0.0.0.0", "255.255.255.255", "::", "::1", "fe80::1", "ff02::1", "::ffff:192.0.2.1"} {
		if h.answer(in, out, client{addr: netip.MustParseAddr(a)}) == 0 {
			t.Errorf("%s got no answer", a)
		}
	}
}

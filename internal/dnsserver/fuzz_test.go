package dnsserver

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// seeds are messages that reach every decision, whole and cut at every octet.
func seeds(f *testing.F) [][]byte {
	var list [][]byte
	for _, q := range allocQueries {
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
	for _, qtype := range []uint16{0, dns.TypeOPT, dns.TypeIXFR, dns.TypeAXFR, dns.TypeANY, dns.TypeTSIG, dns.TypeDS, 65535} {
		list = append(list, packed(f, question("sub.example.org.", qtype)))
	}
	// A name that points to itself, counts of 65,535, and a chain of pointers in a TSIG's owner.
	list = append(list,
		[]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"),
		[]byte("\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\x00\x00\x01\x00\x01"),
		append([]byte("\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01a\x00\x00\x01\x00\x01\xc0\x13\x00\xfa\x00\xff\x00\x00\x00\x00\x00\x12\xc0\x13"), make([]byte, 16)...))
	return list
}

// checkReply says what must hold for any reply to any octets.
func checkReply(t *testing.T, in, out []byte, limit int) {
	t.Helper()
	if len(in) < headerSize || in[2]&0x80 != 0 {
		if len(out) > 0 {
			t.Fatalf("%x is no query, and got the reply %x", in, out)
		}
		return
	}
	if len(out) < headerSize || len(out) > limit {
		t.Fatalf("reply to %x has %d octets, want %d to %d", in, len(out), headerSize, limit)
	}
	m := unpacked(t, out)
	if !m.Response || m.Id != binary.BigEndian.Uint16(in) || m.RecursionAvailable || m.AuthenticatedData {
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
		if !q.readQuestion(&scratch) || !bytes.Equal(in[headerSize:q.end], out[headerSize:q.end]) {
			t.Fatalf("reply to %x does not echo its question: %x", in, out)
		}
	}
}

func FuzzUDP(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	h := newHandler(f, Config{Version: "1", NSID: "ns1", RRL: RRLConfig{Off: true}})
	out := make([]byte, h.settings.udpSize)
	f.Fuzz(func(t *testing.T, in []byte) {
		n := h.answer(in, out, stranger)
		limit := minUDPSize
		if h.q.edns.present && len(in) >= headerSize && in[2]&0x80 == 0 {
			limit = h.settings.udpSize
			if opt := unpacked(t, out[:n]).IsEdns0(); opt == nil {
				t.Fatalf("query %x has OPT, its reply has not", in)
			}
		}
		checkReply(t, in, out[:n], limit)
	})
}

// FuzzTCP sends octets to a connection and reads replies until it is closed: there is one to each whole query, in order.
func FuzzTCP(f *testing.F) {
	for _, s := range seeds(f) {
		framed := append(binary.BigEndian.AppendUint16(nil, uint16(len(s))), s...)
		f.Add(framed)
		f.Add(append(framed, framed...))
	}
	server, err := Listen(Config{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		f.Fatal(err)
	}
	server.settings.snapshot = newHandler(f, Config{}).settings.snapshot
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
		c := &conn{net: accepted, server: server}
		if !c.admit() {
			t.Fatal("no room for the connection")
		}
		go func() {
			out.Write(in)
			out.CloseWrite()
		}()
		go c.serve()
		replies, _ := io.ReadAll(out) // a connection that is cut off may be reset
		for len(replies) >= lengthSize {
			size := int(binary.BigEndian.Uint16(in))
			n := int(binary.BigEndian.Uint16(replies))
			if len(in) < lengthSize+size || len(replies) < lengthSize+n {
				t.Fatalf("a reply too many, or half of one: %x", replies)
			}
			checkReply(t, in[lengthSize:lengthSize+size], replies[lengthSize:lengthSize+n], maxTCPSize)
			in, replies = in[lengthSize+size:], replies[lengthSize+n:]
		}
	})
}

func TestSourcePorts(t *testing.T) {
	for port, want := range map[uint16]bool{0: false, 7: false, 13: false, 17: false, 19: false, 37: false, 53: true, 63: true, 64: true, 1024: true, 0x0700: true, 65535: true} {
		if got := answersPort(port); got != want {
			t.Errorf("answersPort(%d) = %v, want %v", port, got, want)
		}
	}
}

// TestSourceAddresses: any address is a client, none makes the handler stumble.
func TestSourceAddresses(t *testing.T) {
	h := newHandler(t, Config{})
	in := packed(t, withOPT(question("www.example.org.", dns.TypeA), 1232, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"}))
	out := make([]byte, h.settings.udpSize)
	for _, a := range []string{"0.0.0.0", "255.255.255.255", "::", "::1", "fe80::1", "ff02::1", "::ffff:192.0.2.1"} {
		if h.answer(in, out, client{addr: netip.MustParseAddr(a)}) == 0 {
			t.Errorf("%s got no answer", a)
		}
	}
}

package dnsserver

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// summary is the part of a reply that the tests compare.
type summary struct {
	Rcode    string
	Flags    string
	Question string
	Answers  int
	EDNS     bool
	EDE      int // -1 for none
}

func summarise(m *dns.Msg) summary {
	s := summary{Rcode: dns.RcodeToString[m.Rcode], Answers: len(m.Answer), EDE: -1}
	if m.Rcode == dns.RcodeBadVers {
		s.Rcode = "BADVERS"
	}
	for _, f := range []struct {
		set  bool
		name string
	}{{m.Authoritative, "aa "}, {m.Truncated, "tc "}, {m.RecursionDesired, "rd "}, {m.RecursionAvailable, "ra "},
		{m.AuthenticatedData, "ad "}, {m.CheckingDisabled, "cd "}, {m.Zero, "z "}} {
		if f.set {
			s.Flags += f.name
		}
	}
	if len(m.Question) == 1 {
		s.Question = m.Question[0].Name
	}
	if opt := m.IsEdns0(); opt != nil {
		s.EDNS = true
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				s.EDE = int(e.InfoCode)
			}
		}
	}
	return s
}

func class(m *dns.Msg, c uint16) *dns.Msg {
	m.Question[0].Qclass = c
	return m
}

func opcode(m *dns.Msg, o int) *dns.Msg {
	m.Opcode = o
	return m
}

func TestAnswer(t *testing.T) {
	const www = "www.example.org."
	everyFlag := question(www, dns.TypeA)
	everyFlag.RecursionDesired, everyFlag.CheckingDisabled, everyFlag.AuthenticatedData = true, true, true
	everyFlag.Authoritative, everyFlag.Truncated, everyFlag.RecursionAvailable, everyFlag.Zero = true, true, true, true
	badVersion := withOPT(question(www, dns.TypeA), 1232)
	badVersion.IsEdns0().SetVersion(1)
	tests := []struct {
		name string
		in   *dns.Msg
		want summary
	}{
		{"exact", question(www, dns.TypeA), summary{"NOERROR", "aa ", www, 1, false, -1}},
		{"case is echoed", question("wWw.eXample.ORG.", dns.TypeA),
			summary{"NOERROR", "aa ", "wWw.eXample.ORG.", 1, false, -1}},
		{"RD and CD are copied, the others not", everyFlag, summary{"NOERROR", "aa rd cd ", www, 1, false, -1}},
		{"chain", question("alias.example.org.", dns.TypeA), summary{"NOERROR", "aa ", "alias.example.org.", 2, false, -1}},
		{"no such name", question("x.example.org.", dns.TypeA), summary{"NXDOMAIN", "aa ", "x.example.org.", 0, false, -1}},
		{"no such type", question(www, dns.TypeMX), summary{"NOERROR", "aa ", www, 0, false, -1}},
		{"referral", question("a.sub.example.org.", dns.TypeA), summary{"NOERROR", "", "a.sub.example.org.", 0, false, -1}},
		{"not ours", question("example.net.", dns.TypeA), summary{"REFUSED", "", "example.net.", 0, false, -1}},
		{"not ours, EDNS", withOPT(question("example.net.", dns.TypeA), 1232),
			summary{"REFUSED", "", "example.net.", 0, true, 20}},
		{"EDNS", withOPT(question(www, dns.TypeA), 1232), summary{"NOERROR", "aa ", www, 1, true, -1}},
		{"EDNS version", badVersion, summary{"BADVERS", "", www, 0, true, -1}},
		{"unknown option", withOPT(question(www, dns.TypeA), 1232, &dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}),
			summary{"NOERROR", "aa ", www, 1, true, -1}},
		{"padding", withOPT(question(www, dns.TypeA), 1232, &dns.EDNS0_PADDING{Padding: make([]byte, 40)}),
			summary{"NOERROR", "aa ", www, 1, true, -1}},
		{"STATUS", opcode(question(www, dns.TypeA), dns.OpcodeStatus), summary{"NOTIMP", "", www, 0, false, -1}},
		{"NOTIFY", opcode(question("example.org.", dns.TypeSOA), dns.OpcodeNotify),
			summary{"NOTIMP", "", "example.org.", 0, false, -1}},
		{"UPDATE", opcode(question("example.org.", dns.TypeSOA), dns.OpcodeUpdate),
			summary{"NOTIMP", "", "example.org.", 0, false, -1}},
		{"unknown opcode, EDNS", opcode(withOPT(question(www, dns.TypeA), 1232), 9), summary{"NOTIMP", "", www, 0, true, -1}},
		{"unknown opcode, no question", &dns.Msg{MsgHdr: dns.MsgHdr{Id: 1, Opcode: 6}},
			summary{"NOTIMP", "", "", 0, false, -1}},
		{"class ANY", class(question(www, dns.TypeA), dns.ClassANY), summary{"NOERROR", "", www, 1, false, -1}},
		{"class HS", class(withOPT(question(www, dns.TypeA), 512), dns.ClassHESIOD),
			summary{"REFUSED", "", www, 0, true, 20}},
		{"version hidden", class(question("version.bind.", dns.TypeTXT), dns.ClassCHAOS),
			summary{"REFUSED", "", "version.bind.", 0, false, -1}},
		{"AXFR", withOPT(question("example.org.", dns.TypeAXFR), 512), summary{"REFUSED", "", "example.org.", 0, true, 21}},
		{"IXFR", withOPT(question("example.org.", dns.TypeIXFR), 512), summary{"REFUSED", "", "example.org.", 0, true, 21}},
		{"ANY", question(www, dns.TypeANY), summary{"NOERROR", "aa ", www, 1, false, -1}},
		{"MAILB", question(www, dns.TypeMAILB), summary{"NOTIMP", "", www, 0, false, -1}},
		{"OPT as a type", question(www, dns.TypeOPT), summary{"FORMERR", "", www, 0, false, -1}},
		{"TSIG as a type", question(www, dns.TypeTSIG), summary{"FORMERR", "", www, 0, false, -1}},
		{"type 0", question(www, 0), summary{"NOERROR", "aa ", www, 0, false, -1}},
		{"root", question(".", dns.TypeNS), summary{"REFUSED", "", ".", 0, false, -1}},
	}
	h := newHandler(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := unpacked(t, ask(h, packed(t, tt.in)))
			if !m.Response || m.Id != tt.in.Id || m.Opcode != tt.in.Opcode {
				t.Errorf("reply has QR %v, id %d, opcode %d", m.Response, m.Id, m.Opcode)
			}
			if diff := cmp.Diff(tt.want, summarise(m)); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBrokenMessages(t *testing.T) {
	whole := packed(t, question("www.example.org.", dns.TypeA))
	edns := packed(t, withOPT(question("www.example.org.", dns.TypeA), 1232, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}))
	opt := edns[len(whole):]
	edit := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		return b
	}
	counts := func(b []byte, qd, an, ns, ar byte) []byte {
		return edit(b, 4, 0, qd, 0, an, 0, ns, 0, ar)
	}
	const drop = "drop"
	tests := []struct {
		name string
		in   []byte
		want string
	}{
		{"nothing", nil, drop},
		{"eleven bytes", whole[:11], drop},
		{"a response", edit(whole, 2, 0x80), drop},
		{"a broken response", edit(whole[:12], 2, 0x80), drop},
		{"a header alone", whole[:12], "FORMERR"},
		{"no question", counts(whole[:12], 0, 0, 0, 0), "FORMERR"},
		{"two questions", append(counts(whole, 2, 0, 0, 0), whole[12:]...), "FORMERR"},
		{"question cut in its name", whole[:20], "FORMERR"},
		{"question cut in its type", whole[:len(whole)-3], "FORMERR"},
		{"question cut in its class", whole[:len(whole)-1], "FORMERR"},
		{"compressed question", edit(whole, 12, 0xC0, 12), "FORMERR"},
		{"reserved label type", edit(whole, 12, 0x43), "FORMERR"},
		{"name of 256 bytes", longName(256), "FORMERR"},
		{"name of 255 bytes", longName(255), "REFUSED"},
		{"answers that are not there", counts(whole, 1, 9, 0, 0), "FORMERR"},
		{"additionals that are not there", counts(whole, 1, 0, 0, 9), "FORMERR"},
		{"trailing bytes", append(bytes.Clone(whole), 1, 2, 3), "NOERROR"},
		{"two OPT", append(counts(edns, 1, 0, 0, 2), opt...), "FORMERR"},
		{"OPT in the answer section", counts(edns, 1, 1, 0, 0), "FORMERR"},
		{"OPT with an owner", counts(append(bytes.Clone(whole), append([]byte{0xC0, 12}, opt[1:]...)...), 1, 0, 0, 1),
			"FORMERR"},
		{"OPT longer than the message", edit(edns, len(whole)+10, 200), "FORMERR"},
		{"option longer than OPT", edit(edns, len(edns)-1, 9), "FORMERR"},
		{"option cut in its head", edit(edns[:len(edns)-1], len(whole)+9, 0, 3), "FORMERR"},
		{"a record with a pointer for its owner", counts(append(bytes.Clone(whole), 0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0,
			0), 1, 1, 0, 0), "NOERROR"},
		{"a record with a pointer into nowhere", counts(append(bytes.Clone(whole), 0xFF, 0xFF, 0, 1, 0, 1, 0, 0, 0, 0, 0,
			0), 1, 0, 1, 0), "NOERROR"},
		{"a record with half a pointer", counts(append(bytes.Clone(whole), 0xC0), 1, 0, 1, 0), "FORMERR"},
		{"a TSIG, and a record after it", append(counts(append(bytes.Clone(whole), 0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0), 1,
			0, 0, 2), opt...), "FORMERR"},
		{"a TSIG in the answer section", counts(append(bytes.Clone(whole), 0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 0), 1, 1, 0,
			0), "FORMERR"},
	}
	h := newHandler(t, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := drop
			if out := ask(h, tt.in); len(out) > 0 {
				got = dns.RcodeToString[unpacked(t, out).Rcode]
			}
			if got != tt.want {
				t.Errorf("answer(%x) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// TestBrokenOptions checks that a client with malformed options still learns that the server supports EDNS.
func TestBrokenOptions(t *testing.T) {
	whole := packed(t, question("www.example.org.", dns.TypeA))
	whole[11] = 1
	for _, tt := range []struct {
		name    string
		version byte
		options []byte
		want    int
	}{
		{"cookie of 4 bytes", 0, []byte{0, 10, 0, 4, 1, 2, 3, 4}, dns.RcodeFormatError},
		{"cookie of 9 bytes", 0, []byte{0, 10, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, dns.RcodeFormatError},
		{"a good option before a broken one", 0, []byte{0, 3, 0, 0, 0, 10, 0, 0}, dns.RcodeFormatError},
		{"half an option", 0, []byte{0, 3, 0}, dns.RcodeFormatError},
		{"an option longer than the record", 0, []byte{0, 3, 0, 9}, dns.RcodeFormatError},
		{"of another version", 1, []byte{0, 3, 0}, dns.RcodeBadVers},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHandler(t, Config{NSID: "ns1"})
			in := append(bytes.Clone(whole), 0, 0, 41, 4, 208, 0, tt.version, 0, 0, 0, byte(len(tt.options)))
			m := unpacked(t, ask(h, append(in, tt.options...)))
			opt := m.IsEdns0()
			if m.Rcode != tt.want || opt == nil || len(opt.Option) != 0 || len(m.Answer) != 0 {
				t.Errorf("reply is %v, want %s with an OPT without options", m, dns.RcodeToString[tt.want])
			}
		})
	}
}

// longName returns a query for a name of that many bytes.
func longName(size int) []byte {
	b := []byte{0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for left := size - 1; left > 0; {
		n := min(left-1, 63)
		if left-1-n == 1 {
			n-- // the remaining bytes must have room for a label of one byte
		}
		b = append(append(b, byte(n)), bytes.Repeat([]byte{'a'}, n)...)
		left -= 1 + n
	}
	return append(b, 0, 0, 1, 0, 1)
}

func TestReplySize(t *testing.T) {
	tests := []struct {
		name    string
		size    uint16 // 0: no EDNS
		udpSize int
		most    int
	}{
		{"no EDNS", 0, 1232, 512},
		{"EDNS below 512", 100, 1232, 512},
		{"EDNS 512", 512, 1232, 512},
		{"EDNS 800", 800, 1232, 800},
		{"EDNS with room for the answer, not for OPT", 1000, 1232, 1000},
		{"EDNS above ours", 65535, 700, 700},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHandler(t, Config{UDPSize: tt.udpSize, NSID: "a server"})
			for _, name := range []string{"big.example.org.", "huge.example.org."} {
				m := question(name, dns.TypeA)
				if name == "huge.example.org." {
					m = question(name, dns.TypeTXT)
				}
				if tt.size > 0 {
					withOPT(m, tt.size, &dns.EDNS0_NSID{Code: dns.EDNS0NSID},
						&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"})
				}
				out := ask(h, packed(t, m))
				r := unpacked(t, out)
				if len(out) > tt.most || !r.Truncated {
					t.Errorf("%s: %d bytes, truncated %v; want at most %d and TC", name, len(out), r.Truncated, tt.most)
				}
				if (r.IsEdns0() != nil) != (tt.size > 0) {
					t.Errorf("%s: OPT in the reply: %v", name, r.IsEdns0())
				}
			}
		})
	}
}

// TestSmallEDNSSize: a payload size below 512 counts as 512 (RFC 6891 §6.2.3).
func TestSmallEDNSSize(t *testing.T) {
	name := strings.Repeat("x", 60) + ".wild.example.org."
	out := ask(newHandler(t, Config{}), packed(t, withOPT(question(name, dns.TypeA), 100)))
	if m := unpacked(t, out); m.Truncated || len(m.Answer) != 1 || len(out) < 101 {
		t.Errorf("%d bytes, truncated %v, with %d answers; want one answer", len(out), m.Truncated, len(m.Answer))
	}
}

func TestTCPSize(t *testing.T) {
	h := newHandler(t, Config{})
	out := make([]byte, wire.MaxSize)
	n := h.answer(packed(t, question("huge.example.org.", dns.TypeTXT)), out, client{addr: stranger.addr, tcp: true})
	if m := unpacked(t, out[:n]); m.Truncated || len(m.Answer) != 40 {
		t.Errorf("over TCP: truncated %v with %d answers, want all 40", m.Truncated, len(m.Answer))
	}
}

func TestNoZonesYet(t *testing.T) {
	h := newHandler(t, Config{Snapshot: func() *zone.Snapshot { return nil }})
	m := unpacked(t, ask(h, packed(t, withOPT(question("www.example.org.", dns.TypeA), 1232))))
	want := summary{"SERVFAIL", "", "www.example.org.", 0, true, wire.EDENotReady}
	if diff := cmp.Diff(want, summarise(m)); diff != "" {
		t.Errorf("reply (-want +got):\n%s", diff)
	}
}

func TestChaos(t *testing.T) {
	h := newHandler(t, Config{Version: "nameplane 1", NSID: "ns1.lab"})
	tests := []struct {
		name  string
		qtype uint16
		want  string
	}{
		{"version.bind.", dns.TypeTXT, "nameplane 1"},
		{"VERSION.server.", dns.TypeANY, "nameplane 1"},
		{"hostname.bind.", dns.TypeTXT, "ns1.lab"},
		{"id.server.", dns.TypeTXT, "ns1.lab"},
		{"version.bind.", dns.TypeA, ""},
		{"authors.bind.", dns.TypeTXT, ""},
		{"www.example.org.", dns.TypeA, ""},
	}
	for _, tt := range tests {
		m := unpacked(t, ask(h, packed(t, class(question(tt.name, tt.qtype), dns.ClassCHAOS))))
		got := ""
		if len(m.Answer) == 1 {
			got = m.Answer[0].(*dns.TXT).Txt[0]
		}
		if got != tt.want || (tt.want == "") != (m.Rcode == dns.RcodeRefused) {
			t.Errorf("%s: %q with %s, want %q", tt.name, got, dns.RcodeToString[m.Rcode], tt.want)
		}
	}
}

func TestKeepaliveOverTCPOnly(t *testing.T) {
	in := packed(t, withOPT(question("www.example.org.", dns.TypeA), 1232,
		&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}))
	h := newHandler(t, Config{})
	for _, tt := range []struct {
		from client
		want int
	}{{stranger, 0}, {client{addr: stranger.addr, tcp: true, keepalive: 100}, 1}} {
		out := make([]byte, wire.MaxSize)
		m := unpacked(t, out[:h.answer(in, out, tt.from)])
		options := m.IsEdns0().Option
		if len(options) != tt.want {
			t.Fatalf("tcp %v: options %v, want %d", tt.from.tcp, options, tt.want)
		}
		if tt.want == 1 && options[0].(*dns.EDNS0_TCP_KEEPALIVE).Timeout != 100 {
			t.Errorf("keepalive is %v, want 10s", options[0])
		}
	}
}

// TestStaleAnswers checks that answers with old records say so to clients with EDNS.
func TestStaleAnswers(t *testing.T) {
	h := newHandler(t, Config{Stale: func(name []byte, encloser int, t rr.Type) bool {
		return encloser == 0 && string(name) == "\x03www\x07example\x03org\x00" && t == rr.TypeA
	}})
	for name, want := range map[string]int{"WWW.example.org.": wire.EDEStale, "ns1.example.org.": wire.EDENone} {
		if got := summarise(unpacked(t, ask(h, packed(t, withOPT(question(name, dns.TypeA), 1232))))).EDE; got != want {
			t.Errorf("%s: extended error %d, want %d", name, got, want)
		}
	}
	if m := unpacked(t, ask(h, packed(t, question("www.example.org.", dns.TypeA)))); m.IsEdns0() != nil ||
		len(m.Answer) != 1 {
		t.Errorf("without EDNS: %v", m)
	}
	if got := summarise(unpacked(t, ask(h, packed(t,
		withOPT(question("www.example.org.", dns.TypeMX), 1232))))).EDE; got != wire.EDENone {
		t.Errorf("no data: extended error %d", got)
	}
}

func TestNSIDAndDO(t *testing.T) {
	h := newHandler(t, Config{NSID: "ns1.lab"})
	in := withOPT(question("www.example.org.", dns.TypeA), 1232, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
	in.IsEdns0().SetDo()
	opt := unpacked(t, ask(h, packed(t, in))).IsEdns0()
	if !opt.Do() || opt.UDPSize() != 1232 {
		t.Errorf("OPT has DO %v and size %d, want DO and 1232", opt.Do(), opt.UDPSize())
	}
	if len(opt.Option) != 1 || opt.Option[0].(*dns.EDNS0_NSID).Nsid != "6e73312e6c6162" {
		t.Errorf("options are %v, want NSID ns1.lab", opt.Option)
	}
	if opt := unpacked(t, ask(h, packed(t, withOPT(question("www.example.org.", dns.TypeA),
		1232)))).IsEdns0(); len(opt.Option) != 0 {
		t.Errorf("NSID was not asked for, and came: %v", opt.Option)
	}
}

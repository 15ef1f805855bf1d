package compare

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// udpSize is the UDP size that the questions advertise: that of DNS Flag Day 2020, and our default.
const udpSize = 1232

// question is one name and type for all servers.
type question struct {
	name  string
	qtype uint16
}

func (q question) String() string {
	return q.name + " " + dns.Type(q.qtype).String()
}

// large reports whether the answer is the referral to largeCut, whose glue does not fit in a datagram.
func (q question) large() bool {
	return dns.IsSubDomain(largeCut, strings.ToLower(q.name))
}

const largeCut = "ref.types.test."

// reply is the part of a message that servers must agree on, as comparable text.
type reply struct {
	rcode     string
	aa        bool
	answer    string // sorted, one record per line, with TTL
	authority string // SOA and NS only
	glue      string // addresses of the name servers in authority
}

func (r reply) String() string {
	return fmt.Sprintf("%s aa=%v\n  answer:    %s\n  authority: %s\n  glue:      %s",
		r.rcode, r.aa, indent(r.answer), indent(r.authority), indent(r.glue))
}

func indent(s string) string {
	return strings.ReplaceAll(s, "\n", "\n             ")
}

// normalise removes what servers may choose freely: order, letter case of names, and additional records other than
// glue.
func normalise(m *dns.Msg) reply {
	r := reply{rcode: dns.RcodeToString[m.Rcode], aa: m.Authoritative}
	r.answer = text(m.Answer)
	servers := map[string]bool{}
	var authority, glue []dns.RR
	for _, rr := range m.Ns {
		switch rr := rr.(type) {
		case *dns.NS:
			servers[strings.ToLower(rr.Ns)] = true
			authority = append(authority, rr)
		case *dns.SOA:
			authority = append(authority, rr)
		}
	}
	for _, rr := range m.Extra {
		t := rr.Header().Rrtype
		if (t == dns.TypeA || t == dns.TypeAAAA) && servers[strings.ToLower(rr.Header().Name)] {
			glue = append(glue, rr)
		}
	}
	r.authority, r.glue = text(authority), text(glue)
	return r
}

func text(rrs []dns.RR) string {
	lines := make([]string, 0, len(rrs))
	for _, rr := range rrs {
		lines = append(lines, canonical(rr))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// canonical converts names to lower case, the owner and those in RDATA, and nothing else: a server that changed the
// case of a TXT must not pass.
func canonical(rr dns.RR) string {
	switch rr := rr.(type) {
	case *dns.NAPTR:
		folded := *rr
		folded.Hdr.Name, folded.Replacement = strings.ToLower(rr.Hdr.Name), strings.ToLower(rr.Replacement)
		return folded.String()
	case *dns.NS, *dns.CNAME, *dns.DNAME, *dns.PTR, *dns.SOA, *dns.MX, *dns.SRV, *dns.RP, *dns.SVCB, *dns.HTTPS:
		return strings.ToLower(rr.String())
	}
	owner, rest, _ := strings.Cut(rr.String(), "\t")
	return strings.ToLower(owner) + "\t" + rest
}

// asker sends questions to one server over one UDP socket.
type asker struct {
	name string
	addr string
	conn net.Conn
}

func newAsker(name, addr string) (*asker, error) {
	conn, err := net.Dial("udp", addr)
	if err != nil {
		return nil, err
	}
	return &asker{name: name, addr: addr, conn: conn}, nil
}

// ask returns the complete reply: over UDP, or over TCP when the reply was truncated or may lack glue, which servers
// drop without TC.
func (a *asker) ask(q question) (*dns.Msg, error) {
	if q.large() {
		return a.tcp(q)
	}
	m, err := a.udp(q)
	if err != nil || !m.Truncated {
		return m, err
	}
	return a.tcp(q)
}

// udp tries three times: a datagram may be lost even on loopback when a server's socket is full.
func (a *asker) udp(q question) (*dns.Msg, error) {
	var m *dns.Msg
	var err error
	for range 3 {
		m, err = a.datagram(message(q))
		if err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%s did not answer %s: %w", a.name, q, err)
}

// datagram reads the socket directly. dns.Client would cut a reply that is larger than the client allows, and this
// test must detect that error.
func (a *asker) datagram(ask *dns.Msg) (*dns.Msg, error) {
	out, err := ask.Pack()
	if err != nil {
		return nil, err
	}
	if err := a.conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return nil, err
	}
	if _, err := a.conn.Write(out); err != nil {
		return nil, err
	}
	buf := make([]byte, dns.MaxMsgSize)
	for {
		n, err := a.conn.Read(buf)
		if err != nil {
			return nil, err
		}
		m := new(dns.Msg)
		if err := m.Unpack(buf[:n]); err != nil {
			return nil, err
		}
		if m.Id != ask.Id {
			continue // the late reply to an earlier attempt
		}
		if n > udpSize {
			return nil, fmt.Errorf("a datagram of %d bytes, %d are allowed", n, udpSize)
		}
		return m, nil
	}
}

func (a *asker) tcp(q question) (*dns.Msg, error) {
	client := dns.Client{Net: "tcp", Timeout: 5 * time.Second}
	m, _, err := client.Exchange(message(q), a.addr)
	if err != nil {
		return nil, fmt.Errorf("%s did not answer %s over TCP: %w", a.name, q, err)
	}
	return m, nil
}

func message(q question) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(q.name, q.qtype)
	m.RecursionDesired = false
	m.SetEdns0(udpSize, false)
	return m
}

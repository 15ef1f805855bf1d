package rig

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Asker is a socket in a pod that queries one server, one query after the other.
type Asker struct {
	conn *net.UDPConn
	buf  []byte
}

// NewAsker opens the socket.
func NewAsker(p *cluster.Pod, server netip.AddrPort) (*Asker, error) {
	c, err := p.DialUDP(server)
	return &Asker{conn: c, buf: make([]byte, 4096)}, err
}

// Close closes the socket.
func (a *Asker) Close() { _ = a.conn.Close() }

// Ask sends a query, and returns the reply and its duration.
func (a *Asker) Ask(name string, qtype uint16, limit time.Duration) (*dns.Msg, time.Duration, error) {
	q := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	q.SetEdns0(1232, false)
	out, err := q.Pack()
	if err != nil {
		return nil, 0, err
	}
	begun := time.Now()
	if err := a.conn.SetDeadline(begun.Add(limit)); err != nil {
		return nil, 0, err
	}
	if _, err := a.conn.Write(out); err != nil {
		return nil, 0, err
	}
	for {
		n, err := a.conn.Read(a.buf)
		took := time.Since(begun)
		if err != nil {
			return nil, took, fmt.Errorf("ask %s for %s: %w", a.conn.RemoteAddr(), name, err)
		}
		m := new(dns.Msg)
		if m.Unpack(a.buf[:n]) == nil && m.Id == q.Id {
			return m, took, nil
		}
	}
}

// Ask queries a server from a pod once, and returns the reply and its duration.
func Ask(p *cluster.Pod, server netip.AddrPort, name string, qtype uint16, limit time.Duration) (*dns.Msg,
	time.Duration, error) {
	a, err := NewAsker(p, server)
	if err != nil {
		return nil, 0, err
	}
	defer a.Close()
	return a.Ask(name, qtype, limit)
}

// Addrs returns the addresses in a reply.
func Addrs(m *dns.Msg) []netip.Addr {
	var out []netip.Addr
	for _, rr := range m.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			if a, ok := netip.AddrFromSlice(rr.A.To4()); ok {
				out = append(out, a)
			}
		case *dns.AAAA:
			if a, ok := netip.AddrFromSlice(rr.AAAA); ok {
				out = append(out, a)
			}
		}
	}
	return out
}

// Tried is the result of a query and a connection of a pod.
type Tried struct {
	Addr    netip.Addr
	Asked   time.Duration // duration of the query
	Dialed  cluster.Dialed
	Problem error // error of the query
}

// Try queries a name and connects at once to the first address, at port 80. It closes the connection.
func Try(p *cluster.Pod, server netip.AddrPort, name string, qtype uint16, limit time.Duration) Tried {
	m, took, err := Ask(p, server, name, qtype, limit)
	out := Tried{Asked: took, Problem: err}
	if err != nil {
		return out
	}
	addrs := Addrs(m)
	if m.Rcode != dns.RcodeSuccess || len(addrs) == 0 {
		out.Problem = fmt.Errorf("%s: %s with %d addresses", name, dns.RcodeToString[m.Rcode], len(addrs))
		return out
	}
	out.Addr = addrs[0]
	out.Dialed = p.Dial(netip.AddrPortFrom(out.Addr, 80), limit)
	if out.Dialed.Conn != nil {
		_ = out.Dialed.Conn.Close()
	}
	return out
}

// Connects reports whether a pod can open a connection.
func Connects(p *cluster.Pod, to netip.Addr, port uint16, limit time.Duration) bool {
	d := p.Dial(netip.AddrPortFrom(to, port), limit)
	if d.Conn == nil {
		return false
	}
	_ = d.Conn.Close()
	return true
}

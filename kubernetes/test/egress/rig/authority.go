package rig

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Answer is the authority's answer for a name.
type Answer struct {
	Addrs  []netip.Addr // a reply contains those of the queried family
	TTL    time.Duration
	Rcode  int
	Delay  time.Duration
	Silent bool // no reply at all
}

// Script returns the answers for the names below a suffix.
type Script func(name string, now time.Time) Answer

// Authority is a DNS server of the internet that answers from scripts. Names without a script do not exist.
type Authority struct {
	Addr, Slow netip.AddrPort

	mu      sync.Mutex // guards the fields below
	scripts map[string]Script
	last    map[netip.Addr]time.Time // time of the last answer with an address
	loss    float64
	asked   int
	fresh   uint32
}

// Addresses of the internet at which it answers: at once, and after SlowBy.
var (
	authorityAt = netip.MustParseAddrPort("198.51.100.53:53")
	slowAt      = netip.MustParseAddrPort("198.51.100.54:53")
)

// SlowBy is the delay at the slow address.
const SlowBy = 4 * time.Second

// StartAuthority starts an authority in the internet.
func StartAuthority(t cluster.T, ext *cluster.External) *Authority {
	t.Helper()
	a := &Authority{Addr: authorityAt, Slow: slowAt, scripts: map[string]Script{}, last: map[netip.Addr]time.Time{}}
	for _, at := range []netip.AddrPort{authorityAt, slowAt} {
		pc, err := ext.ListenPacket(at.String())
		if err != nil {
			t.Fatalf("authority: %v", err)
		}
		l, err := ext.Listen(at.String())
		if err != nil {
			t.Fatalf("authority: %v", err)
		}
		h := dns.Handler(a)
		if at == slowAt {
			h = dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
				time.Sleep(SlowBy)
				a.ServeDNS(w, q)
			})
		}
		for _, s := range []*dns.Server{{PacketConn: pc, Handler: h}, {Listener: l, Handler: h}} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = s.ActivateAndServe()
			}()
			t.Cleanup(func() {
				_ = pc.Close()
				_ = l.Close()
				<-done
			})
		}
	}
	return a
}

// Script sets f for a name and all names below it. The longest suffix decides; nil removes it.
func (a *Authority) Script(suffix string, f Script) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if suffix = dns.CanonicalName(suffix); f == nil {
		delete(a.scripts, suffix)
	} else {
		a.scripts[suffix] = f
	}
}

// Say sets one answer for a name and the names below it.
func (a *Authority) Say(name string, answer Answer) {
	a.Script(name, func(string, time.Time) Answer { return answer })
}

// Fresh gives each name below a suffix an address of each family that no other name ever had.
func (a *Authority) Fresh(suffix string, ttl time.Duration) {
	known := map[string][]netip.Addr{}
	a.Script(suffix, func(name string, _ time.Time) Answer {
		if known[name] == nil {
			known[name] = a.freshLocked()
		}
		return Answer{Addrs: known[name], TTL: ttl}
	})
}

// New returns an unused address of each family.
func (a *Authority) New() []netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.freshLocked()
}

func (a *Authority) freshLocked() []netip.Addr {
	a.fresh++
	v4 := [4]byte{198, 18}
	binary.BigEndian.PutUint16(v4[2:], uint16(a.fresh))
	v4[1] += byte(a.fresh >> 16 & 1)
	v6 := netip.MustParseAddr("2001:db8::").As16()
	binary.BigEndian.PutUint32(v6[12:], a.fresh)
	return []netip.Addr{netip.AddrFrom4(v4), netip.AddrFrom16(v6)}
}

// Rotate gives a name n addresses of a pool at a time, and other ones after each step.
func Rotate(pool []netip.Addr, n int, step, ttl time.Duration) Script {
	begun := time.Now()
	return func(_ string, now time.Time) Answer {
		at := int(now.Sub(begun)/step) * n
		out := Answer{TTL: ttl}
		for i := range n {
			out.Addrs = append(out.Addrs, pool[(at+i)%len(pool)])
		}
		return out
	}
}

// Lose makes the authority ignore a part of the queries by UDP.
func (a *Authority) Lose(part float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loss = part
}

// Asked returns the number of queries.
func (a *Authority) Asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// LastAnswer returns the time of the last answer with an address.
func (a *Authority) LastAnswer(addr netip.Addr) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last[addr]
}

// ServeDNS implements dns.Handler.
func (a *Authority) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	if len(q.Question) != 1 {
		return
	}
	answer := a.answer(q.Question[0], w.LocalAddr().Network() == "udp")
	if answer.Delay > 0 {
		time.Sleep(answer.Delay)
	}
	if answer.Silent {
		return
	}
	m := new(dns.Msg)
	m.SetRcode(q, answer.Rcode)
	m.Authoritative, m.RecursionAvailable = true, true
	m.Answer = records(q.Question[0], answer)
	if len(m.Answer) == 0 {
		m.Ns = []dns.RR{soa()}
	}
	size := dns.MinMsgSize
	if opt := q.IsEdns0(); opt != nil {
		size = int(opt.UDPSize())
		m.SetEdns0(dns.DefaultMsgSize, false)
	}
	if w.LocalAddr().Network() == "udp" {
		m.Truncate(size)
	}
	_ = w.WriteMsg(m) // ignore a client that left
}

func (a *Authority) answer(q dns.Question, udp bool) Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if udp && a.loss > 0 && rand.Float64() < a.loss {
		return Answer{Silent: true}
	}
	name, now := dns.CanonicalName(q.Name), time.Now()
	for off, end := 0, false; !end; off, end = dns.NextLabel(name, off) {
		if f := a.scripts[name[off:]]; f != nil {
			out := f(name, now)
			for _, addr := range out.Addrs {
				if addr.Is4() == (q.Qtype == dns.TypeA) {
					a.last[addr] = now
				}
			}
			return out
		}
	}
	return Answer{Rcode: dns.RcodeNameError}
}

func records(q dns.Question, answer Answer) []dns.RR {
	var out []dns.RR
	for _, addr := range answer.Addrs {
		h := dns.RR_Header{Name: q.Name, Class: dns.ClassINET, Rrtype: q.Qtype, Ttl: uint32(answer.TTL / time.Second)}
		switch {
		case q.Qtype == dns.TypeA && addr.Is4():
			out = append(out, &dns.A{Hdr: h, A: addr.AsSlice()})
		case q.Qtype == dns.TypeAAAA && addr.Is6():
			out = append(out, &dns.AAAA{Hdr: h, AAAA: addr.AsSlice()})
		}
	}
	return out
}

// soa has a zero TTL, so that resolvers do not cache negative answers.
func soa() dns.RR {
	return &dns.SOA{Hdr: dns.RR_Header{Name: "test.", Class: dns.ClassINET, Rrtype: dns.TypeSOA, Ttl: 1}, Ns: "ns.test.",
		Mbox: "admin.test.", Serial: 1, Refresh: 60, Retry: 60, Expire: 60, Minttl: 1}
}

// Name returns a name that was never queried before.
func Name(i int, suffix string) string {
	return fmt.Sprintf("n%d.%s.", i, strings.TrimSuffix(suffix, "."))
}

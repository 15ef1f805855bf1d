package dnsserver

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// loops are the two implementations that serve UDP. On Linux both are tested.
var loops = []struct {
	name     string
	portable bool
}{{"batches", false}, {"portable", true}}

const patience = 5 * time.Second // timeout of clients in tests; nothing takes as long unless it is broken

func exchange(t *testing.T, network, addr string, m *dns.Msg) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: patience}
	r, _, err := c.Exchange(m, addr)
	if err != nil {
		t.Fatalf("ask %s over %s: %v", addr, network, err)
	}
	return r
}

func TestServe(t *testing.T) {
	for _, loop := range loops {
		for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0", ":0"} {
			t.Run(loop.name+"/"+listen, func(t *testing.T) {
				addrs, _ := start(t, Config{Listen: []string{listen}, workers: 2, portable: loop.portable})
				for _, addr := range addrs {
					addr = strings.Replace(strings.Replace(addr, "0.0.0.0", "127.0.0.1", 1), "[::]", "[::1]", 1)
					for _, network := range []string{"udp", "tcp"} {
						// Use enough source ports for both workers to get some.
						for range 16 {
							r := exchange(t, network, addr, question("wWw.example.org.", dns.TypeA))
							if len(r.Answer) != 1 || !r.Authoritative || r.Answer[0].Header().Name != "wWw.example.org." {
								t.Fatalf("over %s: %v", network, r)
							}
						}
					}
				}
			})
		}
	}
}

func TestSeveralAddresses(t *testing.T) {
	addrs, _ := start(t, Config{Listen: []string{"127.0.0.1:0", "127.0.0.2:0", "[::1]:0"}})
	if len(addrs) != 3 {
		t.Fatalf("bound %v, want three", addrs)
	}
	for _, addr := range addrs {
		exchange(t, "udp", addr, question("www.example.org.", dns.TypeA))
	}
}

// TestReplyLeavesFromTheAddressAsked checks the source address: clients accept no reply from another address.
func TestReplyLeavesFromTheAddressAsked(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			addrs, _ := start(t, Config{Listen: []string{"0.0.0.0:0"}, portable: loop.portable})
			server := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"),
				netip.MustParseAddrPort(addrs[0]).Port()))
			c := udpClient(t, "127.0.0.1:0")
			for range 3 { // the buffers must carry nothing from one message to the next
				if _, err := c.WriteToUDP(packed(t, question("www.example.org.", dns.TypeA)), server); err != nil {
					t.Fatal(err)
				}
				b := make([]byte, 512)
				_, from, err := c.ReadFromUDP(b)
				if err != nil {
					t.Fatal(err)
				}
				if from.String() != server.String() {
					t.Errorf("reply came from %v, want %v", from, server)
				}
			}
		})
	}
}

func udpClient(t *testing.T, local string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(local)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return c
}

// TestMixedBatch sends good and bad datagrams in one batch. Each good one gets its own answer, at the address that
// sent it.
func TestMixedBatch(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			addrs, _ := start(t, Config{workers: 1, portable: loop.portable})
			server := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addrs[0]))
			clients := []*net.UDPConn{udpClient(t, "127.0.0.1:0"), udpClient(t, "127.0.0.3:0")}
			const rounds = 100
			for id := range rounds {
				for i, c := range clients {
					q := question([]string{"www.example.org.", "alias.example.org."}[i], dns.TypeA)
					q.Id = uint16(id)
					good := packed(t, q)
					bad := bytes.Clone(good)
					bad[2] |= 0x80
					for _, b := range [][]byte{bad, good, good[:5], make([]byte, 0)} {
						if _, err := c.WriteToUDP(b, server); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			for i, c := range clients {
				seen := map[uint16]bool{}
				for range rounds {
					b := make([]byte, 1500)
					n, err := c.Read(b)
					if err != nil {
						t.Fatal(err)
					}
					m := unpacked(t, b[:n])
					if seen[m.Id] || len(m.Answer) != i+1 {
						t.Fatalf("client %d got %v", i, m)
					}
					seen[m.Id] = true
				}
			}
		})
	}
}

// TestTruncatedThenTCP does what a resolver does with a large answer.
func TestTruncatedThenTCP(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			addrs, _ := start(t, Config{portable: loop.portable})
			q := question("big.example.org.", dns.TypeA)
			if r := exchange(t, "udp", addrs[0], q); !r.Truncated {
				t.Errorf("60 addresses without EDNS came without TC: %v", r)
			}
			if r := exchange(t, "udp", addrs[0], withOPT(q.Copy(), 1232)); r.Truncated || len(r.Answer) != 60 {
				t.Errorf("60 addresses in 1232 bytes: %d, truncated %v", len(r.Answer), r.Truncated)
			}
			if r := exchange(t, "tcp", addrs[0], q); r.Truncated || len(r.Answer) != 60 {
				t.Errorf("60 addresses over TCP: %d, truncated %v", len(r.Answer), r.Truncated)
			}
		})
	}
}

// TestLargeDatagram checks that a large query gets the same answer over UDP as over TCP, and does not affect the next.
func TestLargeDatagram(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			addrs, _ := start(t, Config{portable: loop.portable})
			q := withOPT(question("www.example.org.", dns.TypeA), 1232, &dns.EDNS0_PADDING{Padding: make([]byte, 3000)})
			for _, network := range []string{"udp", "tcp"} {
				if r := exchange(t, network, addrs[0], q); r.Rcode != dns.RcodeSuccess || len(r.Answer) != 1 {
					t.Errorf("query of 3,000 bytes over %s got %v", network, r)
				}
			}
			exchange(t, "udp", addrs[0], question("www.example.org.", dns.TypeA))
		})
	}
}

func TestRateLimitOnTheWire(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			addrs, _ := start(t, Config{workers: 1, portable: loop.portable, RRL: RRLConfig{Responses: 1, loopback: true}})
			// One answer per second passes. Every second one of the others is sent empty with TC.
			c := udpClient(t, "127.0.0.1:0")
			for range 100 {
				sendTo(t, c, netip.MustParseAddrPort(addrs[0]), question("www.example.org.", dns.TypeA))
			}
			if m, _ := receive(t, c); m.Truncated || len(m.Answer) != 1 {
				t.Errorf("the first reply is %v", m)
			}
			for m := new(dns.Msg); !m.Truncated; {
				m, _ = receive(t, c)
			}
			if r := exchange(t, "tcp", addrs[0], question("www.example.org.", dns.TypeA)); len(r.Answer) != 1 {
				t.Errorf("TCP is limited too: %v", r)
			}
		})
	}
}

// TestShutdown checks that queries sent before the shutdown are answered, and that Run leaves no socket open.
func TestShutdown(t *testing.T) {
	for _, loop := range loops {
		t.Run(loop.name, func(t *testing.T) {
			s := listening(t, Config{portable: loop.portable})
			addr := s.Addrs()[0]
			udp := udpClient(t, "127.0.0.1:0")
			tcp := dialTCP(t, addr.String())
			in := packed(t, question("www.example.org.", dns.TypeA))
			if _, err := udp.WriteToUDP(in, net.UDPAddrFromAddrPort(addr)); err != nil {
				t.Fatal(err)
			}
			writeFramed(t, tcp, in)
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // before the server could read anything
			if err := s.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := udp.Read(make([]byte, 512)); err != nil {
				t.Errorf("the query that had arrived over UDP was not answered: %v", err)
			}
			if m := readFramed(t, tcp); len(m.Answer) != 1 {
				t.Errorf("the query that had arrived over TCP was answered with %v", m)
			}
			again, err := Listen(Config{Listen: []string{addr.String()}})
			if err != nil {
				t.Fatalf("the port is not free again: %v", err)
			}
			again.Close()
		})
	}
}

func TestListenErrors(t *testing.T) {
	addrs, _ := start(t, Config{})
	tests := []struct {
		name string
		cfg  Config
		want string
	}{
		{"no port", Config{Listen: []string{"127.0.0.1"}}, "missing port"},
		{"a name", Config{Listen: []string{"localhost:53"}}, "not an IP address"},
		{"a service", Config{Listen: []string{"127.0.0.1:domain"}}, "not a number"},
		{"in use", Config{Listen: []string{"127.0.0.1:0", addrs[0]}}, "another DNS server"},
		{"not ours", Config{Listen: []string{"192.0.2.1:0"}}, "no such address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Listen(tt.cfg)
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Listen = %v, want an error with %q", err, tt.want)
			}
		})
	}
	if err := hint(syscall.EACCES); !errors.Is(err, syscall.EACCES) ||
		!strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE") {
		t.Errorf("hint(EACCES) = %v", err)
	}
}

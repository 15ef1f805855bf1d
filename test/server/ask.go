package server

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Ask sends one question to a DNS server over UDP.
func Ask(addr, name string, typ uint16) (*dns.Msg, error) {
	client := dns.Client{Timeout: 5 * time.Second, UDPSize: 1232}
	r, _, err := client.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), typ).SetEdns0(1232, false), addr)
	return r, err
}

// Ask sends one question to the server. The test fails without a reply.
func (s *Server) Ask(name string, typ uint16) *dns.Msg {
	s.t.Helper()
	r, err := Ask(s.DNS[0], name, typ)
	if err != nil {
		s.t.Fatalf("%s %s: %v", name, dns.TypeToString[typ], err)
	}
	return r
}

// ListenBoth binds one loopback port for TCP and UDP.
func ListenBoth() (net.Listener, net.PacketConn, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		conn, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, conn, nil
		}
		_ = l.Close()
	}
	return nil, nil, errors.New("no loopback port is free for both UDP and TCP")
}

// FreePort returns a loopback port that is free for UDP and TCP. Another program may bind it before the caller does.
func FreePort() (int, error) {
	for {
		l, conn, err := ListenBoth()
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		conn.Close()
		// Some servers bind a port that another one has (SO_REUSEPORT), and then each gets half of the queries.
		if _, taken := ports.LoadOrStore(port, true); !taken {
			return port, nil
		}
	}
}

// ports are the ports that FreePort has returned.
var ports sync.Map

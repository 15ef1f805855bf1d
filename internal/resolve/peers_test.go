package resolve_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

func question(name string, qtype uint16) *dns.Msg { return new(dns.Msg).SetQuestion(name, qtype) }

func record(t testing.TB, s string) dns.RR {
	t.Helper()
	r, err := dns.NewRR(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reply returns a packed reply to a packed query.
func reply(t testing.TB, query []byte, records ...string) []byte {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(query); err != nil {
		t.Fatal(err)
	}
	m.SetReply(m)
	m.Extra = nil
	for _, s := range records {
		m.Answer = append(m.Answer, record(t, s))
	}
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

// packet is a datagram that a server received.
type packet struct {
	conn  *net.UDPConn
	from  netip.AddrPort
	query []byte
}

func (p packet) send(wire []byte) { p.conn.WriteToUDPAddrPort(wire, p.from) }

// serveUDP runs a server that calls handle for each packet.
func serveUDP(t testing.TB, handle func(packet)) resolve.Server {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return runUDP(t, conn, handle)
}

func runUDP(t testing.TB, conn *net.UDPConn, handle func(packet)) resolve.Server {
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		for {
			buf := make([]byte, 4096)
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			handle(packet{conn, from, buf[:n]})
		}
	}()
	return resolve.Server{Addr: conn.LocalAddr().(*net.UDPAddr).AddrPort()}
}

// serveTCP runs a server that calls handle for each connection and then closes it.
func serveTCP(t testing.TB, handle func(net.Conn)) resolve.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return runTCP(t, l, handle)
}

func runTCP(t testing.TB, l net.Listener, handle func(net.Conn)) resolve.Server {
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return resolve.Server{Transport: resolve.TCP, Addr: l.Addr().(*net.TCPAddr).AddrPort()}
}

// serveBoth runs a UDP and a TCP server on one port. The system chooses a port that is free for TCP. It may need
// several attempts until the port is free for UDP too.
func serveBoth(t testing.TB, packets func(packet), conns func(net.Conn)) resolve.Server {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.Addr().(*net.TCPAddr).AddrPort()))
		if err != nil {
			l.Close()
			continue
		}
		runTCP(t, l, conns)
		return runUDP(t, conn, packets)
	}
	t.Fatal("no port is free for UDP and TCP")
	return resolve.Server{}
}

// readMessage reads one message from a connection. It returns nil at the end.
func readMessage(conn net.Conn) []byte {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil
	}
	wire := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, wire); err != nil {
		return nil
	}
	return wire
}

func writeMessage(conn net.Conn, wire []byte) {
	conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...))
}

// certificate creates a certificate for a name and an address. It also returns the pool that trusts the certificate.
func certificate(t testing.TB, name string, ip net.IP) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{ip},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

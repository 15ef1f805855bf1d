package hostile

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/test/server"
)

// smallReader returns a dialer whose connections have the smallest receive buffer, and the given address.
func smallReader(from string) *net.Dialer {
	d := &net.Dialer{Timeout: server.Patience, Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 4096)
		}), err)
	}}
	if from != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return d
}

// largeAnswer creates a record set of the hostile tenant whose answer has 60 KB, and returns a query for it.
func (b *besieged) largeAnswer() []byte {
	b.t.Helper()
	zone := b.hostileZone("answers.example.org.")
	text := strings.TrimSpace(strings.Repeat(`"`+strings.Repeat("x", 250)+`" `, 240))
	b.must(b.hostile, zone+"/recordsets", map[string]any{"name": "t.answers.example.org.", "type": "TXT",
		"records": []string{text}}, new(struct{}))
	m := new(dns.Msg).SetQuestion("t.answers.example.org.", dns.TypeTXT)
	m.Id = 0 // RFC 9250 section 4.2.1
	query, err := m.Pack()
	if err != nil {
		b.t.Fatal(err)
	}
	return query
}

func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

// neverRead opens a connection from an address over a transport, sends a query as often as the transport allows, and
// reads no answer. It returns a function that closes the connection.
func (b *besieged) neverRead(transport, from string, query []byte) (end func(), err error) {
	trusting := &tls.Config{InsecureSkipVerify: true}
	dial := func(addr string, c *tls.Config, message string) (func(), error) {
		conn, err := smallReader(from).Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		if err := conn.SetDeadline(time.Now().Add(server.Patience)); err != nil {
			return nil, err
		}
		stream := conn
		if c != nil {
			stream = tls.Client(conn, c)
		}
		_, _ = stream.Write([]byte(strings.Repeat(message, 100))) // the server may have closed it: it limits slow readers
		return func() { conn.Close() }, nil
	}
	switch transport {
	case "tcp":
		return dial(b.DNS[0], nil, string(framed(query)))
	case "tls":
		trusting.NextProtos = []string{"dot"}
		return dial(b.TLS[0], trusting, string(framed(query)))
	case "https":
		addr := strings.TrimPrefix(b.HTTPS[0], "https://")
		return dial(addr, trusting, "GET /dns-query?dns="+base64.RawURLEncoding.EncodeToString(query)+
			" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	}
	trusting.NextProtos = []string{"doq"}
	return b.neverReadQUIC(from, trusting, framed(query))
}

// neverReadQUIC is neverRead for QUIC. The server has 64 streams for a connection.
func (b *besieged) neverReadQUIC(from string, c *tls.Config, message []byte) (end func(), err error) {
	local, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), server.Patience)
	defer cancel()
	addr, err := net.ResolveUDPAddr("udp", b.QUIC[0])
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: local}
	end = func() { transport.Close(); local.Close() }
	conn, err := transport.Dial(ctx, addr, c, &quic.Config{InitialStreamReceiveWindow: 512, MaxStreamReceiveWindow: 512})
	if err != nil {
		return end, err
	}
	for range 64 {
		stream, err := conn.OpenStreamSync(ctx)
		if err != nil {
			return end, err
		}
		_, _ = stream.Write(message) // the server may have refused it: it limits requests
		stream.Close()
	}
	return end, nil
}

// TestUnreadAnswers asks for the largest answers over many connections from eight addresses, and reads none of them.
// Neither the kernel nor the server may keep much of them, and other clients get answers.
func TestUnreadAnswers(t *testing.T) {
	in := everyListener(t)
	b := besiege(t, in)
	query := b.largeAnswer()
	for transport, conns := range map[string]int{"tcp": 768, "tls": 512, "https": 512, "quic": 128} {
		t.Run(transport, func(t *testing.T) { b.unreadAnswers(t, transport, conns, query) })
	}
	if peak, most := b.group.peak(t), in.memory>>21; peak > most {
		t.Errorf("the server used %d MiB, more than half of its limit", peak)
	}
}

func (b *besieged) unreadAnswers(t *testing.T, transport string, conns int, query []byte) {
	for i := range conns {
		end, err := b.neverRead(transport, fmt.Sprintf("127.0.1.%d", i*8/conns+1), query)
		if end != nil {
			defer end()
		}
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	listeners := []string{b.DNS[0], b.TLS[0], strings.TrimPrefix(b.HTTPS[0], "https://")}
	for range 4 {
		time.Sleep(250 * time.Millisecond)
		kept := 0
		for _, l := range listeners {
			kept += unsent(t, l[strings.LastIndexByte(l, ':')+1:])
		}
		// The kernel kept 800 MiB for TCP before its buffers had a limit.
		if most := 128 << 20; kept > most {
			t.Errorf("the kernel keeps %d MiB of answers, more than %d MiB", kept>>20, most>>20)
		}
		for _, network := range []string{"tcp", "tcp-tls"} {
			client := &dns.Client{Net: network, Timeout: server.Patience, TLSConfig: &tls.Config{InsecureSkipVerify: true}}
			at := map[string]string{"tcp": b.DNS[0], "tcp-tls": b.TLS[0]}[network]
			reply, _, err := client.Exchange(new(dns.Msg).SetQuestion("victim.example.org.", dns.TypeSOA), at)
			if err != nil || len(reply.Answer) != 1 {
				t.Errorf("a client that reads over %s: %v %v", network, reply, err)
			}
		}
	}
	b.alive("answers over " + transport + " that nobody reads")
}

// unsent returns how many bytes of the TCP connections of a local port are not acknowledged.
func unsent(t *testing.T, port string) (sum int) {
	t.Helper()
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	suffix := fmt.Sprintf(":%04X", n)
	for line := range strings.Lines(string(readFile(t, "/proc/net/tcp"))) {
		fields := strings.Fields(line) // sl, local address, remote address, state, tx_queue:rx_queue
		if len(fields) < 5 || !strings.HasSuffix(fields[1], suffix) {
			continue
		}
		tx, _, _ := strings.Cut(fields[4], ":")
		bytes, err := strconv.ParseInt(tx, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += int(bytes)
	}
	return sum
}

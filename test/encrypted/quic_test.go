package encrypted

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"

	"github.com/nameplane/nameplane/test/server"
)

// TestQueriesOverQUIC queries with kdig.
func TestQueriesOverQUIC(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	expect(t, run("kdig", n.QUIC[0], "+quic", www), "192.0.2.1", "QUIC")
	expect(t, run("kdig", n.QUIC[0], "+quic", "+padding", www), "192.0.2.1", "PADDING")
	expect(t, run("kdig", n.QUIC[0], "+tls-ca="+n.ca.file, "+tls-hostname="+primaryName, "+quic", www), "192.0.2.1")
	expect(t, run("kdig", n.QUIC[0], "+tls-ca="+newAuthority(t).file, "+tls-hostname="+primaryName, "+quic", www),
		"!192.0.2.1")
	if got := n.Metric(`nameplane_dns_queries_total{family="ipv4",transport="quic"}`); got < 3 {
		t.Errorf("%v queries over QUIC are counted", got)
	}
}

// dialQUIC opens a connection that ends with the test.
func (n *node) dialQUIC(c *tls.Config) *quic.Conn {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), server.Patience)
	defer cancel()
	conn, err := quic.DialAddr(ctx, n.QUIC[0], c, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.CloseWithError(0, "") })
	return conn
}

func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
}

// send sends bytes on a new stream, ends the stream if fin is set, and returns everything that the server sends.
func send(t *testing.T, c *quic.Conn, b []byte, fin bool) ([]byte, error) {
	t.Helper()
	s, err := c.OpenStreamSync(t.Context())
	if err != nil {
		return nil, err
	}
	s.SetDeadline(time.Now().Add(server.Patience))
	if _, err := s.Write(b); err != nil {
		return nil, err
	}
	if fin {
		s.Close()
	}
	return io.ReadAll(s)
}

// TestProtocolErrorsOverQUIC checks what the server does with clients that do not follow RFC 9250.
func TestProtocolErrorsOverQUIC(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	query := packed(t, new(dns.Msg).SetQuestion(www, dns.TypeA))
	withID := append([]byte{0, 1}, query[2:]...)
	keepalive := new(dns.Msg).SetQuestion(www, dns.TypeA).SetEdns0(1232, false)
	keepalive.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE}}
	for name, b := range map[string][]byte{
		"an ID":              framed(withID),
		"two queries":        append(framed(query), framed(query)...),
		"half a message":     framed(query)[:20],
		"nothing":            {},
		"a keepalive option": framed(packed(t, keepalive)),
		"a reply":            framed(packed(t, new(dns.Msg).SetReply(new(dns.Msg).SetQuestion(www, dns.TypeA)))),
	} {
		t.Run(name, func(t *testing.T) {
			c := n.dialQUIC(n.ca.client(pair{}, "doq"))
			reply, err := send(t, c, b, true)
			var closed *quic.ApplicationError
			if !errors.As(err, &closed) || closed.ErrorCode != 2 {
				t.Errorf("%x, %v; want the error 2", reply, err)
			}
		})
	}
	t.Run("no end of the stream", func(t *testing.T) {
		c := n.dialQUIC(n.ca.client(pair{}, "doq"))
		reply, err := send(t, c, framed(query), false)
		var reset *quic.StreamError
		if !errors.As(err, &reset) {
			t.Errorf("%x, %v; want a reset stream", reply, err)
		}
		if reply, err = send(t, c, framed(query), true); err != nil || len(reply) == 0 {
			t.Errorf("the next query: %x, %v", reply, err)
		}
	})
	t.Run("another protocol", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), server.Patience)
		defer cancel()
		if _, err := quic.DialAddr(ctx, n.QUIC[0], n.ca.client(pair{}, "h3"), nil); err == nil {
			t.Error("the protocol h3 is accepted")
		}
	})
}

// TestManyStreamsOverQUIC sends a thousand queries on one connection, and holds as many streams as it may have.
func TestManyStreamsOverQUIC(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	c := n.dialQUIC(n.ca.client(pair{}, "doq"))
	query := framed(packed(t, new(dns.Msg).SetQuestion(www, dns.TypeA)))
	ended := make(chan error, 1000)
	for range cap(ended) {
		go func() {
			reply, err := send(t, c, query, true)
			if err == nil && len(reply) < 14 {
				err = fmt.Errorf("the reply is %x", reply)
			}
			ended <- err
		}()
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for ; held < 1000; held++ {
		s, err := c.OpenStream()
		if err != nil {
			break
		}
		if _, err := s.Write(query[:3]); err != nil {
			t.Fatal(err)
		}
	}
	if held > 64 {
		t.Errorf("%d streams are open", held)
	}
	if r := n.Ask(www, dns.TypeA); len(r.Answer) != 1 {
		t.Errorf("UDP meanwhile: %v", r)
	}
}

// TestTransferOverQUIC transfers a zone on one stream. The rules are those of TLS.
func TestTransferOverQUIC(t *testing.T) {
	t.Parallel()
	n := start(t, "", onlyWithCertificate)
	n.fill()
	query := framed(packed(t, new(dns.Msg).SetAxfr(apex)))
	reply, err := send(t, n.dialQUIC(n.ca.client(n.ca.issue(secondaryName), "doq")), query, true)
	if err != nil {
		t.Fatal(err)
	}
	var records []dns.RR
	messages := 0
	for ; len(reply) > 2; messages++ {
		size := 2 + int(binary.BigEndian.Uint16(reply))
		m := new(dns.Msg)
		if err := m.Unpack(reply[2:size]); err != nil || m.Id != 0 || m.Rcode != dns.RcodeSuccess {
			t.Fatalf("message %d: %v %v", messages, m, err)
		}
		records, reply = append(records, m.Answer...), reply[size:]
	}
	_, first := records[0].(*dns.SOA)
	_, last := records[len(records)-1].(*dns.SOA)
	if messages < 2 || len(records) < 104 || !first || !last {
		t.Errorf("%d messages with %d records", messages, len(records))
	}
	reply, err = send(t, n.dialQUIC(n.ca.client(n.ca.issue("ns3.example.org"), "doq")), query, true)
	m := new(dns.Msg)
	if err != nil || m.Unpack(reply[2:]) != nil || m.Rcode != dns.RcodeRefused {
		t.Errorf("with another certificate: %v %v", m, err)
	}
}

// TestNoEarlyUpdateOverQUIC sends an update with the first packet of a resumed session (0-RTT), which others could
// replay. The server does not accept early data; the update is made once, after the handshake.
func TestNoEarlyUpdateOverQUIC(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	n.createKey(key)
	config := n.ca.client(pair{}, "doq")
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	c := n.dialQUIC(config)
	if _, err := send(t, c, framed(packed(t, new(dns.Msg).SetQuestion(www, dns.TypeA))), true); err != nil {
		t.Fatal(err)
	}
	c.CloseWithError(0, "")
	update := new(dns.Msg).SetUpdate(apex)
	rec, err := dns.NewRR("early." + apex + " 60 A 192.0.2.9")
	if err != nil {
		t.Fatal(err)
	}
	update.Insert([]dns.RR{rec})
	update.Id = 0
	update.SetTsig(key.Name, dns.HmacSHA256, 300, time.Now().Unix())
	signed, _, err := dns.TsigGenerate(update, key.Secret, "", false)
	if err != nil {
		t.Fatal(err)
	}
	early, err := quic.DialAddrEarly(t.Context(), n.QUIC[0], config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer early.CloseWithError(0, "")
	reply, err := send(t, early, framed(signed), true)
	if early.ConnectionState().Used0RTT {
		t.Error("the server has accepted early data")
	}
	if errors.Is(err, quic.Err0RTTRejected) { // the client sends it again after the handshake
		next, nextErr := early.NextConnection(t.Context())
		if nextErr != nil {
			t.Fatal(nextErr)
		}
		if r := n.Ask("early."+apex, dns.TypeA); len(r.Answer) != 0 {
			t.Error("the early update was made")
		}
		reply, err = send(t, next, framed(signed), true)
	}
	if err != nil || len(reply) < 14 || reply[5]&0xF != dns.RcodeSuccess {
		t.Fatalf("the update: %x %v", reply, err)
	}
	if r := n.Ask("early."+apex, dns.TypeA); len(r.Answer) != 1 {
		t.Errorf("after the update: %v", r)
	}
	expect(t, strings.ToLower(run("kdig", n.QUIC[0], "+quic", "early."+apex)), "192.0.2.9")
}

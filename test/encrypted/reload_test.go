package encrypted

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"

	"github.com/nameplane/nameplane/test/server"
)

// session is a connection of a client. ask sends a query over it, and returns the certificate of the server.
type session struct {
	ask   func() (*x509.Certificate, error)
	close func()
}

// checked returns an error unless reply is the answer to a query for www.
func checked(reply []byte) error {
	m := new(dns.Msg)
	if err := m.Unpack(reply); err != nil {
		return err
	}
	if len(m.Answer) != 1 {
		return fmt.Errorf("the reply is %v", m)
	}
	return nil
}

func (n *node) openTLS(query []byte) (session, error) {
	conn, err := n.dial("127.0.0.1", n.ca.client(pair{}, "dot"))
	if err != nil {
		return session{}, err
	}
	return session{close: func() { conn.Close() }, ask: func() (*x509.Certificate, error) {
		c := &dns.Conn{Conn: conn}
		if _, err := c.Write(query); err != nil {
			return nil, err
		}
		reply, err := c.ReadMsgHeader(nil)
		if err != nil {
			return nil, err
		}
		return conn.ConnectionState().PeerCertificates[0], checked(reply)
	}}, nil
}

func (n *node) openHTTPS(query []byte) (session, error) {
	tr := &http.Transport{TLSClientConfig: n.ca.client(pair{}), ForceAttemptHTTP2: true}
	client := &http.Client{Transport: tr, Timeout: server.Patience}
	return session{close: tr.CloseIdleConnections, ask: func() (*x509.Certificate, error) {
		res, err := client.Post(n.HTTPS[0]+"/dns-query", "application/dns-message", bytes.NewReader(query))
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		reply, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		return res.TLS.PeerCertificates[0], checked(reply)
	}}, nil
}

func (n *node) openQUIC(query []byte) (session, error) {
	ctx, cancel := context.WithTimeout(n.t.Context(), server.Patience)
	defer cancel()
	conn, err := quic.DialAddr(ctx, n.QUIC[0], n.ca.client(pair{}, "doq"), nil)
	if err != nil {
		return session{}, err
	}
	return session{close: func() { conn.CloseWithError(0, "") }, ask: func() (*x509.Certificate, error) {
		reply, err := send(n.t, conn, framed(query), true)
		if err != nil || len(reply) < 2 {
			return nil, fmt.Errorf("%d bytes: %w", len(reply), err)
		}
		return conn.ConnectionState().TLS.PeerCertificates[0], checked(reply[2:])
	}}, nil
}

// TestReloadUnderLoad replaces the certificate while clients open connections over TLS, HTTPS and QUIC. No query fails,
// connections from before stay open, and new connections see the new certificate.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	query := packed(t, new(dns.Msg).SetQuestion(www, dns.TypeA))
	open := map[string]func([]byte) (session, error){"TLS": n.openTLS, "HTTPS": n.openHTTPS, "QUIC": n.openQUIC}
	once := func(transport string) (s session, cert *x509.Certificate, err error) {
		if s, err = open[transport](query); err != nil {
			return s, nil, fmt.Errorf("%s: connect: %w", transport, err)
		}
		if cert, err = s.ask(); err != nil {
			s.close()
			err = fmt.Errorf("%s: %w", transport, err)
		}
		return s, cert, err
	}
	kept, before := map[string]session{}, map[string]*x509.Certificate{}
	stop, failed := make(chan struct{}), make(chan error, 2*len(open))
	for transport := range open {
		s, cert, err := once(transport)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		kept[transport], before[transport] = s, cert
		for range cap(failed) / len(open) {
			go func() {
				for {
					select {
					case <-stop:
						failed <- nil
						return
					default:
					}
					s, _, err := once(transport)
					if err != nil {
						failed <- err
						return
					}
					s.close()
				}
			}()
		}
	}
	for range 10 {
		n.ca.issue(primaryName)
		n.Hangup("reloaded configuration")
		for transport, s := range kept {
			if cert, err := s.ask(); err != nil || !cert.Equal(before[transport]) {
				t.Errorf("%s: a connection from before: %v", transport, err)
			}
		}
	}
	if err := os.WriteFile(n.own.cert, []byte("not a certificate"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.Hangup("certificates not reloaded, the old ones stay")
	close(stop)
	for range cap(failed) {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	for transport, old := range before {
		s, cert, err := once(transport)
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		if cert.Equal(old) || time.Since(cert.NotBefore) > 2*time.Hour {
			t.Errorf("%s: new connections have the old certificate", transport)
		}
	}
}

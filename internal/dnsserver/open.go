package dnsserver

import (
	"crypto/tls"
	"errors"
	"time"
)

// Encryption describes the encrypted connection that a message came from.
type Encryption struct {
	Version uint16   // of TLS
	Names   []string // DNS names in the verified certificate of the client; none without a certificate
}

func encryptionOf(s tls.ConnectionState) *Encryption {
	e := &Encryption{Version: s.Version}
	if len(s.VerifiedChains) > 0 {
		e.Names = s.PeerCertificates[0].DNSNames
	}
	return e
}

var errPerClient = errors.New("the client has too many connections")

// open reads the PROXY header and runs the TLS handshake of a connection, if its listener has them. Until then the
// connection counts as one with half a message. With an error it returns the reason to count.
func (c *conn) open() (reason int, err error) {
	if !c.listener.isProxied() && c.listener.tls == nil {
		return 0, nil
	}
	until := time.Now().Add(c.server.timeouts.read)
	c.server.conns.wait(c, until)
	if c.listener.isProxied() {
		if err := c.readProxyHeader(); err != nil {
			return dropProxy, err
		}
	}
	if c.listener.tls == nil {
		return 0, nil
	}
	c.net.SetWriteDeadline(until)
	t := tls.Server(c.net, c.listener.tls)
	if err := t.Handshake(); err != nil {
		return dropTLS, err
	}
	c.net.SetWriteDeadline(time.Time{})
	c.stream, c.from.encrypted = t, encryptionOf(t.ConnectionState())
	return 0, nil
}

// readProxyHeader reads the PROXY header of a connection, and takes the client's address from it.
func (c *conn) readProxyHeader() error {
	if !contains(c.listener.proxies, c.from.addr) {
		return errNotProxy
	}
	addr, err := readProxy(c.net)
	if err != nil {
		return err
	}
	if !addr.IsValid() {
		addr = c.from.addr // the proxy speaks for itself
	}
	if !c.server.conns.setClient(c, addr) {
		return errPerClient
	}
	c.count = c.listener.countOf(addr)
	return nil
}

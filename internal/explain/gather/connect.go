package gather

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
)

// The limits of connections to a service. A page is read only to recognise the program that wrote it.
const (
	connectTimeout = 5 * time.Second
	maxPage        = 64 << 10
	keptPage       = 512
)

// connect opens a connection to every address of the service, and records the certificate and the page. Ports are those
// of the listeners of the hostname; without objects, the port of HTTPS.
func (r *run) connect() {
	if r.Connect == nil {
		return
	}
	r.facts.Service.Connections = r.openAll(r.endpoints(portsOf(r.facts.Service)))
	r.fetchToken()
	r.fetchChallenge()
}

// openAll connects to addresses at the same time.
func (r *run) openAll(all []endpoint) []explain.Connection {
	name := strings.TrimSuffix(r.facts.Service.Host, ".")
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		name = r.probeLabel + "." + rest // any name of the wildcard
	}
	out := make([]explain.Connection, len(all))
	var group sync.WaitGroup
	for i, e := range all {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(r.ctx, connectTimeout)
			defer cancel()
			out[i] = r.open(ctx, e, name)
		})
	}
	group.Wait()
	return out
}

// open connects to one address.
func (r *run) open(ctx context.Context, e endpoint, name string) explain.Connection {
	out := explain.Connection{Addr: e.addr, Name: name, Connected: explain.Yes}
	conn, err := r.Connect(ctx, "tcp", e.addr.String())
	if err != nil {
		out.Connected, out.Problem = explain.Unknown, problemOf(err)
		if errors.Is(err, syscall.ECONNREFUSED) || timedOut(err) && r.ctx.Err() == nil {
			out.Connected = explain.No
		}
		return out
	}
	defer func() { _ = conn.Close() }()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end)
	}
	scheme := "http"
	if e.tls {
		scheme = "https"
		var secure net.Conn
		if secure, out.TLS = r.shake(ctx, conn, name); secure == nil {
			return out
		}
		conn = secure
	}
	if e.page {
		out.Page = fetch(conn, fmt.Sprintf("%s://%s%s", scheme, name, e.path), name, cmp.Or(e.most, keptPage))
	}
	if e.page && e.tls {
		out.TLS.HTTP2 = r.offersHTTP2(ctx, e, name)
	}
	return out
}

// offersHTTP2 reports whether a server chooses HTTP/2 in a second handshake. The first one offers only HTTP/1.1, in
// which the request is sent.
func (r *run) offersHTTP2(ctx context.Context, e endpoint, name string) explain.Fact {
	conn, err := r.Connect(ctx, "tcp", e.addr.String())
	if err != nil {
		return explain.Unknown
	}
	defer func() { _ = conn.Close() }()
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end)
	}
	c := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true, //nolint:gosec // judged in shake
		NextProtos: []string{"h2", "http/1.1"}})
	switch err := c.HandshakeContext(ctx); {
	case err != nil:
		return explain.Unknown
	case c.ConnectionState().NegotiatedProtocol == "h2":
		return explain.Yes
	}
	return explain.No
}

// shake makes a TLS handshake without trusting the certificate, and judges it afterwards, so that the certificate of a
// wrong server is recorded too.
func (r *run) shake(ctx context.Context, conn net.Conn, name string) (net.Conn, *explain.Handshake) {
	out := &explain.Handshake{Done: explain.Yes}
	c := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true, //nolint:gosec // judged below
		NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS10}) // an old version is reported, not refused
	if err := c.HandshakeContext(ctx); err != nil {
		out.Done, out.Problem = explain.No, problemOf(err)
		return nil, out
	}
	state := c.ConnectionState()
	out.Version, out.Protocol = tls.VersionName(state.Version), state.NegotiatedProtocol
	leaf := state.PeerCertificates[0]
	out.Subject, out.Issuer, out.Names = leaf.Subject.String(), leaf.Issuer.String(), leaf.DNSNames
	out.From, out.Until = leaf.NotBefore.UTC(), leaf.NotAfter.UTC()
	out.Covers, out.Trusted = explain.Yes, explain.Yes
	if leaf.VerifyHostname(name) != nil {
		out.Covers = explain.No
	}
	chain := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		chain.AddCert(c)
	}
	// The time is that of issuing, because expiry is judged on its own.
	at := r.facts.At
	if at.After(leaf.NotAfter) || at.Before(leaf.NotBefore) {
		at = leaf.NotBefore
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: r.Roots, Intermediates: chain, CurrentTime: at}); err != nil {
		out.Trusted, out.Why = explain.No, problemOf(err)
	}
	return c, out
}

// fetch sends one request and reads the beginning of the reply. Redirects are recorded, not followed.
func fetch(conn net.Conn, url, host string, most int) *explain.Page {
	out := &explain.Page{URL: url}
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		out.Problem = problemOf(err)
		return out
	}
	req.Host = host
	req.Header.Set("User-Agent", "nameplane-service")
	req.Close = true
	if err := req.Write(conn); err != nil {
		out.Problem = problemOf(err)
		return out
	}
	res, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxPage)), req)
	if err != nil {
		out.Problem = problemOf(err)
		return out
	}
	defer func() { _ = res.Body.Close() }()
	out.Status, out.Server, out.Location = res.StatusCode, res.Header.Get("Server"), res.Header.Get("Location")
	body, _ := io.ReadAll(io.LimitReader(res.Body, int64(most)))
	out.Body = strings.ToValidUTF8(string(body), "?")
	return out
}

// noReply is the problem of an address that does not reply.
const noReply = "no reply in time"

func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// problemOf returns an error in short words, without the addresses of this machine.
func problemOf(err error) string {
	if timedOut(err) {
		return noReply
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	return err.Error()
}

package httpapi

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hostAllowed protects a loopback listener against DNS rebinding. If the name evil.test resolves to 127.0.0.1, a page
// of evil.test can make a browser send requests to this server. The page has no token, so it gains little; but it could
// read the public paths, and the console keeps a session in the browser. The Host header shows the foreign name. Other
// listeners are protected by TLS: evil.test has no certificate for their names.
func (f *frame) hostAllowed(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || r.TLS != nil {
		return true
	}
	ap, err := netip.ParseAddrPort(local.String())
	if err != nil || !ap.Addr().Unmap().IsLoopback() {
		return true
	}
	host := withoutPort(r.Host)
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true // without a name there is no rebinding; HTTP/1.0 requests have an empty host
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || host == f.host
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return withoutPort(u.Host)
}

func withoutPort(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// BaseURL returns the URL of the server for links in a reply, without a final slash. It is public if that is set.
// Otherwise it has the host of the request if that is an IP address, or a name of the server's certificate. A client
// can send any other name, and a cache or a mail could show its links to others; they get the local address of the
// connection.
func BaseURL(r *http.Request, public string) string {
	if public != "" {
		return strings.TrimSuffix(public, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if plainHost(r.Host) && checkedHost(r) {
		return scheme + "://" + r.Host
	}
	host := "localhost"
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		host = local.String()
	}
	return scheme + "://" + host
}

// checkedHost reports whether the Host header is an IP address, or a name of the certificate of the connection.
func checkedHost(r *http.Request) bool {
	host := withoutPort(r.Host)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	cert, ok := r.Context().Value(certKey{}).(*x509.Certificate)
	return ok && cert.VerifyHostname(host) == nil
}

// certKey is the key of the server's certificate in the context of a request over TLS.
type certKey struct{}

// plainHost reports whether h has only characters of hosts. Other text must not get into links and headers.
func plainHost(h string) bool {
	return h != "" && !strings.ContainsFunc(h, func(c rune) bool {
		return !(c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']' || c == '%' ||
			'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	})
}

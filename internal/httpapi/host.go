package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// hostAllowed guards a loopback listener against DNS rebinding: a page of evil.test, whose name suddenly leads to
// 127.0.0.1, can make its reader's browser talk to us as if we were evil.test. It has no token, so there is little to win;
// but what is public would be readable, and the console keeps a session in the browser. The Host header betrays it. Other
// listeners have names that only their owner knows, and are protected by TLS, which evil.test has no certificate for.
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
		return true // no name, so no rebinding; an empty one is of HTTP/1.0
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

// BaseURL is where the client of a request finds us, without a slash at the end: public when that is set, else what it
// called us.
func BaseURL(r *http.Request, public string) string {
	if public != "" {
		return strings.TrimSuffix(public, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if plainHost(r.Host) {
		return scheme + "://" + r.Host
	}
	host := "localhost"
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		host = local.String()
	}
	return scheme + "://" + host
}

// plainHost keeps what is no host out of the links and headers that we make from it.
func plainHost(h string) bool {
	return h != "" && !strings.ContainsFunc(h, func(c rune) bool {
		return !(c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']' || c == '%' ||
			'0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	})
}

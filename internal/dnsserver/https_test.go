package dnsserver

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// TestMaxAge checks how long replies over HTTPS may be cached.
func TestMaxAge(t *testing.T) {
	soa := func(ttl, minimum uint32) dns.RR {
		return &dns.SOA{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeSOA, Class: 1, Ttl: ttl}, Ns: "ns.",
			Mbox: "h.", Minttl: minimum}
	}
	a := func(ttl uint32) dns.RR {
		return &dns.A{Hdr: dns.RR_Header{Name: "www.example.org.", Rrtype: dns.TypeA, Class: 1, Ttl: ttl},
			A: []byte{192, 0, 2, 1}}
	}
	ns := &dns.NS{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeNS, Class: 1, Ttl: 1}, Ns: "ns."}
	for _, tt := range []struct {
		name    string
		rcode   int
		answers []dns.RR
		ns      []dns.RR
		want    uint32
	}{
		{"smallest TTL", dns.RcodeSuccess, []dns.RR{a(300), a(60), a(900)}, []dns.RR{ns}, 60},
		{"TTL of 0", dns.RcodeSuccess, []dns.RR{a(300), a(0)}, nil, 0},
		{"no data", dns.RcodeSuccess, nil, []dns.RR{soa(300, 60)}, 60},
		{"no name", dns.RcodeNameError, nil, []dns.RR{soa(60, 300)}, 60},
		{"an alias to nothing", dns.RcodeNameError, []dns.RR{a(30)}, []dns.RR{soa(60, 300)}, 30},
		{"a referral", dns.RcodeSuccess, nil, []dns.RR{ns}, 0},
		{"an error", dns.RcodeServerFailure, []dns.RR{a(300)}, nil, 0},
		{"refused", dns.RcodeRefused, nil, nil, 0},
	} {
		m := question("www.example.org.", dns.TypeA)
		m.Rcode, m.Answer, m.Ns = tt.rcode, tt.answers, tt.ns
		if got := maxAge(packed(t, m)); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestHTTPSAfterEnd checks that a server that has ended answers no request.
func TestHTTPSAfterEnd(t *testing.T) {
	s := listening(t, Config{})
	h := s.HTTPS()
	ask := func() int {
		w := httptest.NewRecorder()
		query := packed(t, question("www.example.org.", dns.TypeA))
		r := httptest.NewRequest(http.MethodPost, dohPath, bytes.NewReader(query))
		r.Header.Set("Content-Type", dohType)
		h.ServeHTTP(w, r)
		return w.Code
	}
	stop := run(t, s)
	if got := ask(); got != http.StatusOK {
		t.Errorf("while the server runs: %d", got)
	}
	stop()
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("after its end: %d", got)
	}
}

// FuzzHTTPS sends any bytes as the query of a GET and as the body of a POST.
func FuzzHTTPS(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, base64.RawURLEncoding.EncodeToString(s), "198.51.100.1")
	}
	server := listening(f, Config{Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Forward: &fake{knows: upstream, cached: true}})
	f.Cleanup(server.Close)
	h := server.HTTPS()
	f.Fuzz(func(t *testing.T, body []byte, query, forwarded string) {
		post := httptest.NewRequest(http.MethodPost, dohPath, bytes.NewReader(body))
		post.Header.Set("Content-Type", dohType)
		get := httptest.NewRequest(http.MethodGet, dohPath, nil)
		get.URL.RawQuery = "dns=" + query
		for _, r := range []*http.Request{post, get} {
			r.RemoteAddr = "192.0.2.1:1234"
			r.Header.Set("X-Forwarded-For", forwarded)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			switch w.Code {
			case http.StatusOK:
				if w.Body.Len() < 12 || w.Header().Get("Cache-Control") == "" {
					t.Fatalf("%x: %x %v", body, w.Body.Bytes(), w.Header())
				}
			case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			default:
				t.Fatalf("%x: status %d", body, w.Code)
			}
		}
	})
}

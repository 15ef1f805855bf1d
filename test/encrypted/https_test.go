package encrypted

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestQueriesOverHTTPS queries with dig and kdig, by GET and by POST.
func TestQueriesOverHTTPS(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	addr := strings.TrimPrefix(n.HTTPS[0], "https://")
	for _, tt := range []struct {
		program string
		args    []string
	}{
		{"dig", []string{"+https"}}, {"dig", []string{"+https-get"}},
		{"dig", []string{"+https", "+tls-ca=" + n.ca.file, "+tls-hostname=" + primaryName}},
		{"kdig", []string{"+https"}}, {"kdig", []string{"+https-get"}},
	} {
		t.Run(tt.program+" "+strings.Join(tt.args, " "), func(t *testing.T) {
			expect(t, run(tt.program, addr, append(tt.args, www, "A")...), "192.0.2.1")
		})
	}
	expect(t, run("dig", addr, "+https", apex, "AXFR"), "!192.0.2.1") // a transfer has more than one message
	if got := n.Metric(`nameplane_dns_queries_total{family="ipv4",transport="https"}`); got < 5 {
		t.Errorf("%v queries over HTTPS are counted", got)
	}
}

// httpClient returns a client for HTTP/2 that trusts the CA.
func (n *node) httpClient() *http.Client {
	tr := &http.Transport{TLSClientConfig: n.ca.client(pair{}), ForceAttemptHTTP2: true}
	n.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func packed(t *testing.T, m *dns.Msg) []byte {
	t.Helper()
	m.Id = 0
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBadRequestsOverHTTPS sends requests that are not DNS queries.
func TestBadRequestsOverHTTPS(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	query := packed(t, new(dns.Msg).SetQuestion(www, dns.TypeA))
	padded := new(dns.Msg).SetQuestion(www, dns.TypeA).SetEdns0(1232, false)
	padded.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 20)}}
	reply := packed(t, new(dns.Msg).SetReply(new(dns.Msg).SetQuestion(www, dns.TypeA)))
	get := "/dns-query?dns=" + base64.RawURLEncoding.EncodeToString(query)
	const dnsType = "application/dns-message"
	tests := []struct {
		name, method, path, contentType string
		body                            []byte
		want                            int
	}{
		{"GET", "GET", get, "", nil, 200},
		{"GET with another parameter", "GET", get + "&x=y", "", nil, 200},
		{"POST", "POST", "/dns-query", dnsType, query, 200},
		{"a padded query", "POST", "/dns-query", dnsType, packed(t, padded), 200},
		{"padded base64", "GET", get + "=", "", nil, 400},
		{"base64 of the wrong alphabet", "GET", "/dns-query?dns=+/+/", "", nil, 400},
		{"no query", "GET", "/dns-query", "", nil, 400},
		{"half a header", "POST", "/dns-query", dnsType, query[:8], 400},
		{"a reply", "POST", "/dns-query", dnsType, reply, 400},
		{"the wrong type", "POST", "/dns-query", "application/json", query, 415},
		{"no type", "POST", "/dns-query", "", query, 415},
		{"70 kB", "POST", "/dns-query", dnsType, make([]byte, 70000), 413},
		{"another path", "GET", "/", "", nil, 404},
		{"another method", "PUT", "/dns-query", dnsType, query, 405},
	}
	client := n.httpClient()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, n.HTTPS[0]+tt.path, bytes.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.contentType != "" {
				req.Header.Set("Content-Type", tt.contentType)
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != tt.want || res.ProtoMajor != 2 {
				t.Fatalf("%s %d %v: %s", res.Proto, res.StatusCode, err, b)
			}
			if tt.want != 200 {
				return
			}
			m := new(dns.Msg)
			if err := m.Unpack(b); err != nil || len(m.Answer) != 1 || res.Header.Get("Content-Type") != dnsType {
				t.Errorf("%v %v %v", m, err, res.Header)
			}
			if tt.name == "a padded query" && len(b) != 468 {
				t.Errorf("a padded query has a reply of %d bytes", len(b))
			}
		})
	}
}

// TestCachingOverHTTPS compares max-age with the TTLs of the reply.
func TestCachingOverHTTPS(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	n.Run("record", "set", apex, "short", "A", "192.0.2.1", "--ttl", "7")
	n.Run("record", "set", apex, "alias", "CNAME", "short."+apex, "--ttl", "900")
	client := n.httpClient()
	for name, want := range map[string]string{"short." + apex: "max-age=7", "alias." + apex: "max-age=7",
		"nothing." + apex: "", "example.net.": "max-age=0"} {
		url := n.HTTPS[0] + "/dns-query?dns=" +
			base64.RawURLEncoding.EncodeToString(packed(t, new(dns.Msg).SetQuestion(name, dns.TypeA)))
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		m := new(dns.Msg)
		if err != nil || m.Unpack(b) != nil {
			t.Fatalf("%s: %v %x", name, err, b)
		}
		if want == "" { // RFC 2308 §5: the smaller of the SOA's TTL and its last field
			soa := m.Ns[0].(*dns.SOA)
			want = fmt.Sprintf("max-age=%d", min(soa.Hdr.Ttl, soa.Minttl))
		}
		if got := res.Header.Get("Cache-Control"); got != want {
			t.Errorf("%s: %s, want %s: %v", name, got, want, m)
		}
	}
}

// TestForwardedForOverHTTPS checks that the address in X-Forwarded-For is that of the client, if the request comes
// from a proxy, and that it is ignored otherwise.
func TestForwardedForOverHTTPS(t *testing.T) {
	t.Parallel()
	n := start(t, "", "forward: {upstreams: ['127.0.0.1:9'], clients: [198.51.100.0/24]}\n")
	client := n.httpClient()
	recursion := func(forwarded string) bool {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", n.HTTPS[0]+"/dns-query",
			bytes.NewReader(packed(t, new(dns.Msg).SetQuestion(www, dns.TypeA))))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/dns-message")
		req.Header.Set("X-Forwarded-For", forwarded)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		m := new(dns.Msg)
		if err := m.Unpack(b); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		return m.RecursionAvailable
	}
	for forwarded, want := range map[string]bool{"198.51.100.7": true, "203.0.113.1, 198.51.100.7": true,
		"198.51.100.7, 203.0.113.1": false, "203.0.113.1": false} {
		if got := recursion(forwarded); got != want {
			t.Errorf("X-Forwarded-For: %s: recursion available is %v", forwarded, got)
		}
	}
	n.Configure(strings.Replace(n.config("", "forward: {upstreams: ['127.0.0.1:9'], clients: [198.51.100.0/24]}\n"),
		"proxies: [127.0.0.1]", "proxies: [192.0.2.1]", 1))
	n.Restart()
	if recursion("198.51.100.7") {
		t.Error("the header of a client that is not a proxy counts")
	}
}

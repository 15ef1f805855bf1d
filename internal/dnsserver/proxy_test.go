package dnsserver

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
)

// proxyHeader returns a PROXY header with the given command, family and rest.
func proxyHeader(command, family byte, rest string) string {
	return proxySignature + string([]byte{command, family, byte(len(rest) >> 8), byte(len(rest))}) + rest
}

const (
	proxied4 = "\xC6\x33\x64\x07\xC0\x00\x02\x35\x30\x39\x00\x35"
	proxied6 = "\x20\x01\x0D\xB8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
		"\x20\x01\x0D\xB8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x35\x30\x39\x00\x35"
	proxiedMapped = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xFF\xFF\xC6\x33\x64\x07" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xFF\xFF\xC0\x00\x02\x35\x30\x39\x00\x35"
)

func TestProxyHeader(t *testing.T) {
	tests := []struct {
		name, header string
		want         string // the client's address; empty: an error
	}{
		{"IPv4 over UDP", proxyHeader(0x21, 0x12, proxied4), "198.51.100.7"},
		{"IPv4 over TCP", proxyHeader(0x21, 0x11, proxied4), "198.51.100.7"},
		{"IPv6 over UDP", proxyHeader(0x21, 0x22, proxied6), "2001:db8::7"},
		{"IPv6 over TCP", proxyHeader(0x21, 0x21, proxied6), "2001:db8::7"},
		{"IPv4 in IPv6", proxyHeader(0x21, 0x22, proxiedMapped), "198.51.100.7"},
		{"fields after the addresses", proxyHeader(0x21, 0x12, proxied4+"\x04\x00\x01x"), "198.51.100.7"},
		{"of the proxy itself", proxyHeader(0x20, 0x00, ""), "invalid IP"},
		{"of the proxy itself, with addresses", proxyHeader(0x20, 0x12, proxied4), "invalid IP"},
		{"unknown family", proxyHeader(0x21, 0x00, proxied4), ""},
		{"UNIX socket", proxyHeader(0x21, 0x31, strings.Repeat("x", 216)), ""},
		{"short addresses", proxyHeader(0x21, 0x12, proxied4[:11]), ""},
		{"IPv4 addresses as IPv6", proxyHeader(0x21, 0x22, proxied4), ""},
		{"version 1", "PROXY TCP4 198.51.100.7 192.0.2.53 12345 53\r\n", ""},
		{"version 3", proxyHeader(0x31, 0x12, proxied4), ""},
		{"unknown command", proxyHeader(0x22, 0x12, proxied4), ""},
		{"too large", proxyHeader(0x21, 0x12, proxied4+strings.Repeat("x", maxProxyRest)), ""},
		{"a plain query", string(make([]byte, 40)), ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		got, rest, err := cutProxy([]byte(tt.header + "query"))
		if (err != nil) != (tt.want == "") || err == nil && (got.String() != tt.want || string(rest) != "query") {
			t.Errorf("%s: %v, %q, %v; want %s", tt.name, got, rest, err, tt.want)
		}
		r := bytes.NewReader([]byte(tt.header + "query"))
		got, err = readProxy(r)
		if (err != nil) != (tt.want == "") || err == nil && (got.String() != tt.want || r.Len() != len("query")) {
			t.Errorf("%s: from a connection %v, %v, %d bytes left; want %s", tt.name, got, err, r.Len(), tt.want)
		}
		if tt.want == "" {
			continue
		}
		for n := range tt.header {
			if _, _, err := cutProxy([]byte(tt.header[:n])); err == nil {
				t.Errorf("%s: the first %d bytes are accepted", tt.name, n)
			}
		}
	}
}

func FuzzProxyHeader(f *testing.F) {
	for _, s := range []string{proxyHeader(0x21, 0x12, proxied4), proxyHeader(0x21, 0x21, proxied6),
		proxyHeader(0x20, 0, ""), proxyHeader(0x21, 0x12, proxied4+"\x04\x00\x01x")} {
		f.Add([]byte(s + "query"))
	}
	u := &udpSocket{proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	f.Fuzz(func(t *testing.T, in []byte) {
		addr, rest, err := cutProxy(in)
		if err == nil && !bytes.HasSuffix(in, rest) {
			t.Fatalf("%x is not the end of %x", rest, in)
		}
		r := bytes.NewReader(in)
		read, err2 := readProxy(r)
		if (err == nil) != (err2 == nil) || read != addr || err == nil && r.Len() != len(rest) {
			t.Fatalf("%x: %v %v from a datagram, %v %v from a connection", in, addr, err, read, err2)
		}
		if _, _, ok := u.unwrap(in, netip.MustParseAddrPort("198.51.100.1:5353")); ok {
			t.Fatal("a sender that is not a proxy is accepted")
		}
		if got, _, ok := u.unwrap(in, netip.MustParseAddrPort("192.0.2.1:5353")); ok != (err == nil) || ok && !got.IsValid() {
			t.Fatalf("%x: %v %v", in, got, ok)
		}
	})
}

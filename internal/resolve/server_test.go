package resolve_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/resolve"
)

func TestParseServer(t *testing.T) {
	addr := netip.MustParseAddrPort
	tests := []struct {
		in   string
		want resolve.Server
		text string
	}{
		{"192.0.2.1", resolve.Server{Addr: addr("192.0.2.1:53")}, "192.0.2.1:53"},
		{"192.0.2.1:5353", resolve.Server{Addr: addr("192.0.2.1:5353")}, "192.0.2.1:5353"},
		{"udp://192.0.2.1", resolve.Server{Addr: addr("192.0.2.1:53")}, "192.0.2.1:53"},
		{"2001:db8::1", resolve.Server{Addr: addr("[2001:db8::1]:53")}, "[2001:db8::1]:53"},
		{"[2001:db8::1]", resolve.Server{Addr: addr("[2001:db8::1]:53")}, "[2001:db8::1]:53"},
		{"[2001:db8::1]:54", resolve.Server{Addr: addr("[2001:db8::1]:54")}, "[2001:db8::1]:54"},
		{"::ffff:192.0.2.1", resolve.Server{Addr: addr("192.0.2.1:53")}, "192.0.2.1:53"},
		{"tcp://192.0.2.1", resolve.Server{Transport: resolve.TCP, Addr: addr("192.0.2.1:53")}, "tcp://192.0.2.1:53"},
		{"tls://192.0.2.1", resolve.Server{Transport: resolve.TLS, Addr: addr("192.0.2.1:853")}, "tls://192.0.2.1:853"},
		{"tls://[2001:db8::1]:8853#DNS.example.org.",
			resolve.Server{Transport: resolve.TLS, Addr: addr("[2001:db8::1]:8853"), Name: "dns.example.org"},
			"tls://[2001:db8::1]:8853#dns.example.org"},
	}
	for _, tt := range tests {
		got, err := resolve.ParseServer(tt.in)
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("ParseServer(%q) = %v, %v, want %v", tt.in, got, err, tt.text)
		}
		if again, err := resolve.ParseServer(got.String()); err != nil || again != got {
			t.Errorf("ParseServer(%q) = %v, %v, want %v", got, again, err, got)
		}
	}
}

func TestParseServerErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "give an IP address"},
		{"dns.example.org", "give an IP address"},
		{"192.0.2.1:", "give an IP address"},
		{"192.0.2.1:0", "give an IP address"},
		{"192.0.2.1:65536", "give an IP address"},
		{"https://192.0.2.1", "must be udp, tcp or tls"},
		{"192.0.2.1#dns.example.org", "only a tls server"},
		{"tls://192.0.2.1#", "not the name of a host"},
		{"tls://192.0.2.1#a..b", "not the name of a host"},
	}
	for _, tt := range tests {
		if got, err := resolve.ParseServer(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseServer(%q) = %v, %v, want an error with %q", tt.in, got, err, tt.want)
		}
	}
}

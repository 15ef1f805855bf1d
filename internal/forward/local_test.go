package forward_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// TestLocalNames looks up names that must not be forwarded, and their neighbours.
func TestLocalNames(t *testing.T) {
	negative := func(rcode, zone string) answer {
		return answer{Rcode: rcode, EDE: wire.EDESynthesized,
			Authority: []string{fmt.Sprintf("%s 10800 IN SOA localhost. nobody.invalid. 1 3600 1200 604800 10800", zone)}}
	}
	found := func(text string) answer {
		return answer{Rcode: "NOERROR", EDE: wire.EDESynthesized, Answer: []string{text}}
	}
	refused := answer{Rcode: "REFUSED", EDE: wire.EDENotSupported}
	asked := answer{Rcode: "NXDOMAIN", EDE: wire.EDENone}
	tests := []struct {
		name    string
		qtype   uint16
		private bool // forwarded to upstreams
		want    answer
	}{
		{"localhost.", dns.TypeA, false, found("localhost. 10800 IN A 127.0.0.1")},
		{"localhost.", dns.TypeAAAA, false, found("localhost. 10800 IN AAAA ::1")},
		{"a.b.localhost.", dns.TypeA, false, found("a.b.localhost. 10800 IN A 127.0.0.1")},
		{"a.b.localhost.", dns.TypeMX, false, negative("NOERROR", "localhost.")},
		{"invalid.", dns.TypeA, false, negative("NOERROR", "invalid.")},
		{"a.invalid.", dns.TypeA, false, negative("NXDOMAIN", "invalid.")},
		{"a.b.onion.", dns.TypeA, false, negative("NXDOMAIN", "onion.")},
		{"a.alt.", dns.TypeA, false, negative("NXDOMAIN", "alt.")},
		{"_dns.resolver.arpa.", dns.TypeSVCB, false, negative("NOERROR", "_dns.resolver.arpa.")},
		{"onion.", dns.TypeDS, false, asked},
		{"a.onion.", dns.TypeDS, false, negative("NXDOMAIN", "onion.")},
		{"notonion.", dns.TypeA, false, asked},
		{"onion.test.", dns.TypeA, false, asked},
		{"www.local.", dns.TypeA, false, asked},
		{".", dns.TypeSOA, false, asked},
		{"1.2.0.10.in-addr.arpa.", dns.TypePTR, false, negative("NXDOMAIN", "10.in-addr.arpa.")},
		{"1.2.31.172.in-addr.arpa.", dns.TypePTR, false, negative("NXDOMAIN", "31.172.in-addr.arpa.")},
		{"1.2.32.172.in-addr.arpa.", dns.TypePTR, false, asked},
		{"1.2.127.100.in-addr.arpa.", dns.TypePTR, false, negative("NXDOMAIN", "127.100.in-addr.arpa.")},
		{"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.", dns.TypePTR, false,
			negative("NOERROR", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.")},
		{"printer.home.arpa.", dns.TypeA, false, negative("NXDOMAIN", "home.arpa.")},
		{"home.arpa.", dns.TypeDS, false, asked},
		{"1.2.0.10.in-addr.arpa.", dns.TypePTR, true, asked},
		{"a.onion.", dns.TypeA, true, negative("NXDOMAIN", "onion.")},
		{"www.example.org.", dns.TypeANY, false, refused},
		{"example.org.", dns.TypeAXFR, false, refused},
		{"example.org.", dns.TypeIXFR, false, refused},
		{"example.org.", dns.TypeOPT, false, refused},
		{"example.org.", dns.TypeNone, false, refused},
	}
	for _, tt := range tests {
		t.Run(tt.name+dns.TypeToString[tt.qtype], func(t *testing.T) {
			f, n := start(t, forward.Config{AskPrivate: tt.private}, replies(t, dns.RcodeNameError, ""))
			if diff := cmp.Diff(tt.want, ask(t, f, tt.name, tt.qtype)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got := len(n.history()) > 0; got != (tt.want.EDE == wire.EDENone) {
				t.Errorf("upstream was asked: %v", got)
			}
		})
	}
}

// TestDelegatedNames checks that names that a zone of ours delegates are forwarded, except where no upstream can know
// them.
func TestDelegatedNames(t *testing.T) {
	for name, asked := range map[string]bool{
		"1.2.0.10.in-addr.arpa.": true,
		"printer.home.arpa.":     true,
		"a.onion.":               false,
		"a.localhost.":           false,
	} {
		f, n := start(t, forward.Config{}, replies(t, dns.RcodeNameError, ""))
		askFor(t, f, forward.Question{Name: wireName(t, name), Type: rr.TypePTR, Delegated: true})
		if got := len(n.history()) > 0; got != asked {
			t.Errorf("%s: upstream was asked: %v", name, got)
		}
	}
}

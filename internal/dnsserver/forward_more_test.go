package dnsserver

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/wire"
)

// TestForwardDSOfApex checks that the DS of one of our zones comes from its parent. A validating client needs the
// parent's proof that the zone is unsigned (RFC 4035 §3.1.4.1). A parent that does not know the zone must not hide
// it.
func TestForwardDSOfApex(t *testing.T) {
	const (
		parent = "authority: org. 60 SOA a.org. h.org. 1 2 3 4 60"
		ours   = "authority: example.org. 300 SOA ns1.example.org. hostmaster.example.org. 1 3600 600 86400 300"
		name   = "example.org."
	)
	denies := found{authorities: []string{"org. 60 IN SOA a.org. h.org. 1 2 3 4 60"}, ad: true}
	for _, tt := range []struct {
		name  string
		query *dns.Msg
		from  client
		knows map[string]found
		want  answered
		asked bool
	}{
		{"no DS", withDO(desired(name, dns.TypeDS)), stranger, map[string]found{"example.org. DS": denies},
			answered{summary{"NOERROR", "rd ra ad ", name, 0, true, -1}, []string{parent}}, true},
		{"parent does not know it", withDO(desired(name, dns.TypeDS)), stranger, nil,
			answered{summary{"NOERROR", "aa rd ra ", name, 0, true, -1}, []string{ours}}, true},
		{"parent cannot be asked", withDO(desired(name, dns.TypeDS)), stranger,
			map[string]found{"example.org. DS": {rcode: wire.RcodeServFail, ede: wire.EDENoReachable}},
			answered{summary{"SERVFAIL", "rd ra ", name, 0, true, wire.EDENoReachable}, nil}, true},
		{"recursion not desired", question(name, dns.TypeDS), stranger, nil,
			answered{summary{"NOERROR", "aa ra ", name, 0, false, -1}, []string{ours}}, false},
		{"client not allowed", desired(name, dns.TypeDS), denied, nil,
			answered{summary{"NOERROR", "aa rd ", name, 0, false, -1}, []string{ours}}, false},
		{"below the apex", desired("www.example.org.", dns.TypeDS), stranger, nil,
			answered{summary{"NOERROR", "aa rd ra ", "www.example.org.", 0, false, -1}, []string{ours}}, false},
		{"another type", desired(name, dns.TypeDNSKEY), stranger, nil,
			answered{summary{"NOERROR", "aa rd ra ", name, 0, false, -1}, []string{ours}}, false},
	} {
		for _, cached := range []bool{true, false} {
			f := &fake{knows: tt.knows, cached: cached, denies: netip.MustParsePrefix("192.0.2.0/24")}
			h := newHandler(t, Config{Forward: f})
			m := unpacked(t, settle(h, packed(t, tt.query), tt.from))
			if diff := cmp.Diff(tt.want, answeredBy(m)); diff != "" {
				t.Errorf("%s, cached %v (-want +got):\n%s", tt.name, cached, diff)
			}
			if got := f.exchanges() > 0; got != (tt.asked && !cached) {
				t.Errorf("%s, cached %v: the forwarder was asked %d times", tt.name, cached, f.exchanges())
			}
		}
	}
}

// TestForwardMadeUpNames checks that no number of external names gets a network more answers than ten names would.
func TestForwardMadeUpNames(t *testing.T) {
	for _, cached := range []bool{true, false} {
		h := newHandler(t, Config{RRL: RRLConfig{Responses: 2}, Forward: &fake{cached: cached}})
		sent := 0
		for i := range 100 {
			out := settle(h, packed(t, desired(fmt.Sprintf("n%d.example.net.", i), dns.TypeA)), stranger)
			if len(out) > 0 && !unpacked(t, out).Truncated {
				sent++
			}
		}
		if sent != 2*forwardedNames {
			t.Errorf("cached %v: %d answers, want %d", cached, sent, 2*forwardedNames)
		}
	}
}

// again is a Forwarder whose first answer is too large, and whose next never comes.
type again struct {
	fake
	calls int
}

func (a *again) Exchange(ctx context.Context, _ forward.Question, msg []byte) forward.Reply {
	if a.calls++; a.calls == 1 {
		time.Sleep(forward.Timeout / 2)
		return forward.Reply{Msg: msg, Truncated: true, EDE: wire.EDENone}
	}
	<-ctx.Done()
	return forward.Reply{Msg: msg, Rcode: wire.RcodeServFail, EDE: wire.EDENoReachable}
}

// TestForwardAskedAgain checks that a second question for a large reply that was not cached does not extend the
// timeout.
func TestForwardAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &again{}
		h := newHandler(t, Config{Forward: f})
		begin := time.Now()
		over := stranger
		over.tcp = true
		m := unpacked(t, settle(h, packed(t, desired("www.example.net.", dns.TypeA)), over))
		if took := time.Since(begin); m.Rcode != dns.RcodeServerFailure || f.calls != 2 || took != maxWait {
			t.Errorf("after %v and %d questions: %v", took, f.calls, m)
		}
	})
}

// TestForwardDelegated checks that the forwarder learns which names our zones delegate.
func TestForwardDelegated(t *testing.T) {
	for name, want := range map[string]bool{
		"a.sub.example.org.": true,
		"tosub.example.org.": true,
		"www.example.net.":   false,
		"out.example.org.":   false,
	} {
		f := &fake{knows: upstream}
		h := newHandler(t, Config{Forward: f})
		h.forwards.missing.Delegated = !want // of the query before
		settle(h, packed(t, desired(name, dns.TypeA)), stranger)
		if f.exchanges() != 1 || f.asked[0].Delegated != want {
			t.Errorf("%s: the forwarder was asked %+v", name, f.asked)
		}
	}
}

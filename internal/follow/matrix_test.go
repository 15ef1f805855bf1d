package follow_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

const target = "cdn.example.net."

var (
	oldAddr = map[follow.Family]string{follow.IPv4: "203.0.113.1", follow.IPv6: "2001:db8::1"}
	newAddr = map[follow.Family]string{follow.IPv4: "203.0.113.2", follow.IPv6: "2001:db8::2"}
)

// TestFaultMatrix changes the addresses of a target while lookups of one or both families fail. The failing family must
// end as the table says; the other must have the new address. When the fault ends, both have it. Each cell runs twice:
// with the network as Exchanger, and with resolve.Client on its connections.
func TestFaultMatrix(t *testing.T) {
	const kept, moved = "found OLD ttl 60", "found NEW ttl 60"
	tests := []struct{ fault, want string }{
		{"timeout", "timeout, before that " + kept},
		{"servfail", "servfail, before that " + kept},
		{"nxdomain", "nxdomain OLD ttl 60"}, // an answer: the follower decides about the address
		{"nodata", "nodata OLD ttl 60"},
		{"bogus", "bogus, before that " + kept},
		{"truncate", moved}, // over TCP the reply is complete
		{"lame", "lame, before that " + kept},

		// Further faults.
		{"truncated", "truncated, before that " + kept},
		{"refused", "refused, before that " + kept},
		{"formerr", "formerr, before that " + kept},
		{"malformed", "malformed, before that " + kept},
		{"question", "timeout, before that " + kept},
		{"unreachable", "network, before that " + kept},
	}
	for _, tt := range tests {
		for _, hit := range []follow.Family{follow.IPv4, follow.IPv6, follow.Both} {
			for _, transport := range []string{"exchange", "dial"} {
				t.Run(fmt.Sprintf("%s/%v/%s", tt.fault, hit, transport), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { runCell(t, tt.fault, hit, transport, tt.want) })
				})
			}
		}
	}
}

func runCell(t *testing.T, fault string, hit follow.Family, transport, want string) {
	net := simnet.New(1)
	server := net.MustServer("192.0.2.53", fmt.Sprintf(`
		zone example.net.
		%[1]s 60 A %[2]s
		%[1]s 60 AAAA %[3]s
		at 10s set %[1]s 60 A %[4]s
		at 10s set %[1]s 60 AAAA %[5]s
	`, target, oldAddr[follow.IPv4], oldAddr[follow.IPv6], newAddr[follow.IPv4], newAddr[follow.IPv6]))
	opts := follow.Options{Rand: noJitter}
	if transport == "dial" {
		opts.Exchanger = &resolve.Client{Dial: net.Dial}
		t.Cleanup(func() { time.Sleep(time.Minute) }) // until the client has closed its connections
	}
	r := newTestEnv(net, opts, "192.0.2.53")
	r.Follow(name(target), follow.Both)
	r.start(t)
	both := []follow.Family{follow.IPv4, follow.IPv6}
	for _, f := range both {
		if f&hit != 0 {
			if err := server.Do(fmt.Sprintf("at 10s fault %s %s %v", fault, target, f)); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.until(100 * time.Second)
	for _, f := range both {
		want := strings.NewReplacer("OLD", oldAddr[f], "NEW", newAddr[f]).Replace(want)
		if f&hit == 0 {
			want = "found " + newAddr[f] + " ttl 60"
		}
		if got := r.stateText(target, f); got != want {
			t.Errorf("with %s of %v, %v = %s, want %s", fault, hit, f, got, want)
		}
	}
	server.Do("heal")
	r.until(10 * time.Minute)
	for _, f := range both {
		if got, want := r.stateText(target, f), "found "+newAddr[f]+" ttl 60"; got != want {
			t.Errorf("after %s of %v, %v = %s, want %s", fault, hit, f, got, want)
		}
	}
	// One change for the start, one for the fault, one for its end, and none for repeated failures.
	if n := len(r.changesSince(0)); n > 6 {
		t.Errorf("with %s of %v, %d changes were reported", fault, hit, n)
	}
}

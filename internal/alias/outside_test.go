package alias_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/simnet"
)

// A target with A only: the missing family is not queried again within its negative TTL.
func TestTargetWithOneFamily(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "zone example.net. 300\ncdn.example.net. 300 A 203.0.113.1")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(0)
		r.want("example.org.", "ACTIVE", "A 300 203.0.113.1")
		r.net.Forget()
		r.wait(250 * time.Second)
		if n := r.asked("cdn.example.net."); n != 0 {
			t.Errorf("%d queries within the TTLs", n)
		}
	})
}

// chainScript returns a zone with n CNAMEs and an address at their end; c0 is the first.
func chainScript(n int) string {
	var b strings.Builder
	b.WriteString("zone example.net.\n")
	for i := range n {
		fmt.Fprintf(&b, "c%d.example.net. %d CNAME c%d.example.net.\n", i, 100+i, i+1)
	}
	fmt.Fprintf(&b, "c%d.example.net. 90 A 203.0.113.1\n", n)
	return b.String()
}

// Chains of CNAMEs, outside and in our own zones.
func TestChainLength(t *testing.T) {
	tests := []struct {
		name         string
		length       int
		inside       bool
		status, rows string
	}{
		{"8 outside", 8, false, "ACTIVE", "A 90 203.0.113.1"},
		{"16 outside", 16, false, "ACTIVE", "A 90 203.0.113.1"},
		{"17 outside", 17, false, "ERROR CREATE chain-too-long", ""},
		{"8 inside", 8, true, "ACTIVE", "A 90 203.0.113.1"},
		{"16 inside", 16, true, "ACTIVE", "A 90 203.0.113.1"},
		{"17 inside", 17, true, "ERROR CREATE chain-too-long", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				script := chainScript(tt.length)
				lines := strings.Split(strings.TrimSpace(script), "\n")[1:]
				if tt.inside {
					script = ""
				}
				r := start(t, script)
				if tt.inside {
					r.zone("example.net.", lines...)
				}
				r.zone("example.org.", "example.org. 300 ALIAS c0.example.net.")
				r.wait(0)
				r.want("example.org.", tt.status, tt.rows)
				st, _ := r.State(r.key("example.org."))
				if len(st.Chain) != tt.length+2 || st.Chain[0] != "example.org." || st.Chain[2] != "c1.example.net." {
					t.Errorf("chain of %d names: %v", len(st.Chain), st.Chain)
				}
				if tt.inside && len(r.net.History()) > 0 {
					t.Errorf("asked for names of our own: %v", r.net.History())
				}
			})
		})
	}
}

// A chain that is too long only when its inside and outside parts are added.
func TestChainLengthInsideAndOutside(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, chainScript(10))
		var lines []string
		for i := range 7 {
			lines = append(lines, fmt.Sprintf("n%d.example.org. 60 CNAME n%d.example.org.", i, i+1))
		}
		r.zone("example.org.", append(lines, "n7.example.org. 60 CNAME c0.example.net.",
			"a.example.org. 300 ALIAS n0.example.org.", "b.example.org. 300 ALIAS n2.example.org.")...)
		r.wait(0)
		r.want("a.example.org.", "ERROR CREATE chain-too-long", "")
		r.want("b.example.org.", "ACTIVE", "A 60 203.0.113.1")
	})
}

// Loops: an ALIAS that targets itself, two that target each other, and a loop through an outside CNAME.
func TestLoops(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, `
			zone example.net.
			www.example.net. 60 CNAME back.example.org.
			zone example.org.
			away.example.org. 60 A 203.0.113.1
			self.example.net. 60 CNAME self.example.net.
		`)
		r.zone("example.com.", "b.example.com. 60 ALIAS a.example.org.")
		r.zone("example.org.", "self.example.org. 60 ALIAS self.example.org.", "a.example.org. 60 ALIAS b.example.com.",
			"back.example.org. 60 ALIAS www.example.net.", "out.example.org. 60 ALIAS self.example.net.",
			"*.wild.example.org. 60 ALIAS x.wild.example.org.")
		r.wait(time.Second)
		for _, owner := range []string{"self.example.org.", "a.example.org.", "b.example.com.", "back.example.org.",
			"out.example.org.", "*.wild.example.org."} {
			r.want(owner, "ERROR CREATE loop", "")
		}
		st, _ := r.State(r.key("back.example.org."))
		want := []string{"back.example.org.", "www.example.net.", "back.example.org.", "www.example.net."}
		if diff := cmp.Diff(want, st.Chain); diff != "" {
			t.Errorf("chain (-want +got):\n%s", diff)
		}
		if n := len(r.net.History()); n > 16 {
			t.Errorf("%d queries", n)
		}
		r.must(r.put("b.example.com. 60 ALIAS away.example.org.", "away.example.org. 40 A 203.0.113.9")) // breaks the loop
		r.want("a.example.org.", "ACTIVE", "A 40 203.0.113.9")
		r.want("b.example.com.", "ACTIVE", "A 40 203.0.113.9")
	})
}

// A loop through an outside CNAME is detected even when the resolver fails at its end.
func TestLoopBehindFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "zone example.net.\nback.example.net. 60 CNAME a.example.org.\nfault servfail a.example.org.")
		r.zone("example.org.", "a.example.org. 300 ALIAS back.example.net.")
		r.wait(time.Second)
		r.want("a.example.org.", "ERROR CREATE loop", "")
		st, _ := r.State(r.key("a.example.org."))
		if got := strings.Join(st.Chain, " "); got != "a.example.org. back.example.net. a.example.org. back.example.net." {
			t.Errorf("the chain is %s", got)
		}
	})
}

// NXDOMAIN when the ALIAS is created, and later.
func TestNXDomain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, `
			zone example.net.
			at 100s set new.example.net. 60 A 203.0.113.1
			at 200s drop new.example.net.
			at 500s set new.example.net. 60 A 203.0.113.2
		`)
		r.zone("example.org.", "example.org. 300 ALIAS new.example.net.")
		r.wait(time.Second)
		r.want("example.org.", "ERROR CREATE nxdomain", "")
		r.wait(179 * time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1")
		serial := r.serial("example.org.")
		r.wait(220 * time.Second)
		r.want("example.org.", "STALE nxdomain", "A 60 203.0.113.1")
		st, _ := r.State(r.key("example.org."))
		if f := st.Families[0]; f.LastSuccess.IsZero() || f.Since.IsZero() || st.NextAttempt[0].IsZero() ||
			st.Since.IsZero() {
			t.Errorf("times are missing: %+v %v", st, st.NextAttempt)
		}
		if r.serial("example.org.") != serial {
			t.Error("a failure stepped the serial")
		}
		r.wait(180 * time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.2")
	})
}

// One family times out while the addresses of the other change.
func TestOneFamilyFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+`
			at 10s fault timeout cdn.example.net. A
			at 10s set cdn.example.net. 60 A 203.0.113.9
			at 10s set cdn.example.net. 120 AAAA 2001:db8::9`)
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(200 * time.Second)
		r.want("example.org.", "STALE timeout", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::9")
		st, _ := r.State(r.key("example.org."))
		if st.Families[0].Cause != follow.Timeout || st.Families[1].Cause != "" {
			t.Errorf("families: %+v", st.Families)
		}
	})
}

// A family that fails from the start does not prevent the other from being served.
func TestOneFamilyNeverAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"fault servfail cdn.example.net. AAAA\nat 100s heal")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(50 * time.Second)
		r.want("example.org.", "ACTIVE servfail", "A 60 203.0.113.1 203.0.113.2")
		r.wait(400 * time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
	})
}

// A new ALIAS is never STALE, even if other aliases got addresses from its target before. Its target is looked up at
// once.
func TestNewAtFailingTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"other.example.net. 60 A 203.0.113.9\nlatency 10ms\nat 10s fault servfail cdn.example.net.")
		server := r.net.MustServer(resolver, "")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.", "a.example.org. 300 ALIAS other.example.net.")
		r.wait(5 * time.Minute)
		r.want("example.org.", "STALE servfail", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		r.net.Forget()
		r.must(r.put("b.example.org. 300 ALIAS cdn.example.net.", "a.example.org. 300 ALIAS cdn.example.net."))
		r.wait(0) // the second of two in one edit waits for the lookup of the first
		r.want("b.example.org.", "PENDING CREATE", "")
		r.want("a.example.org.", "PENDING UPDATE", "A 60 203.0.113.9")
		r.wait(time.Second)
		r.want("b.example.org.", "ERROR CREATE servfail", "")
		r.want("a.example.org.", "ERROR UPDATE servfail", "A 60 203.0.113.9") // address of the previous target
		if r.asked("cdn.example.net.") == 0 {
			t.Error("the target was not looked up")
		}
		r.net.Forget()
		r.must(r.put("c.example.org. 300 ALIAS cdn.example.net.")) // a moment later there is no lookup for each new ALIAS
		r.wait(time.Second)
		r.want("c.example.org.", "ERROR CREATE servfail", "")
		if n := r.asked("cdn.example.net."); n > 0 {
			t.Errorf("the target was looked up again, with %d queries", n)
		}
		r.do(server, "heal|fault servfail cdn.example.net. AAAA")
		r.wait(10 * time.Minute)
		r.want("example.org.", "STALE servfail", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		r.want("b.example.org.", "ACTIVE servfail", "A 60 203.0.113.1 203.0.113.2")
		r.must(server.Do("heal"))
		r.wait(10 * time.Minute)
		r.want("a.example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
		r.want("b.example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
	})
}

// A new ALIAS that waits for such a lookup when the program stops is resolved after the next start.
func TestNewAtFailingTargetRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net, path := simnet.New(1), filepath.Join(t.TempDir(), "db")
		net.MustServer(resolver, cdn+"at 10s fault timeout")
		r := open(t, path, net, alias.Options{}, follow.Options{})
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(5 * time.Minute)
		r.must(r.put("b.example.org. 300 ALIAS cdn.example.net."))
		r.wait(time.Second)
		r.want("b.example.org.", "PENDING CREATE", "")
		r.stop()
		r = open(t, path, net, alias.Options{}, follow.Options{})
		r.wait(time.Second)
		r.want("b.example.org.", "ERROR CREATE timeout", "")
		r.want("example.org.", "STALE timeout", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
	})
}

// A new ALIAS does not wait for the end of a negative TTL that began before it was created.
func TestNewAtMissingTarget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, "zone example.net. 900\nlatency 10ms\nat 10s set new.example.net. 60 A 203.0.113.1")
		r.zone("example.org.", "example.org. 300 ALIAS new.example.net.")
		r.wait(20 * time.Second)
		r.want("example.org.", "ERROR CREATE nxdomain", "")
		r.must(r.put("a.example.org. 300 ALIAS new.example.net."))
		r.want("a.example.org.", "PENDING CREATE", "")
		r.wait(time.Second)
		r.want("a.example.org.", "ACTIVE", "A 60 203.0.113.1")
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1")
	})
}

// At first both families are served at once, when both have an answer or a failure: one serial increment.
func TestBothAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"fault timeout cdn.example.net. AAAA\nat 3s heal")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(time.Second)
		r.want("example.org.", "PENDING CREATE", "")
		r.wait(1500 * time.Millisecond)
		r.want("example.org.", "ACTIVE timeout", "A 60 203.0.113.1 203.0.113.2")
		r.wait(10 * time.Second)
		r.want("example.org.", "ACTIVE", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
	})
}

// A later change of both families is one serial increment too, whatever the random times of the lookups are.
func TestBothMoveAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net := simnet.New(1)
		server := net.MustServer(resolver,
			"zone example.net.\ncdn.example.net. 60 A 203.0.113.1\ncdn.example.net. 60 AAAA 2001:db8::1\nlatency 5ms 50ms")
		r := open(t, filepath.Join(t.TempDir(), "db"), net, alias.Options{},
			follow.Options{Rand: rand.New(rand.NewPCG(1, 1)).Float64})
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(time.Second)
		for i := 2; i < 12; i++ {
			serial := r.serial("example.org.")
			r.must(server.Do(fmt.Sprintf("set cdn.example.net. 60 A 203.0.113.%d", i)))
			r.must(server.Do(fmt.Sprintf("set cdn.example.net. 60 AAAA 2001:db8::%x", i)))
			r.wait(time.Minute)
			r.want("example.org.", "ACTIVE", fmt.Sprintf("A 60 203.0.113.%d, AAAA 60 2001:db8::%x", i, i))
			if n := r.changesSince("example.org.", serial); n != 1 {
				t.Errorf("the move to %d was %d changes", i, n)
			}
		}
	})
}

// A family that its authority proves to be gone is removed, with a serial increment.
func TestProvenNoData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t,
			cdn+"at 10s drop cdn.example.net. A\nat 300s drop cdn.example.net. AAAA\nat 300s cdn.example.net. 60 TXT x")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(time.Second)
		serial := r.serial("example.org.")
		r.wait(100 * time.Second)
		r.want("example.org.", "ACTIVE", "AAAA 120 2001:db8::1")
		if r.serial("example.org.") == serial {
			t.Error("the serial did not step")
		}
		r.wait(600 * time.Second)
		r.want("example.org.", "ERROR nodata", "")
	})
}

// A family that its authority removed stays removed when the name then fails or disappears.
func TestNoDataThenWorse(t *testing.T) {
	for _, fault := range []string{"nxdomain", "empty", "servfail"} {
		t.Run(fault, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, cdn+"at 10s drop cdn.example.net. A\nat 200s fault "+fault)
				r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
				r.wait(100 * time.Second)
				r.want("example.org.", "ACTIVE", "AAAA 120 2001:db8::1")
				r.wait(400 * time.Second)
				if got := r.rows("example.org."); got != "AAAA 120 2001:db8::1" {
					t.Errorf("rows = %q", got)
				}
			})
		})
	}
}

// An empty answer without a SOA record removes nothing.
func TestUnprovenNoData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"at 10s fault empty")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(300 * time.Second)
		r.want("example.org.", "STALE nodata", "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1")
	})
}

// An hour of answers in a different order is no change.
func TestReorderedAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"rotate")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(time.Second)
		serial, commits := r.serial("example.org."), r.store.commits()
		r.net.Forget()
		r.wait(time.Hour)
		if n := r.asked("cdn.example.net."); n < 90 {
			t.Errorf("asked only %d times in an hour", n)
		}
		if r.serial("example.org.") != serial || r.store.commits() != commits {
			t.Errorf("%d commits, and the serial went from %d to %d", r.store.commits()-commits, serial,
				r.serial("example.org."))
		}
	})
}

// The TTL is the least on the path, and never the refresh interval.
func TestLeastTTL(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, `
			zone example.net.
			hasty.example.net. 1 A 203.0.113.1
			slow.example.net. 604800 A 203.0.113.2
			www.example.net. 20 CNAME slow.example.net.
		`)
		z := r.zone("example.org.", "a.example.org. 300 ALIAS hasty.example.net.",
			"b.example.org. 300 ALIAS slow.example.net.",
			"c.example.org. 300 ALIAS www.example.net.", "d.example.org. 0 ALIAS slow.example.net.",
			"e.example.org. 300 ALIAS b.example.org.",
			"f.example.org. 7 CNAME slow.example.net.", "g.example.org. 300 ALIAS f.example.org.")
		r.wait(time.Second)
		r.want("a.example.org.", "ACTIVE", "A 1 203.0.113.1")
		r.want("b.example.org.", "ACTIVE", "A 300 203.0.113.2")
		r.want("c.example.org.", "ACTIVE", "A 20 203.0.113.2")
		r.want("d.example.org.", "ACTIVE", "A 3600 203.0.113.2")
		r.want("e.example.org.", "ACTIVE", "A 300 203.0.113.2")
		r.want("g.example.org.", "ACTIVE", "A 7 203.0.113.2")
		r.net.Forget()
		r.wait(300 * time.Second)
		if n := r.asked("hasty.example.net."); n > 22 { // both families, every 30 s
			t.Errorf("%d queries in 300 s for a TTL of 1", n)
		}
		r.must(r.put("b.example.org. 30 ALIAS slow.example.net."))
		r.want("b.example.org.", "ACTIVE", "A 30 203.0.113.2")
		r.want("e.example.org.", "ACTIVE", "A 30 203.0.113.2") // its path includes b
		r.must(r.commit(func(tx *publish.Tx) error {
			z.TTL = 50
			_, err := tx.UpdateZone(z)
			return err
		}))
		r.want("d.example.org.", "ACTIVE", "A 50 203.0.113.2")
	})
}

// An ALIAS at a wildcard.
func TestAliasAtWildcard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		r.zone("example.org.", "*.x.example.org. 300 ALIAS cdn.example.net.", "in.example.org. 300 ALIAS any.x.example.org.")
		r.wait(0)
		const want = "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1"
		r.want("*.x.example.org.", "ACTIVE", want)
		r.want("in.example.org.", "ACTIVE", want)
	})
}

// Addresses that a target must not have, unless the policy allows them.
func TestRefusedAddresses(t *testing.T) {
	refused := map[string]string{
		"127.0.0.1": "private-address", "10.1.2.3": "private-address", "192.168.0.1": "private-address",
		"169.254.169.254": "private-address",
		"100.64.0.1":      "private-address", "0.0.0.0": "private-address", "224.0.0.1": "private-address",
		"198.51.100.53": "own-address",
	}
	for addr, cause := range refused {
		t.Run(addr, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, "zone example.net.\ncdn.example.net. 60 A "+addr+
					"\nok.example.net. 60 A 203.0.113.1\nat 50s set ok.example.net. 60 A "+addr)
				r.SetPolicy(alias.Policy{Own: addrs("198.51.100.53")})
				r.zone("example.org.", "a.example.org. 300 ALIAS cdn.example.net.", "b.example.org. 300 ALIAS ok.example.net.")
				r.wait(time.Second)
				r.want("a.example.org.", "ERROR CREATE "+cause, "")
				st, _ := r.State(r.key("a.example.org."))
				if !strings.Contains(st.Detail, addr) {
					t.Errorf("the detail %q does not name the address", st.Detail)
				}
				r.wait(100 * time.Second)
				r.want("b.example.org.", "STALE "+cause, "A 60 203.0.113.1") // rebinding: the previous address stays
				r.SetPolicy(alias.Policy{AllowPrivate: true, AllowOwn: true})
				r.wait(0)
				if addr == "169.254.169.254" { // refused by every policy
					r.want("a.example.org.", "ERROR CREATE "+cause, "")
					return
				}
				r.want("a.example.org.", "ACTIVE", "A 60 "+addr)
				r.want("b.example.org.", "ACTIVE", "A 60 "+addr)
				r.SetPolicy(alias.Policy{Own: addrs("198.51.100.53")})
				r.wait(0)
				r.want("a.example.org.", "ERROR "+cause, "")
			})
		})
	}
}

// More addresses than a record set may have are cut, and the total is reported.
func TestAddressCap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var list []string
		for i := range 500 {
			list = append(list, fmt.Sprintf("203.0.%d.%d", i/250, i%250))
		}
		r := start(t, "zone example.net.\ncdn.example.net. 60 A "+strings.Join(list, ", "))
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(time.Second)
		st, _ := r.State(r.key("example.org."))
		if f := st.Families[0]; st.Status != "ACTIVE" || len(f.Addrs) != 20 || f.Found != 500 {
			t.Errorf("%s with %d of %d addresses, want ACTIVE with 20 of 500", st.Status, len(f.Addrs), f.Found)
		}
		if n := strings.Count(r.rows("example.org."), "203."); n != 20 {
			t.Errorf("%d addresses are served", n)
		}
	})
}

// Many refresh requests share one lookup.
func TestRefreshLimit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn+"latency 1s")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.", "www.example.org. 300 ALIAS cdn.example.net.")
		r.wait(10 * time.Second)
		r.net.Forget()
		taken := 0
		for range 100 {
			for _, owner := range []string{"example.org.", "www.example.org."} {
				wait, ok := r.Refresh(r.key(owner))
				if !ok || wait < 0 || wait > 5*time.Second {
					t.Fatalf("Refresh = %v, %v", wait, ok)
				}
				if wait == 0 {
					taken++
				}
			}
			r.wait(10 * time.Millisecond)
		}
		if n := r.asked("cdn.example.net."); taken != 1 || n != 2 {
			t.Errorf("of 200 in a second %d were taken, with %d queries, want 1 with one for each family", taken, n)
		}
		r.wait(5 * time.Second)
		if wait, _ := r.Refresh(r.key("example.org.")); wait != 0 {
			t.Errorf("after a while it wants to wait for %v", wait)
		}
		if _, ok := r.Refresh(alias.Key{}); ok {
			t.Error("refreshes what is not there")
		}
	})
}

// A refresh that finds nothing new flattens only the ALIAS for which it was requested.
func TestRefreshOfNothingNew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, cdn)
		r.zone("example.org.", "a.example.org. 300 ALIAS cdn.example.net.", "b.example.org. 300 ALIAS cdn.example.net.")
		r.wait(10 * time.Second)
		before := r.commitsBegun()
		if wait, ok := r.Refresh(r.key("a.example.org.")); !ok || wait > 0 {
			t.Fatalf("Refresh = %v, %v", wait, ok)
		}
		r.wait(time.Second)
		if n := r.commitsBegun() - before; n != 1 {
			t.Errorf("%v commits were begun", n)
		}
	})
}

// After a restart, 10,000 aliases on 50 targets are served at once. Each target is looked up once, not all together.
func TestRestartWithManyAliases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const aliases, targets = 10_000, 50
		script := "zone example.net.\n"
		for i := range targets {
			script += fmt.Sprintf("t%d.example.net. 300 A 203.0.113.%d\nt%d.example.net. 300 AAAA 2001:db8::%d\n",
				i, i+1, i, i+1)
		}
		net := simnet.New(1)
		net.MustServer(resolver, script)
		path := t.TempDir() + "/db"
		r := open(t, path, net, alias.Options{}, follow.Options{Rand: rand.New(rand.NewPCG(1, 1)).Float64})
		z := r.zone("example.org.")
		r.must(r.commit(func(tx *publish.Tx) error {
			for i := range aliases {
				s := r.set(fmt.Sprintf("a%d.example.org. 600 ALIAS t%d.example.net.", i, i%targets), false)
				s.Zone = z.ID
				if _, err := tx.CreateSet(s); err != nil {
					return err
				}
			}
			return nil
		}))
		r.wait(5 * time.Second)
		r.want("a123.example.org.", "ACTIVE", "A 300 203.0.113.24, AAAA 300 2001:db8::24")
		if n := len(net.History()); n != 2*targets {
			t.Errorf("%d lookups at first", n)
		}
		serial := r.serial("example.org.")
		r.stop()
		net.Forget()
		r = open(t, path, net, alias.Options{}, follow.Options{Rand: rand.New(rand.NewPCG(1, 1)).Float64})
		r.want("a123.example.org.", "ACTIVE", "A 300 203.0.113.24, AAAA 300 2001:db8::24")
		if n := len(net.History()); n > 10 {
			t.Errorf("%d lookups in the first moment after a restart", n)
		}
		r.wait(300 * time.Second)
		if n := len(net.History()); n < targets || n > 3*targets {
			t.Errorf("%d lookups in the first TTL after a restart", n)
		}
		if got := r.serial("example.org."); got != serial {
			t.Errorf("the restart stepped the serial from %d to %d", serial, got)
		}
	})
}

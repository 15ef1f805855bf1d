package alias_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/internal/zone"
)

const both = "A 60 203.0.113.1, AAAA 60 2001:db8::1"

// Addresses are withdrawn after failing for the limit. The next success restores them.
func TestStaleLimit(t *testing.T) {
	const limit = 24 * time.Hour
	tests := []struct{ name, fault, stale, status, rows string }{
		{"timeout", "fault timeout", "STALE timeout", "ERROR stale-limit", ""},
		{"servfail of one family", "fault servfail cdn.example.net. A", "STALE servfail", "ERROR stale-limit",
			"AAAA 60 2001:db8::1"},
		{"nxdomain", "fault nxdomain cdn.example.net.", "STALE nxdomain", "ERROR stale-limit", ""},
		{"private addresses", "set cdn.example.net. 60 A 10.0.0.1", "STALE private-address", "ERROR stale-limit",
			"AAAA 60 2001:db8::1"},
		{"a loop", "drop cdn.example.net.|set cdn.example.net. 60 CNAME cdn.example.net.", "ERROR loop", "ERROR stale-limit",
			""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := start(t, "zone example.net.\ncdn.example.net. 60 A 203.0.113.1\ncdn.example.net. 60 AAAA 2001:db8::1")
				r.SetPolicy(alias.Policy{StaleLimit: limit})
				server := r.net.MustServer(resolver, "")
				r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
				r.wait(time.Second)
				for line := range strings.SplitSeq(tt.fault, "|") {
					r.must(server.Do(line))
				}
				r.wait(10 * time.Minute)
				r.want("example.org.", tt.stale, both)
				st, _ := r.State(r.key("example.org."))
				until := st.StaleUntil[0]
				if left := time.Until(until); left > limit-9*time.Minute || left < limit-10*time.Minute {
					t.Fatalf("the addresses expire in %v", left)
				}
				serial := r.serial("example.org.")
				r.wait(time.Until(until) - time.Second)
				r.want("example.org.", tt.stale, both)
				r.wait(2 * time.Second)
				r.want("example.org.", tt.status, tt.rows)
				if n := r.changesSince("example.org.", serial); n != 1 {
					t.Errorf("withdrawn in %d changes", n)
				}
				if st, _ := r.State(r.key("example.org.")); !st.StaleUntil[0].Equal(until) || st.Families[0].LastSuccess.IsZero() {
					t.Errorf("afterwards the addresses expired at %v, and the last success was at %v", st.StaleUntil[0],
						st.Families[0].LastSuccess)
				}
				r.wait(48 * time.Hour)
				r.want("example.org.", tt.status, tt.rows)
				r.must(server.Do("heal"))
				r.must(server.Do("drop cdn.example.net."))
				r.must(server.Do("set cdn.example.net. 60 A 203.0.113.1"))
				r.must(server.Do("set cdn.example.net. 60 AAAA 2001:db8::1"))
				r.wait(time.Hour)
				r.want("example.org.", "ACTIVE", both)
				if st, _ := r.State(r.key("example.org.")); !st.StaleUntil[0].IsZero() || !st.Families[0].StaleSince.IsZero() {
					t.Errorf("the addresses of a good ALIAS expire at %v", st.StaleUntil[0])
				}
			})
		})
	}
}

// The limit survives restarts: its deadline is stored. A restart does not make addresses old that had not changed for a
// month but were looked up all the time.
func TestStaleLimitRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net := simnet.New(1)
		server := net.MustServer(resolver,
			"zone example.net.\ncdn.example.net. 60 A 203.0.113.1\ncdn.example.net. 60 AAAA 2001:db8::1")
		path := filepath.Join(t.TempDir(), "db")
		var r *testEnv
		run := func() {
			if r != nil {
				r.stop()
			}
			r = open(t, path, net, alias.Options{}, follow.Options{})
			r.SetPolicy(alias.Policy{StaleLimit: 24 * time.Hour})
			r.wait(0)
		}
		run()
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(30 * 24 * time.Hour)
		r.must(server.Do("fault timeout"))
		run()
		r.wait(10 * time.Hour)
		r.want("example.org.", "STALE timeout", both)
		run()
		r.wait(10 * time.Hour)
		r.want("example.org.", "STALE timeout", both)
		run()
		r.wait(5 * time.Hour)
		r.want("example.org.", "ERROR stale-limit", "")
		run()
		r.want("example.org.", "ERROR stale-limit", "")
		r.wait(10 * time.Hour)
		r.want("example.org.", "ERROR stale-limit", "")
		r.must(server.Do("heal"))
		r.wait(time.Hour)
		r.want("example.org.", "ACTIVE", both)
	})
}

// A changed limit applies at once to addresses that are already stale.
func TestStaleLimitSet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t,
			"zone example.net.\ncdn.example.net. 60 A 203.0.113.1\ncdn.example.net. 60 AAAA 2001:db8::1\nat 1m fault servfail")
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(100 * time.Hour)
		r.want("example.org.", "STALE servfail", both)
		r.SetPolicy(alias.Policy{StaleLimit: 24 * time.Hour})
		r.wait(time.Second)
		r.want("example.org.", "ERROR stale-limit", "")
		r.SetPolicy(alias.Policy{})
		r.wait(time.Second)
		r.want("example.org.", "STALE servfail", both)
	})
}

// With AllZones, zones of all projects are trusted. A start with another value of the setting is noticed.
func TestAllZonesPolicy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(resolver, cdn)
		path := filepath.Join(t.TempDir(), "db")
		var r *testEnv
		run := func(all bool) {
			if r != nil {
				r.stop()
			}
			r = open(t, path, net, alias.Options{}, follow.Options{})
			r.SetPolicy(alias.Policy{AllZones: all})
			r.wait(time.Second)
		}
		run(false)
		other := zone.Zone{Name: name("example.net."), Kind: zone.Primary, TTL: 3600, Project: "another"}
		r.must(r.commit(func(tx *publish.Tx) (err error) {
			other, err = tx.CreateZone(other,
				r.set("example.net. 0 SOA ns.example.net. host.example.net. 1 3600 600 86400 60", true),
				r.set("example.net. 0 NS ns.example.net.", true), r.set("cdn.example.net. 100 A 203.0.113.66", false))
			return err
		}))
		r.zone("example.org.", "example.org. 300 ALIAS cdn.example.net.")
		r.wait(time.Second)
		const theirs, ours = "A 60 203.0.113.1 203.0.113.2, AAAA 120 2001:db8::1", "A 100 203.0.113.66"
		r.want("example.org.", "ACTIVE", theirs)
		r.SetPolicy(alias.Policy{AllZones: true})
		r.wait(time.Second)
		r.want("example.org.", "ACTIVE", ours)
		r.must(r.put("cdn.example.net. 100 A 203.0.113.67"))
		r.want("example.org.", "ACTIVE", "A 100 203.0.113.67")
		run(true)
		r.want("example.org.", "ACTIVE", "A 100 203.0.113.67")
		commits := r.store.commits()
		run(true)
		if n := r.store.commits(); n > 0 {
			t.Errorf("a start that changes nothing made %d commits, and the one before %d", n, commits)
		}
		run(false)
		r.want("example.org.", "ACTIVE", theirs)
		run(true)
		r.want("example.org.", "ACTIVE", "A 100 203.0.113.67")
	})
}

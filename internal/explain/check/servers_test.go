package check_test

import (
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// ns2 sets the class of the reply of the second server.
func ns2(c iterate.Class) func(*explain.Facts) {
	return func(f *explain.Facts) { second(f).Class, second(f).SOA = c, nil }
}

func all(c iterate.Class) func(*explain.Facts) {
	return func(f *explain.Facts) { both(f, func(s *explain.Server) { s.Class, s.SOA = c, nil }) }
}

// silent makes a server not reply.
func silent(s *explain.Server) {
	s.Class, s.Health, s.Sent, s.Lost, s.SOA, s.RTT = iterate.Timeout, iterate.Down, 3, 3, nil, 0
	s.TCP = no()
}

func serverStories() []story {
	return []story{
		{"DEL04", "they know it", nil, "pass", "Both servers"},
		{"DEL04", "REFUSED", ns2(iterate.LameRefused), "fail error",
			"ns2.example.net (198.51.100.2) is listed for example.org but does not know the zone: it replies REFUSED."},
		{"DEL04", "SERVFAIL", ns2(iterate.LameServfail), "fail error", "SERVFAIL"},
		{"DEL04", "not an authority", ns2(iterate.LameNotAuth), "fail error", "not authoritative"},
		{"DEL04", "a resolver", ns2(iterate.Recursed), "fail error", "from a cache"},
		{"DEL04", "NOTIMP", ns2(iterate.NotImp), "fail error", "it replies NOTIMP"},
		{"DEL04", "always truncated", ns2(iterate.Truncated), "fail error", "does not complete it over TCP"},
		{"DEL04", "all of them", all(iterate.LameRefused), "fail critical", ""},
		{"DEL04", "all of them refer upward", all(iterate.Upward), "fail critical", ""},
		{"DEL04", "the one lame, the other silent", func(f *explain.Facts) {
			ns2(iterate.LameRefused)(f)
			silent(first(f))
		}, "fail critical", ""},
		{"DEL04", "a timeout is not lame", func(f *explain.Facts) { silent(second(f)) }, "pass", ""},
		{"DEL04", "timeouts everywhere are not lame", func(f *explain.Facts) { both(f, silent) }, "unknown", ""},
		{"DEL04", "an upward referral is not this", ns2(iterate.Upward), "pass", ""},
		{"DEL04", "the budget was used up", unasked, "unknown", ""},
		{"DEL04", "one was not asked", func(f *explain.Facts) {
			second(f).Class = iterate.Unknown
		}, "unknown", "1 of 2 servers"},
		{"DEL04", "one has only a private address", func(f *explain.Facts) {
			ns2(iterate.Unknown)(f)
			second(f).Addr = addr("10.0.0.2")
		}, "pass", "The one server of example.org that replied knows the zone."},
		{"DEL04", "one is of IPv6, from a machine without", func(f *explain.Facts) {
			ns2(iterate.Unknown)(f)
			second(f).Addr, f.Vantage.IPv6 = addr("2001:db8::2"), explain.No
		}, "pass", ""},
		{"DEL04", "a server that is only planned", func(f *explain.Facts) {
			s := server("ns9.new.net", "203.0.113.9")
			s.Listed, s.Class = []string{"plan"}, iterate.LameRefused
			f.Servers = append(f.Servers, s)
		}, "pass", ""},

		{"DEL05", "they reply", nil, "pass", ""},
		{"DEL05", "one is silent", func(f *explain.Facts) {
			silent(second(f))
		}, "fail warning", "ns2.example.net (198.51.100.2), a server of example.org, does not reply: all 3 queries were " +
			"lost."},
		{"DEL05", "all are", func(f *explain.Facts) { both(f, silent) }, "fail critical", ""},
		{"DEL05", "all are, at private addresses", func(f *explain.Facts) {
			both(f, silent)
			first(f).Addr, second(f).Addr = addr("10.0.0.1"), addr("10.0.0.2")
		}, "fail critical", "ns1.example.org (10.0.0.1), a server of example.org, does not reply"},
		{"DEL05", "one cannot be reached", func(f *explain.Facts) {
			silent(second(f))
			second(f).Class = iterate.Unreachable
		}, "fail warning", "cannot be reached"},
		{"DEL05", "a third is lost", func(f *explain.Facts) {
			second(f).Health, second(f).Sent, second(f).Lost = iterate.Flaky, 3, 1
		}, "fail notice", "lost 1 of 3 queries (33 %)"},
		{"DEL05", "lame is not unreachable", ns2(iterate.LameRefused), "pass", ""},
		{"DEL05", "one packet was lost", func(f *explain.Facts) {
			silent(second(f))
			second(f).Sent, second(f).Lost = 1, 1
		}, "unknown", ""},
		{"DEL05", "IPv6, from a machine without", func(f *explain.Facts) {
			silent(second(f))
			second(f).Addr, f.Vantage.IPv6 = addr("2001:db8::2"), explain.No
		}, "unknown", ""},
		{"DEL05", "lost are only questions over TCP", func(f *explain.Facts) {
			second(f).Health, second(f).Sent, second(f).Lost, second(f).TCP = iterate.Flaky, 9, 3, no()
		}, "pass", ""},
		{"DEL05", "replies from elsewhere", func(f *explain.Facts) {
			silent(second(f))
			second(f).Source = no()
		}, "unknown", ""},
		{"DEL05", "the budget was used up", unasked, "unknown", ""},

		{"DEL06", "TCP works", nil, "pass", ""},
		{"DEL06", "TCP does not", func(f *explain.Facts) {
			second(f).TCP = explain.Probe{Fact: explain.No, Detail: "ask tcp://198.51.100.2:53: dial: connection refused"}
		}, "fail warning", "not over TCP: connection refused."},
		{"DEL06", "a server that is silent altogether", func(f *explain.Facts) { silent(second(f)) }, "pass", ""},
		{"DEL06", "no reply, and none over UDP that can be judged", func(f *explain.Facts) {
			silent(second(f))
			second(f).Health = iterate.Flaky
		}, "unknown", ""},
		{"DEL06", "not tried", unasked, "", ""},

		{"DEL07", "none", nil, "pass", ""},
		{"DEL07", "one", ns2(iterate.Upward), "fail warning", "refers to the root"},
		{"DEL07", "nobody replied", func(f *explain.Facts) { both(f, silent) }, "unknown", ""},

		{"DEL15", "closed", nil, "pass", ""},
		{"DEL15", "open", func(f *explain.Facts) { first(f).Recursion = yes() }, "fail notice", "is an open resolver"},
		{"DEL15", "no reply", func(f *explain.Facts) {
			first(f).Recursion.Fact = explain.Unknown
		}, "unknown", "ns1.example.org (192.0.2.1)"},
		{"DEL16", "closed", nil, "pass", ""},
		{"DEL16", "open", func(f *explain.Facts) {
			first(f).Transfer = yes()
		}, "fail notice", "allows anyone to transfer the zone example.org"},
		{"DEL16", "not tried", unasked, "", ""},

		{"DEL17", "quick", nil, "pass", "in 20 ms"},
		{"DEL17", "slow", func(f *explain.Facts) {
			second(f).RTT = 350 * time.Millisecond
		}, "fail notice", "takes 350 ms to reply, as seen from here; the fastest, ns1.example.org (192.0.2.1), takes 20 ms."},
		{"DEL17", "all are slow", func(f *explain.Facts) {
			both(f, func(s *explain.Server) { s.RTT = 350 * time.Millisecond })
		}, "fail notice", "every first visit waits this long"},
		{"DEL17", "in one network", func(f *explain.Facts) {
			zoneOf(f).Hosts = hosts("192.0.2.99")
		}, "fail notice", "list nameservers for example.org whose addresses are all in one network, 192.0.2.0/24."},
		{"DEL17", "in one network, and IPv6", func(f *explain.Facts) {
			zoneOf(f).Hosts = hosts("192.0.2.99", "2001:db8::1")
		}, "pass", ""},
		{"DEL17", "one address", func(f *explain.Facts) { f.Servers = f.Servers[:2] }, "pass", "as seen from here"},
		{"DEL17", "no times", func(f *explain.Facts) { both(f, func(s *explain.Server) { s.RTT = 0 }) }, "unknown", ""},
	}
}

// TestTimeouts checks that a server that does not reply is never called lame, and one that refuses never unreachable.
func TestTimeouts(t *testing.T) {
	for _, class := range []iterate.Class{iterate.Timeout, iterate.Unreachable, iterate.BadID, iterate.QuestionMismatch,
		iterate.ParseError, iterate.Unknown} {
		for _, kind := range kinds {
			f := healthy()
			f.Kind = kind
			both(f, func(s *explain.Server) { silent(s); s.Class = class })
			for _, x := range check.Run(f) {
				if x.Status == explain.Fail && (x.ID == "DEL04" || x.ID == "DEL07") {
					t.Errorf("%s: %s", class, lines([]explain.Finding{x}))
				}
			}
		}
	}
}

// hosts returns the two nameservers of example.org: the first at its address, the second at these.
func hosts(second ...string) []iterate.Host {
	return []iterate.Host{{Name: name("ns1.example.org"), Glue: addrs("192.0.2.1")},
		{Name: name("ns2.example.net"), Found: addrs(second...)}}
}

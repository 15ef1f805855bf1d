package secure_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// scenario is a tree of the root, test., example.test. and other.test., which is not signed.
type scenario struct {
	how     signing // signing of example.test.
	tld     signing // signing of test.
	zone    string  // additional records of example.test.
	ds      string  // DS records of example.test. instead of those of its keys, or "none"
	second  *signing
	damage  func(z *signed) // changes example.test. on both servers
	damage2 func(z *signed) // changes example.test. on the second server
	parent  func(z *signed) // changes test.
	later   time.Duration   // time between signing and validation
	opts    iterate.Options
}

// bubble is the initial time of the clock in a synctest bubble.
var bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const apexNS = "@ NS ns1\n@ NS ns2\nns1 A 192.0.2.21\nns2 A 192.0.2.22\nwww A 203.0.113.1\nalias CNAME www\n" +
	"far CNAME www.other.test.\nold DNAME other.test.\n" +
	"*.wild A 203.0.113.9\na.b.c A 203.0.113.8\nsub NS ns.sub\nns.sub A 192.0.2.51\n"

// plain returns the signing parameters for keys, valid from the initial time of a bubble. Tables are built before the
// bubble starts, so time.Now would be wrong.
func plain(keys ...key) signing {
	now := bubble
	return signing{keys: keys, from: now.Add(-time.Hour), to: now.Add(14 * 24 * time.Hour)}
}

func (s scenario) build() (network, []secure.Anchor) {
	if s.how.to.IsZero() {
		d := plain()
		s.how.from, s.how.to = d.from, d.to
	}
	if len(s.how.keys) == 0 && s.ds == "" {
		s.how.keys = []key{newKSK("example.test."), newKey("example.test.", 256, dns.ECDSAP256SHA256, 256, 2)}
	}
	ds := s.ds
	if ds == "" {
		for _, k := range s.how.keys {
			if k.Flags&dns.SEP != 0 {
				ds += k.ToDS(dns.SHA256).String() + "\n"
			}
		}
	}
	if ds == "none" {
		ds = ""
	}
	rootKey, tldKey := newKSK("."), newKSK("test.")
	tld := s.tld
	tld.keys, tld.from, tld.to = []key{tldKey}, plain().from, plain().to
	root := newZone(".",
		"@ NS a.root.\na.root. A 192.0.2.1\ntest. NS ns.nic.test.\nns.nic.test. A 192.0.2.11\n"+
			tldKey.ToDS(dns.SHA256).String(), plain(rootKey))
	test := newZone("test.",
		"@ NS ns.nic\nns.nic A 192.0.2.11\nexample NS ns1.example\nexample NS ns2.example\nns1.example A 192.0.2.21\n"+
			"ns2.example A 192.0.2.22\n"+
			"other NS ns.other\nns.other A 192.0.2.31\n"+ds, tld)
	one := newZone("example.test.", apexNS+s.zone, s.how)
	two := one
	if s.damage != nil {
		s.damage(one)
	}
	if s.second != nil {
		two = newZone("example.test.", apexNS+s.zone, *s.second)
	} else if s.damage2 != nil {
		two = newZone("example.test.", apexNS+s.zone, s.how)
	}
	if s.damage2 != nil {
		s.damage2(two)
	}
	if s.parent != nil {
		s.parent(test)
	}
	other := newZone("other.test.", "@ NS ns\nns A 192.0.2.31\nwww A 203.0.113.3\n", signing{})
	sub := newZone("sub.example.test.", "@ NS ns\nns A 192.0.2.51\nwww A 203.0.113.4\n", signing{})
	anchor, err := secure.ParseAnchor(rootKey.ToDS(dns.SHA256).String())
	if err != nil {
		panic(err)
	}
	return network{"192.0.2.1": {root}, "192.0.2.11": {test}, "192.0.2.21": {one}, "192.0.2.22": {two},
		"192.0.2.31": {other}, "192.0.2.51": {sub}}, []secure.Anchor{anchor}
}

func question(s string) (q iterate.Question) {
	if err := q.UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return q
}

func (s scenario) trace(t testing.TB, q string) (*iterate.Trace, []secure.Anchor) {
	t.Helper()
	w, anchors := s.build()
	s.opts.Hints = []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: addrs("192.0.2.1")}}
	s.opts.Budget, s.opts.Probe = resolve.NewBudget(400, 1000, nil), "probe"
	s.opts.MaxTime, s.opts.Timeouts = 20*time.Second, []time.Duration{2 * time.Second}
	trace, err := (&iterate.Iterator{Exchanger: w, Options: s.opts}).Run(t.Context(), question(q))
	if err != nil {
		t.Fatal(err)
	}
	return trace, anchors
}

// validate validates a trace for the type of its question.
func validate(trace *iterate.Trace, anchors []secure.Anchor, now time.Time) secure.Result {
	return secure.Validate(trace, []rr.Type{trace.Question.Type}, anchors, now)[0]
}

// judge walks to a question and validates the trace. It checks that a stored trace gives the same result.
func (s scenario) judge(t testing.TB, q string) secure.Result {
	t.Helper()
	trace, anchors := s.trace(t, q)
	now := time.Now().Add(s.later)
	got := validate(trace, anchors, now)
	file, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	var read iterate.Trace
	if err := json.Unmarshal(file, &read); err != nil {
		t.Fatal(err)
	}
	first, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := json.Marshal(validate(&read, anchors, now))
	if !bytes.Equal(first, second) {
		t.Errorf("from a file (-first +second):\n%s", cmp.Diff(string(first), string(second)))
	}
	return got
}

func zoneOf(r secure.Result, name string) secure.Zone {
	for _, z := range r.Zones {
		if z.Name.String() == name {
			return z
		}
	}
	return secure.Zone{}
}

// summary returns the states of zones and answers.
func summary(r secure.Result) string {
	out := []string{string(r.State)}
	for _, z := range r.Zones {
		if z.Name.IsRoot() || z.Name.String() == "test." {
			if z.State != secure.Secure {
				out = append(out, fmt.Sprintf("%s: %s", z.Name, z.Why))
			}
			continue
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", z.Name, z.State, z.Cause)))
	}
	for _, a := range r.Answers {
		s := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", a.Question.Name, a.Class, a.State, a.Cause))
		if a.Wildcard {
			s += " wildcard"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestValidate(t *testing.T) {
	const ok, ins = "example.test. secure; ", "example.test. insecure no-ds; "
	nsec3 := signing{nsec3: true, iterations: 2, salt: "ABCD"}
	optOut := signing{nsec3: true, optOut: true}
	tests := []struct {
		name     string
		scenario scenario
		q        string
		want     string
	}{
		{"address", scenario{}, "www.example.test. A", "secure; " + ok + "www.example.test. answer secure"},
		{"apex", scenario{}, "example.test. SOA", "secure; " + ok + "example.test. answer secure"},
		{"CNAME", scenario{}, "alias.example.test. A",
			"secure; " + ok + "alias.example.test. answer secure; www.example.test. answer secure"},
		{"CNAME to where nothing is signed", scenario{}, "far.example.test. A", "insecure; " + ok +
			"other.test. insecure no-ds; far.example.test. answer secure; www.other.test. answer insecure above"},
		{"DNAME", scenario{}, "www.old.example.test. A", "insecure; " + ok +
			"other.test. insecure no-ds; www.old.example.test. answer secure; www.other.test. answer insecure above"},
		{"no type", scenario{}, "www.example.test. TXT", "secure; " + ok + "www.example.test. nodata secure"},
		{"empty name", scenario{}, "b.c.example.test. TXT", "secure; " + ok + "b.c.example.test. nodata secure"},
		{"no name", scenario{}, "nope.example.test. A", "secure; " + ok + "nope.example.test. nxdomain secure"},
		{"no name far below", scenario{}, "x.y.c.example.test. A", "secure; " + ok + "x.y.c.example.test. nxdomain secure"},
		{"wildcard", scenario{}, "x.wild.example.test. A", "secure; " + ok + "x.wild.example.test. answer secure wildcard"},
		{"wildcard itself", scenario{}, "*.wild.example.test. A", "secure; " + ok + "*.wild.example.test. answer secure"},
		{"wildcard without the type", scenario{}, "x.y.wild.example.test. TXT",
			"secure; " + ok + "x.y.wild.example.test. nodata secure"},
		{"delegation without DS", scenario{}, "www.sub.example.test. A",
			"insecure; " + ok + "sub.example.test. insecure no-ds; www.sub.example.test. answer insecure above"},
		{"DS", scenario{}, "example.test. DS", "secure; example.test. answer secure"},
		{"no DS", scenario{}, "other.test. DS", "secure; other.test. nodata secure"},

		{"NSEC3: address", scenario{how: nsec3}, "www.example.test. A", "secure; " + ok + "www.example.test. answer secure"},
		{"NSEC3: no type", scenario{how: nsec3}, "www.example.test. TXT",
			"secure; " + ok + "www.example.test. nodata secure"},
		{"NSEC3: empty name", scenario{how: nsec3}, "b.c.example.test. TXT",
			"secure; " + ok + "b.c.example.test. nodata secure"},
		{"NSEC3: no name", scenario{how: nsec3}, "nope.example.test. A",
			"secure; " + ok + "nope.example.test. nxdomain secure"},
		{"NSEC3: no name far below", scenario{how: nsec3}, "x.y.z.example.test. A",
			"secure; " + ok + "x.y.z.example.test. nxdomain secure"},
		{"NSEC3: wildcard", scenario{how: nsec3}, "x.y.wild.example.test. A",
			"secure; " + ok + "x.y.wild.example.test. answer secure wildcard"},
		{"NSEC3: wildcard without the type", scenario{how: nsec3}, "x.wild.example.test. TXT",
			"secure; " + ok + "x.wild.example.test. nodata secure"},
		{"NSEC3: delegation without DS", scenario{how: nsec3}, "www.sub.example.test. A", "insecure; " + ok +
			"sub.example.test. insecure no-ds; www.sub.example.test. answer insecure above"},

		{"opt-out: address", scenario{how: optOut, tld: optOut}, "www.example.test. A",
			"secure; " + ok + "www.example.test. answer secure"},
		{"opt-out: no name", scenario{how: optOut}, "nope.example.test. A",
			"insecure; " + ok + "nope.example.test. nxdomain insecure opt-out"},
		{"opt-out: delegation without DS", scenario{tld: optOut}, "www.other.test. A",
			"insecure; other.test. insecure no-ds; www.other.test. answer insecure above"},
		{"opt-out: wildcard", scenario{how: optOut}, "x.wild.example.test. A",
			"insecure; " + ok + "x.wild.example.test. answer insecure opt-out wildcard"},
		{"opt-out: wildcard without the type", scenario{how: optOut}, "x.wild.example.test. TXT",
			"insecure; " + ok + "x.wild.example.test. nodata insecure opt-out"},
		{"too many iterations", scenario{how: signing{nsec3: true, iterations: 101}}, "nope.example.test. A",
			"insecure; " + ok + "nope.example.test. nxdomain insecure iterations"},
		{"the maximum of iterations", scenario{how: signing{nsec3: true, iterations: 100}}, "nope.example.test. A",
			"secure; " + ok + "nope.example.test. nxdomain secure"},

		{"signed without DS", scenario{ds: "none", how: plain(newKSK("example.test."))}, "www.example.test. A",
			"insecure; " + ins + "www.example.test. answer insecure above"},
		{"not signed", scenario{ds: "none"}, "www.example.test. A",
			"insecure; " + ins + "www.example.test. answer insecure above"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tt.scenario.judge(t, tt.q)
				if got := summary(r); got != tt.want {
					t.Errorf("got  %s\nwant %s\nwhy %s", got, tt.want, r.Why)
				}
				for _, z := range r.Zones {
					if z.Denial.Problem != "" || z.Denial.Kind != "" && !z.Denial.OK {
						t.Errorf("denial of %s: %+v", z.Name, z.Denial)
					}
					for _, s := range z.Signatures {
						if !s.Valid {
							t.Errorf("%s: %+v", z.Name, s)
						}
					}
				}
			})
		})
	}
}

package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func name(s string) dnsname.Name { return dnsname.MustParse(s) }

var (
	at   = time.Date(2026, 1, 1, 13, 51, 0, 0, time.UTC)
	typA = rr.TypeA
)

// story returns the facts and findings of a domain with one lame server.
func story(kind explain.Kind) (*explain.Facts, []explain.Finding) {
	zone := name("example.org")
	ns := []dnsname.Name{name("ns1.example.org"), name("ns2.example.org")}
	soa := &explain.SOA{Owner: zone, TTL: 3600, MName: ns[0], RName: name(`host\.master.example.org`), Serial: 2026010102,
		Refresh: 7200, Retry: 900, Expire: 1209600, Minimum: 86400}
	good, lame := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	f := &explain.Facts{Schema: explain.Schema, Kind: kind, Name: name("www.example.org"), Types: []rr.Type{typA}, At: at,
		Took: 420 * time.Millisecond, Queries: 38,
		Domain: zone, Zone: zone,
		Registrations: []registry.Registration{{Domain: "example.org.", State: registry.Registered, Source: registry.RDAP,
			Registrar:   registry.Registrar{Name: "Names Inc."},
			Dates:       registry.Dates{Expires: at.Add(45 * 24 * time.Hour)},
			Statuses:    []registry.Status{registry.StatusOf("client transfer prohibited")},
			Nameservers: []registry.Host{{Name: "ns1.example.org."}, {Name: "ns2.example.org."}}}},
		Zones: []iterate.Zone{{Name: zone, Parent: name("org"), ParentNS: []iterate.NSSet{{NS: ns, TTL: 86400}},
			ChildNS: []iterate.NSSet{{NS: ns[:1], TTL: 300}}}},
		Servers: []explain.Server{
			{Zone: zone, Host: ns[0], Addr: good, Class: iterate.Answer, Health: iterate.Up, Sent: 9, RTT: 12 * time.Millisecond,
				SOA: soa},
			{Zone: zone, Host: ns[1], Addr: lame, Class: iterate.LameRefused, Health: iterate.Up, Sent: 9,
				RTT: 20 * time.Millisecond}},
		Outcomes: []explain.Outcome{{Type: typA, Result: iterate.Answer, End: name("edge.example.net"),
			Zone: name("example.net"),
			Sets: []explain.Set{{Name: name("edge.example.net"), Type: typA, TTL: 60, Data: []string{"192.0.2.80"}}}}},
		Chain: []explain.Hop{{Link: iterate.Link{From: name("www.example.org"), To: name("edge.example.net"), Type: "CNAME",
			TTL: 3600, Zone: zone}, Servers: 2, Agree: 1}},
		Denials: []explain.Denial{{Zone: zone, Asked: name("x1.example.org"), Class: iterate.NXDomain, TTL: 3600,
			Minimum: 86400}},
		Exchanges: []iterate.Exchange{
			{At: time.Millisecond, RTT: 12 * time.Millisecond, Server: good, Transport: "udp", EDNS: true, Class: iterate.Answer,
				Question: iterate.Question{Name: zone, Type: rr.TypeSOA}},
			{At: time.Millisecond, RTT: 20 * time.Millisecond, Server: lame, Transport: "udp", EDNS: true,
				Class: iterate.LameRefused, Question: iterate.Question{Name: zone, Type: rr.TypeSOA}}},
	}
	findings := []explain.Finding{
		{ID: "DEL04", Severity: explain.Error, Status: explain.Fail, Subject: "ns2.example.org (192.0.2.2)",
			Actor: explain.DNSHost, Evidence: []int{1},
			Words:   "ns2.example.org (192.0.2.2) is listed for example.org but does not know the zone: it replies REFUSED.",
			Fix:     "Set the zone up at ns2.example.org, or take it out of the list of nameservers.",
			Visible: at.Add(24 * time.Hour)},
		{ID: "SOA01", Severity: explain.Notice, Status: explain.Fail, Subject: "example.org",
			Words: "\"Does not exist\" is remembered for 1 h.", Fix: "Lower it."},
		{ID: "SEC01", Severity: explain.Critical, Status: explain.NotKnown, Subject: "example.org",
			Words: "The keys could not be read."},
		{ID: "DEL02", Severity: explain.Warning, Status: explain.Pass, Subject: "example.org",
			Words: "There are two nameservers."},
	}
	return f, findings
}

func TestGolden(t *testing.T) {
	for _, kind := range []explain.Kind{explain.Scan, explain.Analyze} {
		f, findings := story(kind)
		r := report.Make(f, findings)
		for _, format := range report.Formats {
			var out bytes.Buffer
			switch err := r.Write(&out, format, report.TextOptions{All: true}); {
			case errors.Is(err, report.ErrNoPlan) && r.Plan == nil:
				continue
			case err != nil:
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", string(kind)+"."+format), out.String())
		}
	}
	if err := new(report.Report).Write(&bytes.Buffer{}, "pdf", report.TextOptions{}); err == nil {
		t.Error("there is a format pdf")
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

func finding(id string, s explain.Severity, status explain.Status) explain.Finding {
	return explain.Finding{ID: id, Severity: s, Status: status, Subject: "x", Words: "Something is the case."}
}

func TestVerdict(t *testing.T) {
	fail, unknown, pass := explain.Fail, explain.NotKnown, explain.Pass
	for _, test := range []struct {
		what     string
		kind     explain.Kind
		findings []explain.Finding
		want     report.Verdict
		exit     int
	}{
		{"nothing is wrong", explain.Scan, []explain.Finding{finding("DEL04", explain.Error, pass)}, report.Working, 0},
		{"a notice", explain.Scan, []explain.Finding{finding("SOA06", explain.Notice, fail)}, report.Working, 0},
		{"a warning", explain.Scan, []explain.Finding{finding("DEL02", explain.Warning, fail)}, report.Working, 1},
		{"an error for some", explain.Scan, []explain.Finding{finding("DEL09", explain.Error, fail)}, report.Working, 2},
		{"critical", explain.Analyze, []explain.Finding{finding("NAM01", explain.Critical, fail)}, report.NotWorking, 2},
		{"what must be known is not", explain.Analyze, []explain.Finding{finding("NAM01", explain.Critical, unknown)},
			report.Undecided, 3},
		{"something else is not known", explain.Analyze, []explain.Finding{finding("SEC04", explain.Critical, unknown)},
			report.Working, 0},
		{"critical beside what is not known", explain.Analyze,
			[]explain.Finding{finding("NAM05", explain.Critical, fail), finding("NAM01", explain.Critical, unknown)},
			report.NotWorking, 2},
		{"caches are late", explain.Compare, []explain.Finding{finding("TTL02", explain.Error, fail)}, report.Soon, 2},
		{"a cache is late by a notice", explain.Compare, []explain.Finding{finding("TTL03", explain.Notice, fail)},
			report.Soon, 1},
		{"a resolver cannot reach the servers, and time does not mend that", explain.Compare,
			[]explain.Finding{finding("TTL08", explain.Warning, fail)}, report.Working, 1},
		{"a device on the path answers", explain.Analyze,
			[]explain.Finding{finding("VAN01", explain.Warning, fail), finding("NAM01", explain.Critical, unknown)},
			report.Undecided, 3},
		{"a device on the path answers, and the domain is not registered", explain.Scan,
			[]explain.Finding{finding("REG01", explain.Critical, fail), finding("VAN01", explain.Warning, fail)},
			report.NotWorking, 2},
		{"too few answers", explain.Compare, []explain.Finding{finding("VAN04", explain.Info, unknown)}, report.Undecided, 3},
	} {
		r := report.Make(&explain.Facts{Kind: test.kind, Name: name("www.example.org"), At: at}, test.findings)
		if r.Verdict != test.want || r.Summary == "" {
			t.Errorf("%s: %s (%s), want %s", test.what, r.Verdict, r.Summary, test.want)
		}
		if got := r.Exit(explain.Error); got != test.exit {
			t.Errorf("%s: exit %d, want %d", test.what, got, test.exit)
		}
	}
}

func TestScanned(t *testing.T) {
	for _, test := range []struct{ target, domain, zone, alias, want string }{
		{"example.org", "example.org", "example.org", "", "example.org is registered and delegated"},
		{"dev.example.org", "example.org", "dev.example.org", "",
			"dev.example.org is a zone in example.org, which is registered and delegated"},
		{"www.example.org", "example.org", "example.org", "",
			"www.example.org is no zone but a name in example.org, which is registered and delegated"},
		{"www.example.org", "example.org", "example.org", "edge.example.net",
			"www.example.org is no zone but an alias for edge.example.net, in example.org, which is registered and delegated"},
		{"unasked.example", "unasked.example", "unasked.example", "", "unasked.example is delegated"},
		{"example.org", "example.org", "org", "edge.example.net",
			"example.org is no zone but an alias for edge.example.net, in org"},
		{"example.org", "example.org", "org", "", "example.org is no zone but a name in org"},
		{"org", "", "org", "", "org is delegated"},
		{".", "", ".", "", ". is the root"},
	} {
		f := &explain.Facts{Kind: explain.Scan, Name: name(test.target), Zone: name(test.zone), At: at,
			Registrations: []registry.Registration{{Domain: "example.org.", State: registry.Registered}}}
		if test.alias != "" {
			f.Chain = []explain.Hop{{Link: iterate.Link{From: f.Name, To: name(test.alias)}}}
		}
		if test.domain != "" {
			f.Domain = name(test.domain)
		}
		if got, want := report.Make(f, nil).Summary, "Working: "+test.want+", and its servers answer."; got != want {
			t.Errorf("%s: %s, want %s", test.target, got, want)
		}
	}
}

func TestFailOn(t *testing.T) {
	r := report.Make(&explain.Facts{Kind: explain.Scan, At: at},
		[]explain.Finding{finding("DEL02", explain.Warning, explain.Fail)})
	if r.Exit(explain.Warning) != 2 || r.Exit(explain.Critical) != 1 {
		t.Errorf("exit %d and %d", r.Exit(explain.Warning), r.Exit(explain.Critical))
	}
}

// TestHostile checks that records cannot inject control characters or markup into a terminal, a page or a test report.
func TestHostile(t *testing.T) {
	evil := "\x1b[2Jowned\u202e <script>|`]](x)\x00"
	f, findings := story(explain.Analyze)
	f.Outcomes[0].Sets[0].Data = []string{evil}
	findings[0].Words, findings[0].Subject = evil, evil
	r := report.Make(f, findings)
	for _, format := range []string{"text", "markdown", "junit"} {
		var out bytes.Buffer
		if err := r.Write(&out, format, report.TextOptions{Color: false, All: true}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\x1b\x00\u202e") {
			t.Errorf("%s passes control characters on", format)
		}
		if format == "markdown" && strings.Contains(out.String(), "<script>") {
			t.Error("markdown passes markup on")
		}
		if format == "junit" && xml.Unmarshal(out.Bytes(), new(struct{})) != nil {
			t.Error("junit is not XML")
		}
	}
	var out bytes.Buffer
	if err := r.JSON(&out); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("JSON: %v", err)
	}
}

func TestCaches(t *testing.T) {
	f, _ := story(explain.Compare)
	old := explain.Set{Name: name("www.example.org"), Type: typA, TTL: 600, Data: []string{"192.0.2.79"}}
	q := iterate.Question{Name: f.Name, Type: rr.TypeA}
	f.Chain = nil
	f.Outcomes[0].End, f.Outcomes[0].Sets[0].Name, f.Outcomes[0].Zone = f.Name, f.Name, f.Zone
	f.Caches = []explain.Cache{
		{ID: "a", Operator: "Aland", Addr: netip.MustParseAddr("198.51.100.1"),
			Samples: []explain.Sample{{Question: q, Sets: f.Outcomes[0].Sets, Rcode: "NOERROR"}}},
		{ID: "b", Operator: "Borland", Addr: netip.MustParseAddr("198.51.100.2"), Flush: "https://b.test/",
			Samples: []explain.Sample{{Question: q, Sets: []explain.Set{old}, Rcode: "NOERROR"}}},
		{ID: "c", Operator: "Cuba", Addr: netip.MustParseAddr("198.51.100.3"),
			Samples: []explain.Sample{{Question: q, Rcode: "NXDOMAIN", Errors: []iterate.EDE{{Code: 17, Text: "ads"}}}}},
		{ID: "d", Operator: "Delos", Addr: netip.MustParseAddr("198.51.100.4"), NotAsked: "the authority has no such name"},
		{ID: "e", Operator: "Elba", Addr: netip.MustParseAddr("198.51.100.5"), NoVote: true,
			Samples: []explain.Sample{{Question: q, Sets: []explain.Set{old}, Rcode: "NOERROR"}}},
	}
	r := report.Make(f, []explain.Finding{finding("TTL02", explain.Error, explain.Fail)})
	var states []string
	for _, c := range r.Caches {
		states = append(states, c.Resolver+" "+string(c.State))
	}
	if diff := cmp.Diff([]string{"Borland old", "Elba old", "Cuba filtered", "Aland current", "Delos silent"},
		states); diff != "" {
		t.Errorf("resolvers (-want +got):\n%s", diff)
	}
	if b := r.Caches[0]; b.Flush == "" || !b.Until.After(at.Add(590*time.Second)) || b.Answer != "A 192.0.2.79" {
		t.Errorf("the late one is %+v", b)
	}
	if e := r.Caches[1]; !e.Until.Equal(at.Add(601*time.Second)) || !e.Likely.Equal(at.Add(600*time.Second)) {
		t.Errorf("the late one that does not count is %+v", e)
	}
	var out bytes.Buffer
	if err := r.Text(&out, report.TextOptions{}); err != nil ||
		!strings.Contains(out.String(), "At least 3 caches answered behind 3 addresses;") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if c := r.Caches[2]; !strings.Contains(c.Why, "extended error 17") {
		t.Errorf("the one that filters is %+v", c)
	}
	if r.Verdict != report.Soon || !strings.Contains(r.Summary, "1 of 2 resolvers") || r.SafeAt.Before(at) {
		t.Errorf("%s, safe at %v", r.Summary, r.SafeAt)
	}
}

// TestNotCounted checks that the report says why a resolver does not count, and that its answer by client network is
// not old.
func TestNotCounted(t *testing.T) {
	f, _ := story(explain.Compare)
	q := iterate.Question{Name: f.Name, Type: rr.TypeA}
	other := explain.Set{Name: f.Name, Type: typA, TTL: 600, Data: []string{"192.0.2.79"}}
	f.Chain = nil
	f.Outcomes[0].End, f.Outcomes[0].Sets[0].Name, f.Outcomes[0].Zone = f.Name, f.Name, f.Zone
	for i, data := range []string{"192.0.2.80", "192.0.2.81"} { // by client network
		a := explain.Answer{Question: q, Zone: f.Zone, Server: netip.MustParseAddr("192.0.2.1"), Class: iterate.Answer,
			Sets: []explain.Set{{Name: f.Name, Type: typA, TTL: 60, Data: []string{data}}}}
		a.Subnet = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, byte(100 + i), 0}), 24)
		f.Answers = append(f.Answers, a)
	}
	old := explain.Sample{Question: q, Sets: []explain.Set{other}, Rcode: "NOERROR"}
	f.Caches = []explain.Cache{
		{ID: "a", Operator: "Aland", Addr: netip.MustParseAddr("198.51.100.1"), NoVote: true, Filters: true,
			Samples: []explain.Sample{old}},
		{ID: "b", Operator: "Borland", Addr: netip.MustParseAddr("198.51.100.2"), NoVote: true,
			Samples: []explain.Sample{old}},
	}
	r := report.Make(f, nil)
	for i, why := range []string{"not counted: it filters", "not counted: answers may be changed on the network path"} {
		if c := r.Caches[i]; c.State != safeat.Current || c.Why != why || c.Answer != "A 192.0.2.79" {
			t.Errorf("%+v", c)
		}
	}
}

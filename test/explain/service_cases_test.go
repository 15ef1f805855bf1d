package explain_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// TestServiceOneOfThree checks a route with three hostnames of which one is attached: the two others have no listener.
func TestServiceOneOfThree(t *testing.T) {
	for host, link := range map[string]explain.ServiceLink{"app.example.com": "", "example.com": explain.LinkRoute,
		"www.example.org": explain.LinkRoute} {
		t.Run(host, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scenario{host: host, objects: []string{"[app.example.com]", "[app.example.com, example.com, www.example.org]"}}
				r := s.judge(t)
				if got := brokenLink(r); got != link || link != "" && textOf(r, "SVC10") == "" {
					t.Errorf("broken at %q, want %q: %s", got, link, r.Summary)
				}
			})
		})
	}
}

// brokenLink returns the first broken link of a report, or "".
func brokenLink(r *report.Report) explain.ServiceLink {
	i := slices.IndexFunc(r.Links, func(l report.LinkLine) bool { return l.State == "broken" })
	if i < 0 {
		return ""
	}
	return r.Links[i].Link
}

// TestServiceGrant checks that the advised ReferenceGrant repairs the fault.
func TestServiceGrant(t *testing.T) {
	elsewhere := []string{"[{name: web, port: 80}]", "[{name: web, namespace: other, port: 80}]",
		"name: web, namespace: shop}\nspec: {ports", "name: web, namespace: other}\nspec: {ports",
		"name: web-1, namespace: shop", "name: web-1, namespace: other"}
	synctest.Test(t, func(t *testing.T) {
		r := scenario{objects: elsewhere}.judge(t)
		i := slices.IndexFunc(r.Findings, func(f explain.Finding) bool { return f.ID == "SVC11" })
		_, grant, ok := strings.Cut(r.Findings[i].Fix, "kubectl apply: ")
		if !ok {
			t.Fatalf("%+v", r.Findings[i])
		}
		if r = (scenario{objects: append(elsewhere, appObjects(grant+"\n")...)}).judge(t); r.Verdict != report.Working {
			t.Errorf("with the grant: %s", r.Summary)
		}
	})
}

const ingress = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  tls: [{hosts: [app.example.com], secretName: cert}]
  rules: [{host: app.example.com, http: {paths: [{path: /, backend: {service: {name: web, port: {number: 80}}}}]}}]
status: {loadBalancer: {ingress: [{hostname: edge.example.net}]}}
`

// TestServiceIngress checks that an Ingress is read as a Gateway with a route.
func TestServiceIngress(t *testing.T) {
	_, rest, _ := strings.Cut(serviceObjects, "apiVersion: v1\nkind: Service")
	only := []string{strings.TrimSuffix(serviceObjects, rest), ingress + "---\napiVersion: v1\nkind: Service"}
	t.Run("healthy", scenario{objects: only}.isHealthy)
	t.Run("missing record", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := scenario{objects: only, zone: []string{"app.example.com. 300 CNAME edge.example.net.", ""}}.judge(t)
			if brokenLink(r) != explain.LinkDNS || len(r.Entries) != 1 || r.Entries[0].Value != "edge.example.net." {
				t.Errorf("%s %+v", r.Summary, r.Entries)
			}
		})
	})
}

// TestServiceCard checks what a person has to enter: the host as forms want it, the value, the TTL, who can do it, and
// when everyone sees it.
func TestServiceCard(t *testing.T) {
	missing := []string{"app.example.com. 300 CNAME edge.example.net.\n", ""}
	hosted := func(o *gather.Gatherer) {
		o.Hosted = func(zone dnsname.Name) (uint32, bool) { return 2026010101, zone.String() == "example.com." }
	}
	tests := []struct {
		scenario
		enter string
	}{
		{scenario{name: "a name", zone: missing}, "app CNAME edge.example.net. 300"},
		{scenario{name: "addresses", zone: missing, objects: []string{"{type: Hostname, value: edge.example.net}",
			`{type: IPAddress, value: 93.184.9.1}, {type: IPAddress, value: "2606:2800:9::1"}`}},
			"app A 93.184.9.1 300, app AAAA 2606:2800:9::1 300"},
		{scenario{name: "the apex", host: "example.com", objects: apex, zone: missing},
			"@ A 93.184.9.1 300, @ AAAA 2606:2800:9::1 300"},
		{scenario{name: "the apex, hosted here", host: "example.com", objects: apex, gatherer: hosted},
			"@ ALIAS edge.example.net. 300"},
		{scenario{name: "the apex with a CNAME, hosted here", host: "example.com", objects: apex, zone: []string{
			"app.example.com. 300 CNAME", "example.com. 300 CNAME"}, gatherer: hosted}, "@ ALIAS edge.example.net. 300"},
		{scenario{name: "a proof", proof: true, zone: []string{appToken, ""}}, "_token.app TXT a1b2c3d4e5 300"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := tt.judge(t)
				var got []string
				for _, e := range r.Entries {
					got = append(got, fmt.Sprintf("%s %s %s %d", e.Host, e.Type, e.Value, e.TTL))
					// The records of the zone, and its denials, have a TTL of 300; two seconds are for rounding in caches.
					if e.Actor != explain.DNSHost || e.Zone != "example.com" || !slices.Equal(e.Servers, []string{"ns1.example.com",
						"ns2.example.com"}) || e.Visible.Sub(r.At).Round(time.Second) != 302*time.Second {
						t.Errorf("%+v, at %v", e, r.At)
					}
					if e.Host == "@" && e.Type == "CNAME" {
						t.Errorf("a CNAME at the apex: %+v", e)
					}
				}
				if s := strings.Join(got, ", "); s != tt.enter {
					t.Errorf("enter %s, want %s", s, tt.enter)
				}
			})
		})
	}
}

// TestServiceDeletes checks that records that exclude the new one are to be deleted first, and those of a wildcard are
// not.
func TestServiceDeletes(t *testing.T) {
	const cname = "app.example.com. 300 CNAME edge.example.net."
	for _, tt := range []struct {
		scenario
		says string
	}{
		{scenario{name: "addresses", zone: []string{cname, "app.example.com. 300 A 93.184.8.8\napp.example.com. 300 AAAA " +
			"2606:2800:8::8"}}, "Delete these records of app.example.com: A 93.184.8.8 and AAAA 2606:2800:8::8. Enter"},
		{scenario{name: "an alias", zone: []string{"CNAME edge.example.net.", "CNAME www.example.org."},
			objects: []string{"{type: Hostname, value: edge.example.net}", "{type: IPAddress, value: 93.184.9.1}"}},
			"Delete these records of app.example.com: CNAME www.example.org. Enter"},
		{scenario{name: "one of two addresses", zone: []string{"CNAME edge.example.net.", "A 93.184.9.1, 93.184.8.8"},
			objects: []string{"{type: Hostname, value: edge.example.net}", "{type: IPAddress, value: 93.184.9.1}"}},
			"Delete these records of app.example.com: A 93.184.8.8. Enter"},
		{scenario{name: "a text of another service", proof: true, zone: []string{`TXT "a1b2c3d4e5"`, `TXT "v=spf1 -all"`}},
			"Enter"},
		{scenario{name: "a proof at the hostname itself", proof: true, zone: []string{"CNAME edge.example.net.",
			"A 93.184.9.1"},
			input:   func(in *gather.ServiceInput) { in.Proof.Owner = dnsname.MustParse("app.example.com") },
			objects: []string{"{type: Hostname, value: edge.example.net}", "{type: IPAddress, value: 93.184.9.1}"}}, "Enter"},
		{scenario{name: "a wildcard", zone: []string{cname, "*.example.com. 300 A 93.184.8.8", appToken, ""}}, "Enter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if r := tt.judge(t); len(r.Do) == 0 || !strings.HasPrefix(r.Do[0].Text, tt.says) {
					t.Errorf("%+v, want %s", r.Do, tt.says)
				}
			})
		})
	}
}

// TestServiceAlias checks that an apex whose addresses come from an ALIAS of this server works without a notice.
func TestServiceAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenario{host: "example.com", objects: apex, zone: []string{"app.example.com. 300 CNAME edge.example.net.",
			"example.com. 300 A 93.184.9.1\nexample.com. 300 AAAA 2606:2800:9::1"}}
		s.gatherer = func(g *gather.Gatherer) {
			g.Hosted = func(dnsname.Name) (uint32, bool) { return 2026010101, true }
		}
		if r := s.judge(t); r.Verdict != report.Working || textOf(r, "SVC23") != "" {
			t.Errorf("%s %s", r.Summary, textOf(r, "SVC23"))
		}
	})
}

// counting counts the queries to each server.
type counting struct {
	resolve.Exchanger
	mu    sync.Mutex // guards asked
	asked map[netip.Addr]int
}

func (c *counting) Exchange(ctx context.Context, to resolve.Server, q *dns.Msg) (*dns.Msg, error) {
	c.mu.Lock()
	c.asked[to.Addr.Addr()]++
	c.mu.Unlock()
	return c.Exchanger.Exchange(ctx, to, q)
}

// TestServiceAsksNoResolver checks that no resolver is asked for a name that the authority does not have, and that a
// resolver that remembers a proof as missing does not matter.
func TestServiceAsksNoResolver(t *testing.T) {
	for _, s := range []scenario{
		{name: "no record", zone: []string{"app.example.com. 300 CNAME edge.example.net.\n", ""}, link: explain.LinkDNS},
		{name: "no proof", proof: true, zone: []string{appToken, ""}, link: explain.LinkOwnership},
		{name: "a proof that a resolver denies", proof: true},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := s.internet(t)
				network.MustServer("9.9.9.9", "resolve 198.41.0.4\ndeny _token.app.example.com. 3600 * example.com. 1\n")
				c := &counting{Exchanger: network, asked: map[netip.Addr]int{}}
				resolver := netip.MustParseAddr("9.9.9.9")
				s.gatherer = func(g *gather.Gatherer) {
					g.Exchanger = c
					g.Resolvers = []resolvers.Resolver{{ID: "nine", V4: []netip.Addr{resolver}, Vote: true}}
				}
				r := replayed(t, s.gather(t, network))
				if c.asked[resolver] != 0 || len(c.asked) == 0 {
					t.Errorf("queries: %v", c.asked)
				}
				if brokenLink(r) != s.link {
					t.Errorf("%s", r.Summary)
				}
			})
		})
	}
}

// TestServiceSoon checks a record that was missing five minutes ago, in a zone with a negative TTL of one hour.
func TestServiceSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenario{zone: []string{"1209600 300", "1209600 3600"}, options: func(o *gather.Options) {
			o.Past = []explain.Past{{Name: dnsname.MustParse("app.example.com"), At: time.Now().Add(-5 * time.Minute),
				Absent: []rr.Type{rr.TypeA, rr.TypeAAAA}}}
		}}
		r := s.judge(t)
		// Two seconds are for rounding in caches.
		late := r.SafeAt.Sub(r.At) - time.Hour - 2*time.Second
		if r.Verdict != report.Soon || late.Abs() > time.Second || r.Exit(explain.Error) != 1 {
			t.Errorf("%s, safe at %v after the check, exit status %d", r.Summary, r.SafeAt.Sub(r.At), r.Exit(explain.Error))
		}
	})
}

// TestServiceProofRemoved removes the proof of a verified name, and checks it every nine hours with the memory of the
// checks before.
func TestServiceProofRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var past []explain.Past
		gone := []string{appToken, ""}
		for i, step := range []struct {
			zone []string
			link explain.ServiceLink
			says string
		}{{nil, "", ""}, {gone, "", "counts as verified until"}, {gone, "", "counts as verified until"},
			{gone, "", "counts as verified until"}, {gone, explain.LinkOwnership, "no longer verified"}, {nil, "", ""}} {
			s := scenario{proof: true, zone: step.zone, options: func(o *gather.Options) { o.Past = past }}
			f := s.gather(t, s.internet(t))
			r := replayed(t, f)
			if brokenLink(r) != step.link || !strings.Contains(textOf(r, "OWN05"), step.says) {
				t.Errorf("check %d: broken at %q, want %q: %s", i, brokenLink(r), step.link, textOf(r, "OWN05"))
			}
			past = explain.Remember(past, explain.PastOf(f))
			time.Sleep(9 * time.Hour)
		}
	})
}

// TestServiceOtherProof checks that what is known about one proof does not count for another one.
func TestServiceOtherProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenario{proof: true}
		past := []explain.Past{explain.PastOf(s.gather(t, s.internet(t)))}
		s = scenario{ns: []string{"ns.example.net"}, options: func(o *gather.Options) { o.Past = past }}
		if r := s.judge(t); brokenLink(r) != explain.LinkOwnership || textOf(r, "OWN05") != "" {
			t.Errorf("%s", r.Summary)
		}
	})
}

// TestServiceProofs checks that each kind of proof verifies a name, and that one of several is enough.
func TestServiceProofs(t *testing.T) {
	served := func(w *website) { w.plain = page{status: 200, body: "a1b2c3d4e5\n"} }
	for _, s := range []scenario{
		{name: "record", proof: true},
		{name: "record behind an alias", proof: true, zone: []string{appToken,
			`_token.app.example.com. 300 CNAME proofs.example.net.`},
			target: []string{"edge.example.net. 60 A ", "proofs.example.net. 60 TXT \"a1b2c3d4e5\"\nedge.example.net. 60 A "}},
		{name: "text at a URL", token: pageToken, web: served},
		{name: "delegation", ns: []string{"ns1.example.com", "NS2.example.com", "ns3.example.com"}},
		{name: "one of three", proof: true, zone: []string{appToken, ""}, token: pageToken,
			web: func(w *website) { w.plain = page{status: 404} }, ns: []string{"ns1.example.com", "ns2.example.com"}},
	} {
		t.Run(s.name, func(t *testing.T) {
			s.isHealthy(t)
			synctest.Test(t, func(t *testing.T) {
				if o := explain.OwnershipOf(s.gather(t, s.internet(t))); !o.Verified || o.Seen.IsZero() {
					t.Errorf("%+v", o)
				}
			})
		})
	}
}

// TestServicePrivateAddress checks that the address of a hostname cannot lead requests into the own network, and that
// what could not be asked is unknown.
func TestServicePrivateAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenario{token: pageToken, objects: append(appObjects(pendingChallenge),
			"status:\n  addresses: [{type: Hostname", httpListener,
			"{type: Hostname, value: edge.example.net}", "{type: IPAddress, value: 10.1.2.3}"),
			zone: []string{"CNAME edge.example.net.", "A 10.1.2.3"}}
		var asked []string
		s.gatherer = func(g *gather.Gatherer) {
			g.Connect = gather.PublicOnly(func(_ context.Context, _, address string) (net.Conn, error) {
				asked = append(asked, address)
				return nil, net.ErrClosed
			}, specialaddr.Table{})
		}
		f := s.gather(t, s.internet(t))
		if len(asked) > 0 || len(f.Service.Connections) == 0 || len(f.Service.Tokens) == 0 || len(f.Service.Challenges) == 0 {
			t.Errorf("connections to %v: %+v", asked, f.Service)
		}
		r := replayed(t, f)
		if textOf(r, "OWN04")+textOf(r, "TLS08")+textOf(r, "HTTP01") != "" || textOf(r, "SVC31") == "" {
			t.Errorf("%s: %+v", r.Summary, r.Findings)
		}
	})
}

// TestServiceCAASilent checks servers that do not reply to the question for CAA.
func TestServiceCAASilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scenario{zone: []string{"zone example.com.", "fault timeout example.com. CAA\nzone example.com."}}.judge(t)
		if brokenLink(r) != explain.LinkCertificate || textOf(r, "TLS07") == "" {
			t.Errorf("%s", r.Summary)
		}
	})
}

// TestServiceFormats checks that every format has the broken link and the record to enter.
func TestServiceFormats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := scenario{zone: []string{"app.example.com. 300 CNAME edge.example.net.\n", ""}}.judge(t)
		for format, want := range map[string][]string{
			"text": {"Not working: the first broken link is the DNS.", "DNS          broken", "backend      not judged yet",
				"example.com  app   CNAME  edge.example.net.  300", "Who: the person who manages example.com",
				"everyone sees it by 00:05:02 UTC, in 5 min"},
			"markdown": {"| DNS | broken |", "| backend | not judged yet |",
				"| example.com | app | CNAME | edge.example.net. | 300 |",
				"everyone sees it by 00:05:02 UTC"},
			"json": {`"link": "DNS"`, `"state": "broken"`, `"host": "app"`, `"visibleBy": "2000-01-01T00:05:02`},
			"junit": {`name="nameplane service app.example.com"`, `name="SVC20 app.example.com"`,
				"host app, type CNAME"},
			report.Calendar: {"BEGIN:VCALENDAR", "app.example.com"},
		} {
			var b bytes.Buffer
			if err := r.Write(&b, format, report.TextOptions{}); err != nil {
				t.Errorf("%s: %v", format, err)
			}
			for _, w := range want {
				if !strings.Contains(b.String(), w) {
					t.Errorf("%s has no %q:\n%s", format, w, b.String())
				}
			}
		}
		if r.Exit(explain.Error) != 2 {
			t.Errorf("exit status %d", r.Exit(explain.Error))
		}
	})
}

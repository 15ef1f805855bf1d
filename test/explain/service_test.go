package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
)

// TestServiceFaults checks that the first broken link of every single fault is named, and nothing is reported as wrong
// after it.
func TestServiceFaults(t *testing.T) {
	all := scenarios()
	right := 0
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := s.judge(t)
				var broken explain.ServiceLink
				var words string
				for _, l := range r.Links {
					if l.State == "broken" {
						broken, words = l.Link, l.Words
						break
					}
				}
				var found []string
				for _, f := range r.Findings {
					if f.Status == explain.Fail && f.Severity.AtLeast(explain.Error) {
						found = append(found, f.ID)
						if f.ID != s.want && f.ID != s.also {
							t.Errorf("%s is found, too: %s", f.ID, f.Words)
						}
						if s.link != "" && explain.ServiceLinkOf(f.ID).After(s.link) {
							t.Errorf("%s after the broken link: %s", f.ID, f.Words)
						}
					}
				}
				if s.link == "" && len(found) == 0 && textOf(r, s.want) != "" {
					found = []string{s.want} // it breaks no link
				}
				if broken != s.link || !slices.Contains(found, s.want) || !strings.Contains(textOf(r, s.want), s.words) {
					t.Errorf("broken at %q by %v: %s; want %s at %s with %q", broken, found, words, s.want, s.link, s.words)
					return
				}
				right++
			})
		})
	}
	t.Logf("%d of %d", right, len(all))
}

// textOf returns the words of the failures of a check.
func textOf(r *report.Report, id string) (out string) {
	for _, f := range r.Findings {
		if f.ID == id && f.Status == explain.Fail {
			out += f.Words + " "
		}
	}
	return out
}

// TestServiceHealthy checks 200 different healthy services: every combination of four zones, seven sets of objects and
// five websites, and some of them with a proof of ownership. None has a finding above notice.
func TestServiceHealthy(t *testing.T) {
	const cname = "app.example.com. 300 CNAME edge.example.net."
	zones := [][]string{
		nil,
		{"CNAME edge.example.net.", "CNAME Edge.Example.NET."},
		{cname, "app.example.com. 300 CNAME www.example.com.\nwww.example.com. 300 CNAME edge.example.net."},
		{cname, "app.example.com. 300 A 93.184.9.1\napp.example.com. 300 AAAA 2606:2800:9::1"},
	}
	objects := [][]string{
		nil,
		{`hostname: "*.example.com"`, "hostname: app.example.com"},
		{`    hostname: "*.example.com"` + "\n", ""},
		{"{from: All}", "{from: Selector, selector: {matchLabels: {kubernetes.io/metadata.name: shop}}}"},
		{"hostnames: [app.example.com]", "hostnames: [app.example.com, other.example.org]"},
		{"{type: Hostname, value: edge.example.net}",
			`{type: IPAddress, value: 93.184.9.1}, {type: IPAddress, value: "2606:2800:9::1"}`},
		{"name: edge, namespace: infra, generation: 2}", "name: edge, namespace: infra, generation: 2, " +
			"annotations: {external-dns.alpha.kubernetes.io/target: edge.example.net}}"},
	}
	websites := []func(*website){
		nil,
		func(w *website) { w.status, w.location, w.body = 302, "https://app.example.com/login", "" },
		func(w *website) { w.status, w.body = 401, "" },
		func(w *website) { w.names = []string{"app.example.com"} },
		func(w *website) { w.until = 20 * 24 * time.Hour },
	}
	for i := range 200 {
		s := scenario{name: fmt.Sprint(i), zone: zones[i%4], objects: objects[i/4%7], web: websites[i/28%5], proof: i >= 140}
		t.Run(s.name, s.isHealthy)
	}
}

// TestServiceUnusual checks healthy services that cannot be combined with others.
func TestServiceUnusual(t *testing.T) {
	for _, s := range []scenario{
		{name: "a wildcard record", zone: []string{"app.example.com. 300 CNAME", "*.example.com. 300 CNAME",
			`_token.app.example.com. 300 TXT "a1b2c3d4e5"`, ""}}, // a name below would hide the wildcard
		{name: "a reason that is not in the specification", objects: []string{"reason: Accepted}]}", "reason: Handled}]}"}},
		{name: "a backend of another namespace", objects: []string{"[{name: web, port: 80}]",
			"[{name: web, namespace: other, port: 80}]", "name: web, namespace: shop}\nspec: {ports",
			"name: web, namespace: other}\nspec: {ports", "name: web-1, namespace: shop", "name: web-1, namespace: other",
			"apiVersion: v1\nkind: Service", `apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: shop, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: shop}]
  to: [{group: "", kind: Service}]
---
apiVersion: v1
kind: Service`}},
		{name: "a wildcard hostname", host: "*.example.com", objects: []string{"hostnames: [app.example.com]",
			`hostnames: ["*.example.com"]`}, zone: []string{"app.example.com. 300 CNAME", "*.example.com. 300 CNAME"}},
		{name: "the apex", host: "example.com", objects: []string{`hostname: "*.example.com"`, "hostname: example.com",
			"hostnames: [app.example.com]", "hostnames: [example.com]"},
			zone: []string{"app.example.com. 300 CNAME edge.example.net.",
				"example.com. 300 A 93.184.9.1\nexample.com. 300 AAAA 2606:2800:9::1"}},
	} {
		t.Run(s.name, s.isHealthy)
	}
}

// isHealthy checks that a service works and has no finding above notice.
func (s scenario) isHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := s.judge(t)
		for _, f := range r.Findings {
			if f.Status == explain.Fail && f.Severity.AtLeast(explain.Warning) {
				t.Errorf("%s %s: %s", f.Severity, f.ID, f.Words)
			}
		}
		if r.Verdict != report.Working {
			t.Errorf("%s", r.Summary)
		}
	})
}

package gateway

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/test/server"
)

// fault is one thing that breaks the service.
type fault struct {
	name   string
	inject func(*testing.T, *rig)
	repair func(*testing.T, *rig)
	args   []string // of the program; nil: those of the service

	want  outcome
	words []string // parts of the words of failures
	later string   // part of the words of what cannot be judged before the broken link is repaired
}

// outcome is what a report says.
type outcome struct {
	verdict report.Verdict
	link    explain.ServiceLink // the broken one; empty: none
	failed  string              // the IDs of all failures, notices included
}

// app are the arguments for the service.
var app = []string{"-f", "-", "app.example.com"}

// healthy is the outcome of a service without any finding.
var healthy = outcome{verdict: report.Working}

func outcomeOf(r *report.Report) outcome {
	out := outcome{verdict: r.Verdict}
	for _, l := range r.Links {
		if l.State == "broken" && out.link == "" {
			out.link = l.Link
		}
	}
	var ids []string
	for _, f := range r.Findings {
		if f.Status == explain.Fail && !slices.Contains(ids, f.ID) {
			ids = append(ids, f.ID)
		}
	}
	slices.Sort(ids)
	out.failed = strings.Join(ids, " ")
	return out
}

// until runs the program until its report has an outcome. Traefik needs a moment to read objects, so the outcome counts
// if a second report has it too.
func (r *rig) until(t *testing.T, want outcome, args []string) *report.Report {
	t.Helper()
	same := 0
	for deadline := time.Now().Add(server.Patience); ; time.Sleep(200 * time.Millisecond) {
		found := r.check(t, args...)
		if got := outcomeOf(found); got == want {
			same++
		} else if same = 0; time.Now().After(deadline) {
			t.Fatalf("got %+v, want %+v\n%s\n%s\n%s", got, want, found.Summary, words(found, explain.Fail), r.traefik.LogTail())
		}
		if same == 2 {
			return found
		}
	}
}

// words returns the findings of a report with a status, one per line.
func words(r *report.Report, status explain.Status) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Status == status {
			fmt.Fprintf(&b, "%s %s: %s\n", f.Severity, f.ID, f.Words)
		}
	}
	return b.String()
}

// TestFaults injects one fault after the other. The program names the broken link, with the words of
// Traefik where it has some, judges nothing after it, and reports a healthy service after the repair.
func TestFaults(t *testing.T) {
	r := start(t)
	r.until(t, healthy, app)
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			args := f.args
			if args == nil {
				args = app
			}
			repair := sync.OnceFunc(func() { f.repair(t, r) })
			defer repair() // the next case needs a healthy service
			f.inject(t, r)
			found := r.until(t, f.want, args)
			text := words(found, explain.Fail)
			t.Logf("%s\n%s", found.Summary, text)
			for _, w := range f.words {
				if !strings.Contains(text, w) {
					t.Errorf("no failure says %q:\n%s", w, text)
				}
			}
			if unknown := words(found, explain.NotKnown); !strings.Contains(unknown, f.later) {
				t.Errorf("%q is not among what cannot be judged:\n%s", f.later, unknown)
			}
			for _, l := range found.Links {
				if f.want.link != "" && l.Link.After(f.want.link) && l.Link != explain.LinkOwnership &&
					l.State != "not judged yet" {
					t.Errorf("the link %s is %q, though the link %s is broken", l.Link, l.State, f.want.link)
				}
			}
			repair()
			r.until(t, healthy, args)
		})
	}
}

// replace returns a function that applies the objects with some texts replaced.
func replace(pairs ...string) func(*testing.T, *rig) {
	return func(t *testing.T, r *rig) {
		t.Helper()
		r.apply(t, pairs...)
	}
}

func faults() []fault {
	restore := replace()
	const noPort = `
  - name: extra
    port: 8443
    protocol: HTTPS
    hostname: "*.example.com"
    tls: {certificateRefs: [{name: cert}]}
    allowedRoutes: {namespaces: {from: All}}
  - name: plain`
	return []fault{
		{name: "no endpoints", repair: restore,
			inject: replace("endpoints: [{addresses: ["+backend+"], conditions: {ready: true}}]", "endpoints: []"),
			want:   outcome{report.NotWorking, explain.LinkBackend, "HTTP02 HTTP06"},
			words:  []string{"answers 503 for app.example.com: DNS is right, but no backend is ready", "0 of 0"}},
		{name: "no ready endpoint", repair: restore, inject: replace("{ready: true}", "{ready: false}"),
			want:  outcome{report.NotWorking, explain.LinkBackend, "HTTP02 HTTP06"},
			words: []string{"DNS is right, but no backend is ready", "0 of 1"}},
		{name: "no EndpointSlice", repair: restore,
			inject: func(t *testing.T, r *rig) { r.remove(t, "discovery.k8s.io/v1", "EndpointSlice", "shop", "web-1") },
			want:   outcome{report.NotWorking, explain.LinkBackend, "HTTP02 SVC11"},
			words: []string{"answers 500 for app.example.com: DNS is right, but no backend is ready",
				"endpointslices not found (BackendNotFound)"}},
		{name: "certificate for another name",
			inject: func(t *testing.T, r *rig) { r.certify(t, "www.example.org") },
			repair: func(t *testing.T, r *rig) { r.certify(t, "*.example.com") },
			want:   outcome{report.NotWorking, explain.LinkCertificate, "TLS02"},
			words:  []string{"TRAEFIK DEFAULT CERT"}},
		{name: "default certificate of the operator",
			inject: func(t *testing.T, r *rig) {
				r.certify(t, "www.example.org")
				p := r.issuer.forNames(t, "www.example.net")
				r.write(t, "default.crt", p.cert)
				r.write(t, "default.key", p.key)
				r.write(t, "dynamic.yaml", fmt.Appendf(nil, "tls: {stores: {default: {defaultCertificate: {certFile: %q, "+
					"keyFile: %q}}}}\n", r.file("default.crt"), r.file("default.key")))
				r.startTraefik(t, "", "--providers.file.filename="+r.file("dynamic.yaml"))
			},
			repair: func(t *testing.T, r *rig) { r.certify(t, "*.example.com") },
			want:   outcome{report.NotWorking, explain.LinkCertificate, "TLS01"},
			words:  []string{"is valid for www.example.net, and not for app.example.com"}},
		{name: "no certificate",
			inject: func(t *testing.T, r *rig) {
				r.startTraefik(t, "") // with its own default certificate
				r.remove(t, "v1", "Secret", "infra", "cert")
			},
			repair: func(t *testing.T, r *rig) { r.certify(t, "*.example.com") },
			want:   outcome{report.NotWorking, explain.LinkListener, "SVC02 SVC05 SVC06"},
			words:  []string{"(InvalidCertificateRef)"}, later: "TRAEFIK DEFAULT CERT"},
		{name: "host not routed", args: []string{"other.example.com", "--target", "edge.example.net"},
			inject: restore, repair: replace("hostnames: [app.example.com]", "hostnames: [app.example.com, other.example.com]"),
			want:  outcome{report.NotWorking, explain.LinkBackend, "HTTP03"},
			words: []string{"answers 404 for other.example.com: it has no route for this hostname"}},
		{name: "no class", repair: restore,
			inject: func(t *testing.T, r *rig) {
				r.remove(t, "gateway.networking.k8s.io/v1", "GatewayClass", "", "traefik")
			},
			want:  outcome{report.NotWorking, explain.LinkClass, "SVC01"},
			words: []string{"names the GatewayClass traefik, which does not exist"}, later: "TRAEFIK DEFAULT CERT"},
		{name: "another listener without an entry point", repair: restore,
			inject: replace("\n  - name: plain", noPort),
			want:   outcome{report.Working, "", "SVC02"}, words: []string{"(ListenersNotValid)"}},
		{name: "one of two listeners without an entry point", repair: restore,
			inject: replace("\n  - name: plain", noPort, "[{name: edge, namespace: infra, sectionName: secure}]",
				"[{name: edge, namespace: infra, sectionName: secure}, {name: edge, namespace: infra, sectionName: extra}]"),
			want: outcome{report.Working, "", "SVC02 SVC05"}, words: []string{"no matching entryPoint for port 8443"}},
		{name: "the listener without an entry point", repair: restore,
			inject: replace("\n  - name: plain", noPort, "sectionName: secure", "sectionName: extra"),
			want:   outcome{report.NotWorking, explain.LinkListener, "SVC02 SVC05"},
			words:  []string{"no matching entryPoint for port 8443"}},
		{name: "IPv6 is dead",
			inject: func(t *testing.T, r *rig) { r.startTraefik(t, gateway4) },
			repair: func(t *testing.T, r *rig) { r.startTraefik(t, "") },
			want:   outcome{report.Working, explain.LinkBackend, "HTTP05"},
			words:  []string{"works over IPv4, but not over IPv6: [" + gateway6 + "]"}},
	}
}

package hostname

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
)

// conditions returns the conditions of a status as text.
func conditions(s status) map[string]string {
	out := map[string]string{}
	for _, c := range s.Conditions {
		out[c.Type] = fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
	return out
}

// fine are the conditions of the healthy service, which has no TLS and no proof of ownership.
var fine = map[string]string{"RouteReady": "True Working", "DNSReady": "True Working", "DNSSafe": "True Working",
	"TLSReady": "Unknown NotChecked", "BackendReady": "True Working", "OwnershipVerified": "Unknown NotChecked",
	"Current": "True Checked"}

func TestWorking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		r.run(t)
		time.Sleep(time.Minute)
		s := r.status(t)
		if s.Verdict != "working" || s.Hostname != "www.example.test" || s.FirstBroken != "" || s.ObservedGeneration != 2 ||
			!slices.Equal(s.Targets, []string{"93.184.20.1"}) {
			t.Errorf("%+v", s)
		}
		if diff := cmp.Diff(fine, conditions(s)); diff != "" {
			t.Errorf("conditions (-want +got)\n%s\n%+v", diff, s.Findings)
		}
		x := r.reports.get(types.NamespacedName{Namespace: "shop", Name: "www.example.test"})
		if len(x.OwnerReferences) != 1 || x.OwnerReferences[0].UID != "r" || x.OwnerReferences[0].Kind != "HTTPRoute" ||
			x.OwnerReferences[0].APIVersion != "gateway.networking.k8s.io/v1" {
			t.Errorf("owners %+v", x.OwnerReferences)
		}
		if got := r.events.list(); len(got) != 1 || !strings.HasPrefix(got[0],
			"Normal HostnameWorking Check www.example.test: Working: www.example.test") {
			t.Errorf("events %q", got)
		}
		time.Sleep(time.Hour)
		if got := len(r.checks()); got < 13 || got > 16 { // every 4.5 to 5 minutes
			t.Errorf("%d checks in an hour", got)
		}
		if got := r.status(t); !got.LastChecked.After(s.LastChecked.Add(50*time.Minute)) || len(r.events.list()) != 1 {
			t.Errorf("checked at %v, %v", got.LastChecked, r.events.list())
		}
	})
}

// TestBroken checks the times between checks while a hostname does not work, and that a repair is seen within them. The
// condition changes once.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		both(r.net, "drop www.example.test.")
		r.run(t)
		time.Sleep(5 * time.Minute)
		s := r.status(t)
		if s.Verdict != "not working" || s.FirstBroken != "DNS" || s.Findings[0].ID != "SVC20" ||
			!strings.Contains(s.Findings[0].Fix, "host www, type A, value 93.184.20.1, TTL 300") ||
			s.Findings[0].Actor != "dns host" || s.Findings[0].VisibleBy == nil {
			t.Errorf("%+v", s)
		}
		want := map[string]string{"RouteReady": "True Working", "DNSReady": "False SVC20", "DNSSafe": "Unknown NotJudged",
			"TLSReady": "Unknown NotJudged", "BackendReady": "Unknown NotJudged",
			"OwnershipVerified": "Unknown NotChecked", "Current": "True Checked"}
		if diff := cmp.Diff(want, conditions(s)); diff != "" {
			t.Errorf("conditions (-want +got)\n%s", diff)
		}
		early := len(r.checks())
		if early < 29 || early > 34 { // every 9 to 10 seconds
			t.Errorf("%d checks in 5 minutes", early)
		}
		if n := r.writes.Load(); n > 6 { // the result is the same, so that only lastChecked is written
			t.Errorf("%d writes in 5 minutes", n)
		}
		time.Sleep(5 * time.Minute)
		before := len(r.checks())
		time.Sleep(time.Hour) // nothing changes
		if got := len(r.checks()) - before; got < 60 || got > 70 {
			t.Errorf("%d checks in an hour", got)
		}
		since := meta.FindStatusCondition(r.status(t).Conditions, v1alpha1.DNSReady).LastTransitionTime
		if !since.Equal(&meta.FindStatusCondition(s.Conditions, v1alpha1.DNSReady).LastTransitionTime) {
			t.Error("the time of a condition changed without its status")
		}
		both(r.net, "www.example.test. 300 A 93.184.20.1")
		time.Sleep(time.Minute)
		s = r.status(t)
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.DNSReady)
		if s.Verdict != "working soon" || c.Status != "True" || !c.LastTransitionTime.After(since.Time) {
			t.Errorf("after the repair: %+v", s)
		}
		if got := r.events.list(); len(got) != 2 {
			t.Errorf("events %q", got)
		}
	})
}

// TestSafe checks that a record that was missing is not safe before its negative TTL of half an hour has passed, and
// that the report changes at that time. A controller that starts meanwhile knows the time from the report.
func TestSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		both(r.net, "drop www.example.test.")
		r.run(t)
		time.Sleep(time.Minute)
		both(r.net, "www.example.test. 300 A 93.184.20.1")
		repaired := time.Now()
		time.Sleep(time.Minute)
		s := r.status(t)
		if conditions(s)["DNSSafe"] != "False OldAnswers" || s.Verdict != "working soon" || s.SafeAt == nil {
			t.Fatalf("%+v", s)
		}
		wait := s.SafeAt.Sub(repaired)
		if wait < 30*time.Minute || wait > 30*time.Minute+15*time.Second {
			t.Errorf("safe after %v", wait)
		}
		again := newRig(t, healthy)
		again.net = r.net
		again.reports.have[types.NamespacedName{Namespace: "shop", Name: "www.example.test"}] = &v1alpha1.HostnameReport{
			Status: s}
		again.index.settle()
		objects, owners := again.index.subset(Key{"shop", "www.example.test"})
		got, err := again.check(t.Context(), Key{"shop", "www.example.test"}, objects, s, nil)
		if err != nil || len(owners) != 1 || conditions(got.status)["DNSSafe"] != "False OldAnswers" ||
			!got.status.SafeAt.Equal(s.SafeAt) {
			t.Errorf("after a restart: %+v, %v", got.status, err)
		}
		time.Sleep(time.Until(s.SafeAt.Time) + 10*time.Second)
		if s := r.status(t); s.Verdict != "working" || conditions(s)["DNSSafe"] != "True Working" {
			t.Errorf("then: %+v", s)
		}
	})
}

// TestServersAway checks that results stay while the DNS servers do not answer, and that the report says how old they
// are.
func TestServersAway(t *testing.T) {
	for _, tt := range []struct{ name, server string }{{"zone", "93.184.10.3 93.184.10.4"}, {"root", "93.184.10.1"}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, healthy)
				r.run(t)
				time.Sleep(time.Minute)
				before := r.status(t)
				for _, s := range strings.Fields(tt.server) {
					r.net.MustServer(s, "fault timeout")
				}
				time.Sleep(20 * time.Minute)
				s := r.status(t)
				want := map[string]string{"Current": "False NoVerdict"}
				for k, v := range fine {
					if k != "Current" {
						want[k] = v
					}
				}
				if diff := cmp.Diff(want, conditions(s)); diff != "" || s.Verdict != "working" ||
					s.LastChecked.After(before.LastChecked.Add(6*time.Minute)) {
					t.Errorf("%+v (-want +got)\n%s", s, diff)
				}
				for _, s := range strings.Fields(tt.server) {
					r.net.MustServer(s, "heal")
				}
				time.Sleep(2 * time.Minute)
				if diff := cmp.Diff(fine, conditions(r.status(t))); diff != "" {
					t.Errorf("when they are back (-want +got)\n%s", diff)
				}
				if got := r.events.list(); len(got) != 3 {
					t.Errorf("events %q", got)
				}
			})
		})
	}
}

// TestNewTargets checks that old results are not kept for other objects: with another target they would be wrong.
func TestNewTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		r.run(t)
		time.Sleep(time.Minute)
		both(r.net, "fault timeout")
		r.put(t, edited("93.184.20.1", "93.184.20.2"))
		time.Sleep(5 * time.Minute)
		if s := r.status(t); s.Verdict == "working" || conditions(s)["DNSReady"] == "True Working" {
			t.Errorf("%+v", s)
		}
	})
}

// TestChange checks that a change of an object is seen at once, and that the verdict names the first broken link.
func TestChange(t *testing.T) {
	for _, tt := range []struct {
		name, objects, broken, reason string
	}{
		{"class", edited("gatewayClassName: edge", "gatewayClassName: none"), "class", "False SVC01"},
		{"class not accepted", edited(`metadata: {name: edge}
spec: {controllerName: example.org/edge}
status: {conditions: [{type: Accepted, status: "True", reason: Accepted}]}`, `metadata: {name: edge}
status: {conditions: [{type: Accepted, status: "False", reason: InvalidParameters}]}`), "class", "False SVC01"},
		{"no address", edited("addresses: [{type: IPAddress, value: 93.184.20.1}]", "addresses: []"), "gateway",
			"False SVC03"},
		{"no controller", edited("parents:\n  - parentRef: {name: edge", "parents:\n  - parentRef: {name: other"), "route",
			"False SVC07"},
		{"parent", edited("parentRefs: [{name: edge", "parentRefs: [{name: egde"), "route", "False SVC07"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, healthy)
				r.run(t)
				time.Sleep(time.Minute)
				r.put(t, tt.objects)
				time.Sleep(2 * time.Second)
				s := r.status(t)
				if s.FirstBroken != tt.broken || conditions(s)["RouteReady"] != tt.reason ||
					conditions(s)["DNSReady"] != "Unknown NotJudged" {
					t.Errorf("%s: %v", s.Summary, conditions(s))
				}
				r.put(t, healthy)
				time.Sleep(2 * time.Second)
				if diff := cmp.Diff(fine, conditions(r.status(t))); diff != "" {
					t.Errorf("repaired (-want +got)\n%s", diff)
				}
			})
		})
	}
}

// TestGone checks that the report and the metrics of a hostname go with its route.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		for _, c := range r.metrics.collectors() {
			r.options.Metrics.MustRegister(c)
		}
		r.run(t)
		time.Sleep(time.Minute)
		count := func() (n int) {
			families, err := r.options.Metrics.(*prometheus.Registry).Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				n += len(f.GetMetric())
			}
			return n
		}
		if got := count(); got != 5 { // the conditions that are not Unknown
			t.Errorf("%d metrics", got)
		}
		r.index.remove(objectID{"HTTPRoute", "shop", "web"})
		time.Sleep(time.Second)
		synctest.Wait()
		var list v1alpha1.HostnameReportList
		if err := r.client.List(t.Context(), &list); err != nil || len(list.Items) != 0 || count() != 0 ||
			len(r.states) != 0 || len(r.schedule.slots) != 0 {
			t.Errorf("%d reports, %d metrics (%v)", len(list.Items), count(), err)
		}
	})
}

// TestHostile checks hostnames that cannot be asked for, and texts that servers send.
func TestHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, edited("hostnames: [www.example.test]", "hostnames: [192.0.2.7]", `hostname: "*.example.test", `, ""))
		r.run(t)
		time.Sleep(10 * time.Second)
		x := &v1alpha1.HostnameReport{}
		if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "192.0.2.7"}, x); err != nil {
			t.Fatal(err)
		}
		if x.Status.Verdict != "not working" || conditions(x.Status)["RouteReady"] != "False SVC16" {
			t.Errorf("%+v", x.Status)
		}
		if n := len(r.net.History()); n > 0 {
			t.Errorf("%d queries about an address", n)
		}
	})
	for text, want := range map[string]string{"a\x1b[2Jb\nc\u202ed": "a?[2Jb?c?d", "ab\xff": "ab?",
		"0123456789ü": "0123456…"} {
		if got := clean(text, 10); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestPace checks that all checks together send at most ten queries per second to each server.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		r.options.Gatherer.Options.Pace.Rate = 10
		var hosts []string
		for i := range 16 {
			hosts = append(hosts, fmt.Sprintf("h%d.example.test", i))
		}
		r.put(t, edited("hostnames: [www.example.test]", "hostnames: ["+strings.Join(hosts, ",")+"]"))
		r.run(t)
		time.Sleep(10 * time.Minute)
		sent := map[string][]time.Duration{}
		for _, q := range r.net.History() {
			at := q.Server.String()
			sent[at] = append(sent[at], q.At)
			if n := len(sent[at]); n > 10 && sent[at][n-1]-sent[at][n-11] < time.Second {
				t.Fatalf("%s got 11 queries in %v", at, sent[at][n-1]-sent[at][n-11])
			}
		}
		var list v1alpha1.HostnameReportList
		if err := r.client.List(t.Context(), &list); err != nil || len(list.Items) != 16 || len(sent) != 4 {
			t.Errorf("%d reports, %d servers (%v)", len(list.Items), len(sent), err)
		}
		for _, x := range list.Items {
			if x.Status.FirstBroken != "DNS" {
				t.Errorf("%s: %s", x.Name, x.Status.Summary)
			}
		}
	})
}

// TestOwner checks that the condition of a Domain is that of its hostnames, and breaks no link.
func TestOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		r.options.Owner = func(_ context.Context, namespace, host string) *metav1.Condition {
			return &metav1.Condition{Status: metav1.ConditionFalse, Reason: "ProofGone", Message: namespace + " " + host}
		}
		r.run(t)
		time.Sleep(time.Minute)
		s := r.status(t)
		c := meta.FindStatusCondition(s.Conditions, v1alpha1.OwnershipVerified)
		if c.Status != metav1.ConditionFalse || c.Reason != "ProofGone" || c.Message != "shop www.example.test" ||
			s.Verdict != "working" {
			t.Errorf("%+v", s)
		}
	})
}

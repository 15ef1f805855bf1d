package domain

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
)

// rig is a controller with a fake API server, a simulated internet and a registry.
type rig struct {
	*Controller
	net    *simnet.Net
	client client.Client
	page   string   // the body at every URL
	ns     []string // the nameservers of the DNSZone; nil: there is none
	state  registry.State
}

var zoneServers = []string{"93.184.10.3", "93.184.11.4"}

func newRig(t *testing.T, name string) *rig {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	d := &v1alpha.Domain{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d", UID: "u-1",
		CreationTimestamp: metav1.Now()}, Spec: v1alpha.DomainSpec{DomainName: name}}
	r := &rig{net: internet(), state: registry.Registered, page: "nothing",
		client: fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(d).WithObjects(d).Build()}
	g := gather.Gatherer{Exchanger: r.net, Connect: r.connect, Anchors: []secure.Anchor{}, Registry: r,
		Hints:   []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("93.184.10.1")}}},
		Options: gather.Options{Seed: 1, Rate: 1000}}
	r.Controller = &Controller{client: r.client, zones: r, misses: map[types.UID]int{},
		options: Options{Gatherer: g, Log: slog.New(slog.DiscardHandler)}}
	return r
}

func internet() *simnet.Net {
	n := simnet.New(1)
	n.MustServer("93.184.10.1", `
		zone .
		. 60 NS a.root.
		. 60 SOA a.root. hostmaster.root. 1 7200 3600 1209600 60
		a.root. 60 A 93.184.10.1
		test. 60 NS ns.nic.test.
		ns.nic.test. 60 A 93.184.10.2
	`)
	n.MustServer("93.184.10.2", `
		zone test. 900
		test. 60 NS ns.nic.test.
		ns.nic.test. 60 A 93.184.10.2
		example.test. 3600 NS ns1.example.test., ns2.example.test.
		ns1.example.test. 3600 A 93.184.10.3
		ns2.example.test. 3600 A 93.184.11.4
	`)
	for _, addr := range zoneServers {
		n.MustServer(addr, `
			zone example.test. 3600
			example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 3600 1209600 3600
			example.test. 3600 NS ns1.example.test., ns2.example.test.
			ns1.example.test. 3600 A 93.184.10.3
			ns2.example.test. 3600 A 93.184.11.4
			example.test. 300 A 93.184.20.1
		`)
	}
	n.MustServer("93.184.30.1", "resolve 93.184.10.1") // a cache, which must not be asked
	return n
}

func (r *rig) dns(command string, servers ...string) {
	if servers == nil {
		servers = zoneServers
	}
	for _, addr := range servers {
		r.net.MustServer(addr, command)
	}
}

func (r *rig) connect(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = ours.Close() }()
		if _, err := http.ReadRequest(bufio.NewReader(ours)); err == nil {
			_, _ = fmt.Fprintf(ours, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(r.page), r.page)
		}
	}()
	return theirs, nil
}

// Lookup is the registry.
func (r *rig) Lookup(_ context.Context, domain dnsname.Name) (registry.Registration, error) {
	return registry.Registration{Domain: domain.String(), State: r.state, Source: registry.RDAP, Handle: "H1",
		Registrar: registry.Registrar{Name: "Registrar", IANAID: "7", AbuseEmail: "abuse@example.net"},
		Statuses:  []registry.Status{{Code: "active"}}, Dates: registry.Dates{Expires: time.Now().Add(1000 * time.Hour)},
		DNSSEC: registry.DNSSEC{Known: true, Signed: true, DS: []registry.DS{{KeyTag: 1, Digest: "AB"}}}}, nil
}

// Get is not used.
func (r *rig) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return io.EOF
}

// List lists the DNSZone.
func (r *rig) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if r.ns == nil {
		return &meta.NoKindMatchError{GroupKind: dnsZones.GroupKind()}
	}
	var all []any
	for _, n := range r.ns {
		if n != "" {
			all = append(all, n)
		}
	}
	list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{{Object: map[string]any{
		"spec": map[string]any{"domainName": "example.test"}, "status": map[string]any{"nameservers": all}}}}
	return nil
}

// run reconciles for a while.
func (r *rig) run(t *testing.T, d time.Duration) (attempts int) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); attempts++ {
		got, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "d"}})
		if err != nil || got.RequeueAfter == 0 {
			t.Fatalf("%v %v", got, err)
		}
		time.Sleep(got.RequeueAfter)
	}
	return attempts
}

func (r *rig) get(t *testing.T) *v1alpha.Domain {
	t.Helper()
	d := &v1alpha.Domain{}
	if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "d"}, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// want checks conditions, each as "Type=Status Reason".
func (r *rig) want(t *testing.T, what string, conditions ...string) *v1alpha.Domain {
	t.Helper()
	d := r.get(t)
	got := map[string]bool{}
	for _, c := range d.Status.Conditions {
		got[fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)] = true
	}
	for _, c := range conditions {
		if !got[c] {
			t.Errorf("%s: no %s: %v", what, c, got)
		}
	}
	return d
}

// enter enters the TXT record at some servers.
func (r *rig) enter(t *testing.T, servers ...string) {
	t.Helper()
	v := r.get(t).Status.Verification.DNSRecord
	r.dns(fmt.Sprintf("set %s. 300 TXT %q", v.Name, v.Content), servers...)
}

const record = "datum-custom-hostname.example.test."

// TestRecord follows a Domain that is verified by a TXT record. A cache that remembers its absence does not matter, and
// half of the servers are not enough.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "example.test")
		first := r.run(t, 4*time.Minute)
		if first < 38 || first > 50 { // every 5 to 6.25 seconds
			t.Errorf("%d attempts in 4 minutes", first)
		}
		d := r.want(t, "no proof", "ValidDomain=True Valid", "Verified=False PendingVerification",
			"VerifiedDNS=False RecordNotFound", "VerifiedHTTP=False UnexpectedResponse",
			"VerifiedDNSZone=False DNSZoneNotFound")
		v := d.Status.Verification
		if v.DNSRecord.Name+"." != record || len(v.DNSRecord.Content) != 36 ||
			v.HTTPToken.URL != "http://example.test/.well-known/datum-custom-hostname-challenge/u-1" || !d.Status.Apex ||
			len(d.Status.Nameservers) != 2 || d.Status.Nameservers[0].IPs[0].Address != "93.184.10.3" {
			t.Errorf("%+v", d.Status)
		}
		if g := d.Status.Registration; g.Domain != "example.test" || g.Registrar.IANAID != "7" || g.Source != "rdap" ||
			!g.DNSSEC.Enabled || g.Abuse.Email == "" || g.Statuses[0] != "active" {
			t.Errorf("registration %+v", g)
		}
		r.enter(t, zoneServers[0])
		r.run(t, 2*time.Minute)
		r.want(t, "half", "Verified=False PendingVerification", "VerifiedDNS=False VerificationRecordContentMismatch")
		r.enter(t)
		r.run(t, 2*time.Minute)
		d = r.want(t, "all", "Verified=True Verified", "VerifiedDNS=True Verified")
		if content := d.Status.Verification.DNSRecord.Content; content != v.DNSRecord.Content {
			t.Error("the proof changed")
		}
		if n := r.run(t, 72*time.Hour); n < 3 || n > 8 {
			t.Errorf("%d attempts in three days", n)
		}
		for _, q := range r.net.History() {
			if q.Server.Addr().String() == "93.184.30.1" {
				t.Fatalf("a cache was asked: %v", q)
			}
		}
	})
}

// TestGrace checks that a proof that is gone makes a Domain unverified after three misses over a day, and not after
// one. A restart does not begin the day again, and servers that do not answer count for nothing.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "example.test")
		r.dns("drop example.test. A") // nobody answers at the URL
		r.run(t, 10*time.Second)
		r.enter(t)
		r.run(t, 30*time.Hour)
		r.want(t, "verified", "Verified=True Verified")
		r.dns("drop " + record)
		r.dns("fault timeout")
		r.run(t, 80*time.Hour)
		r.want(t, "servers away", "Verified=True Verified", "VerifiedDNS=True Verified")
		r.dns("heal")
		r.run(t, 12*time.Hour)
		d := r.want(t, "first misses", "Verified=True Verified", "VerifiedDNS=False RecordNotFound")
		if m := meta.FindStatusCondition(d.Status.Conditions, "Verified").Message; !strings.Contains(m, "missing since") {
			t.Errorf("message %q", m)
		}
		r.misses = map[types.UID]int{} // a restart
		r.run(t, time.Hour)
		r.want(t, "16 hours later", "Verified=True Verified")
		r.run(t, time.Hour)
		r.want(t, "a day later", "Verified=False ProofGone")
		r.enter(t)
		r.run(t, 10*time.Minute)
		r.want(t, "entered again", "Verified=True Verified")
	})
}

// TestGraceOnce checks that one miss changes nothing.
func TestGraceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "example.test")
		r.run(t, 10*time.Second)
		r.enter(t)
		r.run(t, time.Minute)
		r.dns("drop " + record)
		r.run(t, 24*time.Hour)
		r.want(t, "one miss", "Verified=True Verified", "VerifiedDNS=False RecordNotFound")
		r.enter(t)
		r.run(t, 9*time.Hour)
		d := r.want(t, "back", "Verified=True Verified", "VerifiedDNS=True Verified")
		if m := meta.FindStatusCondition(d.Status.Conditions, "Verified").Message; m != "" {
			t.Errorf("message %q", m)
		}
	})
}

// TestToken checks the proof by a text at a URL.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "example.test")
		r.run(t, 10*time.Second)
		r.page = r.get(t).Status.Verification.HTTPToken.Body + "\n"
		r.run(t, 10*time.Second)
		r.want(t, "token", "Verified=True Verified", "VerifiedHTTP=True Verified", "VerifiedDNS=False RecordNotFound")
	})
}

// TestDelegation checks that all nameservers of a domain must be those of its DNSZone, and not one of them.
func TestDelegation(t *testing.T) {
	for _, tt := range []struct {
		name string
		ns   []string
		want []string
	}{
		{"all", []string{"ns1.example.test", "NS2.example.test."}, []string{"Verified=True Verified",
			"VerifiedDNSZone=True Verified"}},
		{"half", []string{"ns1.example.test"}, []string{"Verified=False PendingVerification",
			"VerifiedDNSZone=False DNSZoneNameserverMismatch"}},
		{"not ready", []string{""}, []string{"VerifiedDNSZone=False DNSZoneNotReady"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "example.test")
				r.ns = tt.ns
				r.run(t, 10*time.Second)
				r.want(t, tt.name, tt.want...)
			})
		})
	}
}

// TestInvalid checks a public suffix, about which nothing is asked.
func TestInvalid(t *testing.T) {
	r := newRig(t, "co.uk")
	got, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "d"}})
	if err != nil || got.RequeueAfter != 0 || len(r.net.History()) != 0 {
		t.Errorf("%v %v, %d queries", got, err, len(r.net.History()))
	}
	r.want(t, "co.uk", "ValidDomain=False InvalidApex", "Verified=False InvalidApex")
}

// TestRegistry checks that a registration stays while the registry does not answer.
func TestRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "www.example.test")
		r.run(t, 10*time.Second)
		r.state = registry.Unknown
		r.run(t, 50*time.Hour)
		d := r.get(t)
		if g := d.Status.Registration; g.Domain != "example.test" || d.Status.Apex ||
			time.Until(g.NextRefreshAttempt.Time) > lookupAgain {
			t.Errorf("%+v", g)
		}
	})
}

// TestOwner checks that a hostname has the condition of the longest domain that contains it.
func TestOwner(t *testing.T) {
	r := newRig(t, "example.test")
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop",
		Name: "d"}}); err != nil {
		t.Fatal(err)
	}
	for name, domain := range map[string]string{"long": "a.example.test", "short": "test"} {
		other := &v1alpha.Domain{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec: v1alpha.DomainSpec{DomainName: domain}}
		if err := r.client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	owner := Owner(r.client)
	for host, want := range map[string]bool{"example.test": true, "www.example.test": true, "*.example.test": true,
		"notexample.test": false, "test": false, "b.a.example.test": false} {
		if got := owner(t.Context(), "shop", host); (got != nil) != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	if got := owner(t.Context(), "other", "example.test"); got != nil {
		t.Errorf("a Domain of another namespace: %v", got)
	}
}

// Package service runs the controller of nameplane-service against a real API server with the definitions of the
// Gateway API, and a simulated internet. Start with TestService in service_test.go.
package service

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/hostname"
	"github.com/nameplane/nameplane/kubernetes/test/authority"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// gatewayAPI is the version of the Gateway API whose definitions the tests apply.
const gatewayAPI = "sigs.k8s.io/gateway-api@v1.6.3"

const (
	deployDir = "../../../deploy/kubernetes/service"
	namespace = "nameplane-service"
	account   = "nameplane-service"
	user      = "system:serviceaccount:" + namespace + ":" + account
)

// rig is a cluster with the definitions and rights of the manifests, and a small internet.
type rig struct {
	*cluster.Cluster
	admin client.Client
	net   *simnet.Net
	page  atomic.Pointer[string] // the reply of every address
	cert  tls.Certificate
	roots *x509.CertPool
}

func start(t *testing.T) *rig {
	t.Helper()
	r := &rig{Cluster: cluster.Start(t, cluster.Options{}), net: internet(), roots: x509.NewCertPool()}
	if err := errors.Join(r.ApplyFS(os.DirFS(gatewayDefinitions(t)), "*.yaml"),
		r.ApplyFS(os.DirFS(deployDir), "namespace.yaml", "crds.yaml", "service.yaml")); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.admin, err = client.New(r.Config, client.Options{Scheme: scheme(t)}); err != nil {
		t.Fatal(err)
	}
	ca := authority.New(t)
	cert, key := ca.Issue("web", pkix.Name{CommonName: "web"}, "*.example.test")
	if r.cert, err = tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(ca.CA())
	if err != nil || !r.roots.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	r.serve("200 OK")
	return r
}

// gatewayDefinitions returns the folder of the definitions of the Gateway API.
func gatewayDefinitions(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", gatewayAPI).Output()
	var module struct{ Dir string }
	if err := errors.Join(err, json.Unmarshal(out, &module)); err != nil {
		t.Fatalf("download %s: %v", gatewayAPI, err)
	}
	return filepath.Join(module.Dir, "config", "crd", "standard")
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), eventsv1.AddToScheme(s), v1alpha1.AddToScheme(s),
		v1alpha.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// internet returns a small internet. Every name below example.test leads to the Gateway.
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
			zone example.test. 60
			example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 1 7200 3600 1209600 60
			example.test. 3600 NS ns1.example.test., ns2.example.test.
			ns1.example.test. 3600 A 93.184.10.3
			ns2.example.test. 3600 A 93.184.11.4
			*.example.test. 60 A 93.184.20.1
		`)
	}
	return n
}

var zoneServers = []string{"93.184.10.3", "93.184.11.4"}

// dns runs a command at both servers of example.test.
func (r *rig) dns(command string) {
	for _, addr := range zoneServers {
		r.net.MustServer(addr, command)
	}
}

// serve sets the status line of the page of every address.
func (r *rig) serve(status string) { r.page.Store(&status) }

// connect opens a connection to a server in memory, with TLS on port 443.
func (r *rig) connect(_ context.Context, _, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	go func() {
		defer func() { _ = ours.Close() }()
		conn := ours
		if to.Port() == 443 {
			conn = tls.Server(ours, &tls.Config{Certificates: []tls.Certificate{r.cert}})
		}
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", *r.page.Load())
		}
	}()
	return theirs, nil
}

func (r *rig) gatherer() gather.Gatherer {
	return gather.Gatherer{Exchanger: r.net, Connect: r.connect, Roots: r.roots, Anchors: []secure.Anchor{},
		Hints: []iterate.Host{{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("93.184.10.1")}}},
		Options: gather.Options{Seed: 1, Rate: 1000, Settle: time.Millisecond,
			Timeouts: []time.Duration{200 * time.Millisecond, 300 * time.Millisecond}}}
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

// run runs the controller of hostnames.
func (r *rig) run(t *testing.T, metrics *prometheus.Registry) (stop func()) {
	t.Helper()
	return r.runWith(t, func(mgr ctrl.Manager, log *slog.Logger) error {
		return hostname.Setup(mgr, hostname.Options{Gatherer: r.gatherer(), Log: log, Metrics: metrics})
	})
}

// runWith runs a controller with the rights of its account until stop is called, or the test ends.
func (r *rig) runWith(t *testing.T, setup func(ctrl.Manager, *slog.Logger) error) (stop func()) {
	t.Helper()
	cfg, err := r.ConfigFor(namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	log := &buffer{}
	handler := slog.NewTextHandler(log, nil)
	// a manager ends after 10 s without the API server by default, and the server may need that long to start
	lease, renew := time.Minute, 45*time.Second
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		LeaseDuration: &lease, RenewDeadline: &renew, Scheme: scheme(t), Logger: logr.FromSlogHandler(handler),
		Controller: config.Controller{SkipNameValidation: new(true)}, // several managers run in one process
		Metrics:    metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", LeaderElection: true,
		LeaderElectionID: hostname.LeaderElectionID, LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr, slog.New(handler)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controller ended: %v", err)
		}
		if t.Failed() {
			t.Logf("the controller's log:\n%s", log.all.String())
		}
	})
	t.Cleanup(stop)
	return stop
}

// apply applies objects as an administrator.
func (r *rig) apply(t *testing.T, objects string) {
	t.Helper()
	if err := r.ApplyYAML([]byte(objects)); err != nil {
		t.Fatal(err)
	}
}

// setStatus replaces the status of an object, as its controller does. It sets the generation of all conditions.
func (r *rig) setStatus(t *testing.T, kind, ns, name, status string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("gateway.networking.k8s.io/v1")
	u.SetKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	patch := fmt.Sprintf(`{"status":%s}`, status)
	if err := r.admin.Status().Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("%s %s: %v", kind, name, err)
	}
}

// remove deletes an object.
func (r *rig) remove(t *testing.T, apiVersion, kind, ns, name string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(ns)
	u.SetName(name)
	if err := r.admin.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}
}

// report returns a report.
func (r *rig) report(ctx context.Context, ns, host string) (*v1alpha1.HostnameReport, error) {
	x := &v1alpha1.HostnameReport{}
	return x, r.admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: hostname.Name(host)}, x)
}

// soon retries until there is no error. The limit is for a machine that compiles something else at the same time.
func soon(t *testing.T, what string, ask func() error) {
	t.Helper()
	begun := time.Now()
	for {
		err := ask()
		if err == nil {
			t.Logf("%s: after %v", what, time.Since(begun).Round(time.Millisecond))
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// want waits until a report has a first broken link and conditions, each as "Type=Status Reason".
func (r *rig) want(t *testing.T, what, ns, host, broken string, conditions ...string) *v1alpha1.HostnameReport {
	t.Helper()
	var x *v1alpha1.HostnameReport
	soon(t, what, func() (err error) {
		if x, err = r.report(t.Context(), ns, host); err != nil {
			return err
		}
		if x.Status.Verdict == "" || x.Status.FirstBroken != broken {
			return fmt.Errorf("%s; the broken link is %q, want %q", x.Status.Summary, x.Status.FirstBroken, broken)
		}
		for _, c := range conditions {
			if !has(x, c) {
				return fmt.Errorf("%s has not %s: %+v", host, c, x.Status.Conditions)
			}
		}
		return nil
	})
	return x
}

// has reports whether a report has a condition.
func has(x *v1alpha1.HostnameReport, want string) bool {
	for _, c := range x.Status.Conditions {
		if fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason) == want {
			return true
		}
	}
	return false
}

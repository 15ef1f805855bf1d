// Package egress runs the parts of the egress firewall against a real API server and a real OVN. Start with TestPlugin
// in plugin_test.go, which needs only the API server.
package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/manager"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

const (
	ovnNamespace   = egress.DefaultNamespace
	managerAccount = "nameplane-egress-manager"
	managerUser    = "system:serviceaccount:" + ovnNamespace + ":" + managerAccount
)

// managed is a cluster with our definitions and rights, and an administrator's client.
type managed struct {
	*cluster.Cluster
	admin client.Client
}

func startManaged(t *testing.T) *managed {
	t.Helper()
	m := &managed{Cluster: cluster.Start(t, cluster.Options{})}
	files := os.DirFS("../../../deploy/kubernetes/egress")
	if err := m.ApplyFS(files, "namespace.yaml", "crds.yaml", "manager.yaml"); err != nil {
		t.Fatal(err)
	}
	var err error
	if m.admin, err = client.New(m.Config, client.Options{Scheme: managedScheme(t)}); err != nil {
		t.Fatal(err)
	}
	return m
}

func managedScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), eventsv1.AddToScheme(s), apiv1.AddToScheme(s), v1alpha1.AddToScheme(s),
		dnsv1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a manager with the rights of its account until stop is called, or the test ends.
func (m *managed) run(t *testing.T, o manager.Options) (stop func()) {
	t.Helper()
	cfg, err := m.ConfigFor(ovnNamespace, managerAccount)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	var log bytes.Buffer
	handler := slog.NewTextHandler(&log, nil)
	o.Log, o.Namespace, o.Metrics = slog.New(handler), ovnNamespace, prometheus.NewRegistry()
	// a manager ends after 10 s without the API server by default, and the server may need that long to start
	lease, renew := time.Minute, 45*time.Second
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		LeaseDuration: &lease, RenewDeadline: &renew,
		Controller: config.Controller{SkipNameValidation: new(true)}, // several managers run in one process
		Scheme:     managedScheme(t), Cache: manager.Cache(o), Logger: logr.FromSlogHandler(handler),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: manager.LeaderElectionID, LeaderElectionNamespace: ovnNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.Setup(mgr, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
		if t.Failed() {
			t.Logf("the manager's log:\n%s", log.String())
		}
	}
	t.Cleanup(stop)
	return stop
}

// soon retries until there is no error. It takes milliseconds; the limit is for a machine that compiles something else
// at the same time.
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
		time.Sleep(5 * time.Millisecond)
	}
}

// put sets the names that the EgressFirewall of a namespace allows.
func (m *managed) put(t *testing.T, namespace string, names ...string) *apiv1.EgressFirewall {
	t.Helper()
	if err := m.CreateNamespace(namespace, nil); err != nil {
		t.Fatal(err)
	}
	ef := &apiv1.EgressFirewall{}
	err := m.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "default"}, ef)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	ef.Namespace, ef.Name, ef.Spec.Egress = namespace, "default", nil
	for _, name := range names {
		ef.Spec.Egress = append(ef.Spec.Egress,
			apiv1.EgressFirewallRule{Type: "Allow", To: apiv1.EgressFirewallDestination{DNSName: name}})
	}
	ef.Spec.Egress = append(ef.Spec.Egress,
		apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}})
	if err != nil {
		err = m.admin.Create(t.Context(), ef)
	} else {
		err = m.admin.Update(t.Context(), ef)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ef
}

func (m *managed) remove(t *testing.T, obj client.Object) {
	t.Helper()
	if err := m.admin.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// resolvers returns the existing DNSNameResolvers.
func (m *managed) resolvers(t *testing.T) []v1alpha1.DNSNameResolver {
	t.Helper()
	var list v1alpha1.DNSNameResolverList
	if err := m.admin.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// want waits until there are exactly these names, each once.
func (m *managed) want(t *testing.T, what string, names ...string) {
	t.Helper()
	slices.Sort(names)
	soon(t, what, func() error {
		var got []string
		for _, r := range m.resolvers(t) {
			got = append(got, string(r.Spec.Name))
		}
		slices.Sort(got)
		if !slices.Equal(got, names) {
			return fmt.Errorf("names %q, want %q", got, names)
		}
		return nil
	})
}

// say writes one part of a status as an agent of a zone does.
func (m *managed) say(t *testing.T, obj client.Object, kind, zone string, status map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	gvk, err := m.admin.GroupVersionKindFor(obj)
	if err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind))
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	if err := m.admin.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(zone),
		client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

func (m *managed) node(t *testing.T, name, zone string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Annotations: map[string]string{"k8s.ovn.org/zone-name": zone}}}
	if err := m.admin.Create(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return n
}

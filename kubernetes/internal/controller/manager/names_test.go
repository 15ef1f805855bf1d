package manager

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

var testOptions = Options{Namespace: egress.DefaultNamespace, Log: slog.New(slog.DiscardHandler)}

// fakeClient returns a client with the indexes of the cache.
func fakeClient(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(apiv1.AddToScheme(s), v1alpha1.AddToScheme(s), dnsv1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).
		WithStatusSubresource(&apiv1.EgressFirewall{}, &v1alpha1.DNSNameResolver{}, &dnsv1alpha1.EgressFirewallDNSName{}).
		WithIndex(&apiv1.EgressFirewall{}, byRule, indexRules(false)).
		WithIndex(&v1alpha1.DNSNameResolver{}, byName, indexName).
		WithInterceptorFuncs(funcs).Build()
}

func resolver(object, name string) *v1alpha1.DNSNameResolver {
	return &v1alpha1.DNSNameResolver{
		ObjectMeta: metav1.ObjectMeta{Namespace: egress.DefaultNamespace, Name: object},
		Spec:       v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(name)},
	}
}

// objects returns the existing DNSNameResolvers by name.
func objects(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	var list v1alpha1.DNSNameResolverList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range list.Items {
		out[r.Name] = string(r.Spec.Name)
	}
	return out
}

func TestReconcileName(t *testing.T) {
	const www, object = "www.example.com.", "dns-5dd68c7c99"
	const one, two = "v2cyta.example.com.", "kgxe1a.example.com." // have the same hash
	first, second := enforce.ObjectName(must.Pattern(two), 0), enforce.ObjectName(must.Pattern(one), 1)
	if enforce.ObjectName(must.Pattern(one), 0) != first {
		t.Fatal("the names do not collide")
	}
	tests := []struct {
		name  string
		there []client.Object
		key   string
		want  map[string]string
	}{
		{"made", []client.Object{firewall("a", "WWW.example.com")}, www, map[string]string{object: www}},
		{"one for two namespaces", []client.Object{firewall("a", "www.example.com"), firewall("b", "www.example.com."),
			resolver(object, www)}, www,
			map[string]string{object: www}},
		{"removed", []client.Object{firewall("a", "other.example.com"), resolver(object, www)}, www, map[string]string{}},
		{"made by hand, used by nobody", []client.Object{resolver("mine", "mine.example.com.")}, "mine.example.com.",
			map[string]string{}},
		{"made by hand beside ours", []client.Object{firewall("a", "www.example.com"), resolver("mine", www),
			resolver(object, www)}, www,
			map[string]string{object: www}},
		{"made by hand instead of ours", []client.Object{firewall("a", "www.example.com"), resolver("mine", www)}, www,
			map[string]string{object: www}},
		{"collision", []client.Object{firewall("a", one, two), resolver(first, two)}, one,
			map[string]string{first: two, second: one}},
		{"collision, found again by a new manager",
			[]client.Object{firewall("a", one), resolver(first, two), resolver(second, one)}, one,
			map[string]string{first: two, second: one}},
		{"a spelling that no rule has",
			[]client.Object{firewall("a", "www.example.com"), resolver("mine", "WWW.example.com.")}, "WWW.example.com.",
			map[string]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := &names{client: fakeClient(t, interceptor.Funcs{}, tt.there...), options: testOptions, metrics: newMetrics()}
			for range 2 { // the second time there is nothing to do
				if _, err := n.Reconcile(t.Context(), tt.key); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, objects(t, n.client)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			}
		})
	}
}

// TestCreateFails checks that a failed creation is repeated, even if other programs have seen the name meanwhile.
func TestCreateFails(t *testing.T) {
	fails := 2
	c := fakeClient(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if fails > 0 {
				fails--
				return errors.New("500")
			}
			return c.Create(ctx, obj, opts...)
		},
	}, firewall("a", "www.example.com"))
	n := &names{client: c, options: testOptions, metrics: newMetrics()}
	for i := range 3 {
		_, err := n.Reconcile(t.Context(), "www.example.com.")
		if failed := err != nil; failed != (i < 2) {
			t.Errorf("try %d: %v", i, err)
		}
	}
	if got := objects(t, c); len(got) != 1 {
		t.Errorf("objects %v", got)
	}
	var failed dto.Metric
	if err := n.metrics.writes.WithLabelValues("dnsnameresolvers", "create", "error").Write(&failed); err != nil {
		t.Fatal(err)
	}
	if got := failed.GetCounter().GetValue(); got != 2 {
		t.Errorf("%v failed writes counted, want 2", got)
	}
}

// TestBlindCache checks a creation whose object the cache does not show yet: it is tried again without an error.
func TestBlindCache(t *testing.T) {
	c := fakeClient(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			return c.Get(ctx, client.ObjectKey{Name: "unseen"}, obj, opts...)
		},
	}, resolver("dns-5dd68c7c99", "www.example.com."))
	n := &names{client: c, options: testOptions, metrics: newMetrics()}
	r, err := n.create(t.Context(), plan{create: "dns-5dd68c7c99"}, "www.example.com.")
	if err != nil || r.RequeueAfter == 0 {
		t.Errorf("create = %v, %v; want a retry and no error", r, err)
	}
}

// TestForbiddenPatch checks that a manager whose role does not allow patch tries once to delete the managed fields of
// wildcards, and works without.
func TestForbiddenPatch(t *testing.T) {
	tries := 0
	c := fakeClient(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch,
		...client.PatchOption) error {
		tries++
		return apierrors.NewForbidden(schema.GroupResource{Resource: "dnsnameresolvers"}, "x", nil)
	}})
	n := &names{client: c, options: testOptions, metrics: newMetrics()}
	r := resolver("x", "*.example.com.")
	r.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	for range 3 {
		if err := n.forget(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if tries != 1 {
		t.Errorf("tried %d times", tries)
	}
}

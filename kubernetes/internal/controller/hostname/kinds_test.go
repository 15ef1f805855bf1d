package hostname

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// fakeAPI returns an API server that has only these resources, each as "group/version resource".
func fakeAPI(resources ...[2]string) *fakediscovery.FakeDiscovery {
	d := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}}
	for _, r := range resources {
		d.Resources = append(d.Resources, &metav1.APIResourceList{GroupVersion: r[0],
			APIResources: []metav1.APIResource{{Name: r[1]}}})
	}
	return d
}

// growing is an API server whose resources can be replaced.
type growing struct {
	discovery.DiscoveryInterface
	now atomic.Pointer[fakediscovery.FakeDiscovery]
}

func (g *growing) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	return g.now.Load().ServerResourcesForGroupVersion(gv)
}

// TestServed checks that the best version of a kind is found, and that an API server that fails is no API server
// without kinds.
func TestServed(t *testing.T) {
	d := fakeAPI([2]string{"gateway.networking.k8s.io/v1beta1", "httproutes"}, [2]string{"v1", "services"})
	got, err := served(d, kinds)
	if err != nil || len(got) != 2 || got["HTTPRoute"].Version != "v1beta1" || got["Service"].Resource != "services" {
		t.Errorf("%v, %v", got, err)
	}
	d.AddReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the server is away")
	})
	if got, err := served(d, kinds); err == nil {
		t.Errorf("the kinds of a server that is away are %v", got)
	}
}

// TestKindsAppear checks that a kind is watched after its definition was installed, and its objects are seen.
func TestKindsAppear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, healthy)
		r.index.settle()
		d := &growing{}
		d.now.Store(fakeAPI())
		certificates := schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
		c := unstructuredOf(t, `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: infra},
			spec: {dnsNames: [www.example.test]}}`)
		r.discover, r.dynamic = d, fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{certificates: "CertificateList"}, c)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		absent := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return k.name != "Certificate" })
		group.Go(func() { r.findAbsent(ctx, &group, absent) })
		time.Sleep(2 * findAgain)
		if got := changes(r.index); got != nil {
			t.Errorf("changed %v", got)
		}
		d.now.Store(fakeAPI([2]string{"cert-manager.io/v1", "certificates"}))
		time.Sleep(2 * findAgain)
		if got := changes(r.index); !slices.Equal(got, []string{"shop/www.example.test"}) {
			t.Errorf("changed %v", got)
		}
		if err := r.dynamic.Resource(certificates).Namespace("infra").Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := changes(r.index); !slices.Equal(got, []string{"shop/www.example.test"}) {
			t.Errorf("a deletion changed %v", got)
		}
		cancel()
		group.Wait()
	})
}

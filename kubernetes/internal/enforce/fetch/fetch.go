// Package fetch lists and watches DNSNameResolvers with its own decoder, which is faster for events of up to 200 KiB.
//
// Start with ListWatch for an informer, or Informers for the cache of a manager.
//
// The status of a busy wildcard is that large and is written every second or two. Every agent and every replica of
// CoreDNS reads each version, on cores that serve DNS clients. client-go reads the text of an event seven times, which
// takes 17 ms of CPU for a full status. This package reads it twice, in 4 ms (docs/bench-egress.md): it first finds the
// object in the event, and then decodes it with github.com/go-json-experiment/json. That module has no release yet. It
// is the implementation of encoding/json/v2, so the import can later be replaced by the standard library.
package fetch

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// Resource is the name of DNSNameResolvers in the API.
const Resource = "dnsnameresolvers"

// Operation is one operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// MaxOperations is the maximum number of operations that an API server accepts in one patch.
const MaxOperations = 10_000

// NewClient returns a client of the group of DNSNameResolvers.
func NewClient(conf *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	conf = rest.CopyConfig(conf)
	conf.GroupVersion, conf.APIPath = &v1alpha1.GroupVersion, "/apis"
	conf.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	conf.ContentConfig.AcceptContentTypes, conf.ContentConfig.ContentType = runtime.ContentTypeJSON,
		runtime.ContentTypeJSON
	return rest.RESTClientFor(conf)
}

// ListWatch returns a ListWatch for the DNSNameResolvers of a namespace.
func ListWatch(c rest.Interface, namespace string) *cache.ListWatch {
	request := func(o metav1.ListOptions) *rest.Request {
		return c.Get().Namespace(namespace).Resource(Resource).VersionedParams(&o, metav1.ParameterCodec)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.DNSNameResolverList{}
			return list, request(o).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.Watch = true
			body, err := request(o).Stream(ctx)
			if net.IsProbableEOF(err) || net.IsTimeout(err) { // as in client-go: the next watch starts at the same version
				return watch.NewEmptyWatch(), nil
			}
			if err != nil {
				return nil, err
			}
			return watch.NewStreamWatcher(newEvents(body),
				apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
		},
	}
}

// Informers returns a function that creates the informers of a manager's cache. The informer of DNSNameResolvers uses
// ListWatch for one namespace; those of other kinds are unchanged.
func Informers(c rest.Interface, namespace string) func(cache.ListerWatcher, runtime.Object, time.Duration,
	cache.Indexers) cache.SharedIndexInformer {
	return func(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration,
		by cache.Indexers) cache.SharedIndexInformer {
		if _, ok := obj.(*v1alpha1.DNSNameResolver); ok {
			lw = ListWatch(c, namespace)
		}
		return cache.NewSharedIndexInformer(lw, obj, resync, by)
	}
}

package dnsnameresolver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
)

const (
	// shared by all replicas except for first writes: the API server records each manager for every entry
	fieldManager = "nameplane-coredns"
	writeTimeout = 10 * time.Second
	// With the client-go default of 5 requests per second, writes fell behind the answers and were lost. The API server's
	// own priority and fairness is the limit that matters.
	clientQPS, clientBurst = 200, 400
)

// store is the connection to the API server.
type store struct {
	objects *rest.RESTClient
	core    kubernetes.Interface
	events  record.EventRecorder
	clock   clock
	replica string      // identifies this replica
	putOnly atomic.Bool // patches are forbidden: the role is that of the stock plugin
	scheme  *runtime.Scheme
}

// newStore returns a store for the cluster of a kubeconfig, or for the cluster in which the process runs. It does not
// wait for the API server.
func newStore(kubeconfig string) (*store, error) {
	var conf *rest.Config
	var err error
	if kubeconfig != "" {
		conf, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	} else {
		conf, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, err
	}
	return newStoreFor(conf)
}

func newStoreFor(conf *rest.Config) (*store, error) {
	s := &store{scheme: runtime.NewScheme(), replica: rand.Text()}
	conf = rest.CopyConfig(conf)
	conf.QPS, conf.Burst = clientQPS, clientBurst
	conf.UserAgent = fieldManager
	conf.Wrap(s.clock.watch)
	if err := v1alpha1.AddToScheme(s.scheme); err != nil {
		return nil, err
	}
	core := rest.CopyConfig(conf)
	// protobuf, because a cluster may have thousands of nodes
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	var err error
	if s.core, err = kubernetes.NewForConfig(core); err != nil {
		return nil, err
	}
	s.objects, err = fetch.NewClient(conf)
	return s, err
}

// record starts sending Events, until ctx ends.
func (s *store) record(ctx context.Context) {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: s.core.CoreV1().Events("")})
	s.events = b.NewRecorder(s.scheme, corev1.EventSource{Component: Name})
}

// informer returns an informer that passes all objects in a namespace to h.
func (s *store) informer(namespace string, h cache.ResourceEventHandler) cache.Controller {
	_, c := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: fetch.ListWatch(s.objects, namespace),
		ObjectType:    &v1alpha1.DNSNameResolver{},
		Handler:       h,
		ResyncPeriod:  24 * time.Hour,
		Transform: func(o any) (any, error) {
			if d, ok := o.(*v1alpha1.DNSNameResolver); ok {
				stripManagedFields(d)
			}
			return o, nil
		},
	})
	return c
}

// write sends a write and returns the resulting object.
func (s *store) write(ctx context.Context, key types.NamespacedName, w *write) (*v1alpha1.DNSNameResolver, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	opts := &metav1.PatchOptions{FieldManager: fieldManager}
	var req *rest.Request
	if s.putOnly.Load() {
		live := w.live.DeepCopy()
		live.ManagedFields = nil // nil leaves them unchanged
		live.Status.ResolvedNames = toStatusList(w.live, w.want)
		req = s.objects.Put().Body(live)
	} else {
		kind, patch := types.JSONPatchType, any(w.ops)
		if w.first {
			// Use one field manager per replica. With a shared manager, an apply would remove the fields that another replica
			// applied.
			opts.FieldManager, opts.Force = fieldManager+"-"+s.replica, new(true)
			kind, patch = types.ApplyPatchType, firstApply(w.live, w.want)
		}
		body, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		req = s.objects.Patch(kind).Body(body)
	}
	return read(req.Namespace(key.Namespace).Resource(fetch.Resource).Name(key.Name).SubResource("status").
		VersionedParams(opts, metav1.ParameterCodec).Do(ctx))
}

// get reads an object from the API server, without a cache.
func (s *store) get(ctx context.Context, key types.NamespacedName) (*v1alpha1.DNSNameResolver, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return read(s.objects.Get().Namespace(key.Namespace).Resource(fetch.Resource).Name(key.Name).Do(ctx))
}

// read decodes the object in a result.
func read(r rest.Result) (*v1alpha1.DNSNameResolver, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	raw, err := r.Raw()
	if err != nil {
		return nil, err
	}
	got, err := fetch.Unmarshal(raw)
	stripManagedFields(got)
	return got, err
}

// stripManagedFields replaces the managed fields by one empty entry, if there are any. They are larger than the rest of
// the object and not needed here; only their existence matters.
func stripManagedFields(d *v1alpha1.DNSNameResolver) {
	if len(d.ManagedFields) > 0 {
		d.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	}
}

// clock estimates the clock of the API server. Programs on other machines compare the times in the status. If each
// replica used its own clock, a wrong clock would make addresses end early for all of them. Small differences are
// ignored: the header has a resolution of one second, and replies may be slow.
type clock struct{ offset atomic.Int64 }

const clockSlack = 2 * time.Second

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// watch reads the Date header of all replies.
func (c *clock) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		began := time.Now()
		resp, err := next.RoundTrip(r)
		if err == nil {
			c.note(resp.Header.Get("Date"), began, time.Now())
		}
		return resp, err
	})
}

func (c *clock) note(header string, began, ended time.Time) {
	date, err := http.ParseTime(header)
	if err != nil || ended.Sub(began) > clockSlack {
		return
	}
	// The header has whole seconds, so its mean error is half a second.
	offset := date.Add(500 * time.Millisecond).Sub(began.Add(ended.Sub(began) / 2))
	if offset.Abs() < clockSlack {
		offset = 0
	}
	if d := offset - time.Duration(c.offset.Load()); d.Abs() >= time.Second {
		c.offset.Store(int64(offset))
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

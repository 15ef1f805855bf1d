package hostname

import (
	"context"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// mirror keeps a store equal to all objects of a resource until ctx ends. While the API server is away the store stays
// as it is.
func mirror(ctx context.Context, d dynamic.Interface, gvr schema.GroupVersionResource, kind string,
	store cache.ReflectorStore) {
	all := d.Resource(gvr)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, o)
		},
	}, d), u, store, cache.ReflectorOptions{Name: "hostname/" + gvr.Resource}).RunWithContext(ctx)
}

// objectStore puts the objects of one kind into the index.
type objectStore struct {
	kind   string
	index  *index
	log    *slog.Logger
	synced func() // called once, when all objects of the kind are in the index
	once   sync.Once
}

var _ cache.TransformingStore = (*objectStore)(nil)

// Add adds or replaces an object.
func (s *objectStore) Add(obj any) error {
	_, _ = trim(obj) // it changes the object
	o, err := parse(obj.(*unstructured.Unstructured))
	if err != nil {
		// An error would stop the watch of the kind. The object is of no use, and the other ones are.
		s.log.Warn("an object cannot be read and is left out", "err", err)
		return nil
	}
	s.index.put(o)
	return nil
}

// Update replaces an object.
func (s *objectStore) Update(obj any) error { return s.Add(obj) }

// Delete deletes an object.
func (s *objectStore) Delete(obj any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		s.index.remove(objectID{s.kind, u.GetNamespace(), u.GetName()})
	}
	return nil
}

// Replace replaces all objects of the kind.
func (s *objectStore) Replace(list []any, _ string) error {
	keep := map[objectID]bool{}
	for _, obj := range list {
		u := obj.(*unstructured.Unstructured)
		keep[objectID{s.kind, u.GetNamespace(), u.GetName()}] = true
		_ = s.Add(u) // it never fails
	}
	s.index.replace(s.kind, keep)
	s.once.Do(s.synced)
	return nil
}

// Resync does nothing: the index loses no object.
func (s *objectStore) Resync() error { return nil }

// Transformer returns the function that trims an object as soon as it is decoded.
func (s *objectStore) Transformer() cache.TransformFunc { return trim }

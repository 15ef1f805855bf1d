package dnsnameresolver

import (
	"net"
	"slices"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// agentInformer watches the endpoints of the agents' service and updates the set of agents.
func (e *engine) agentInformer() cache.Controller {
	var mu sync.Mutex // client-go calls the handler from one goroutine, but does not document it
	known := map[string]*discoveryv1.EndpointSlice{}
	update := func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		change()
		e.hold.SetAgents(append(endpoints(known, e.opts.service.port), e.opts.agents...))
	}
	set := func(v any) {
		if s, ok := v.(*discoveryv1.EndpointSlice); ok {
			update(func() { known[s.Name] = s })
		}
	}
	lw := cache.NewFilteredListWatchFromClient(e.store.core.DiscoveryV1().RESTClient(), "endpointslices",
		e.opts.service.namespace,
		func(o *metav1.ListOptions) {
			o.LabelSelector = discoveryv1.LabelServiceName + "=" + e.opts.service.name
		})
	_, c := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: &discoveryv1.EndpointSlice{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: set, UpdateFunc: func(_, v any) { set(v) },
			DeleteFunc: func(v any) {
				if key, err := cache.DeletionHandlingObjectToName(v); err == nil {
					update(func() { delete(known, key.Name) })
				}
			}},
	})
	return c
}

// endpoints returns the addresses of all slices of a service. port is a number, or the name of a port of the service.
// Only endpoints that are ready or serving count: the other ones may belong to a pod that no longer exists.
func endpoints(all map[string]*discoveryv1.EndpointSlice, port string) []string {
	var out []string
	for _, s := range all {
		number := port
		for _, p := range s.Ports {
			if p.Name != nil && *p.Name == port && p.Port != nil {
				number = strconv.Itoa(int(*p.Port))
			}
		}
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			continue
		}
		for _, ep := range s.Endpoints {
			ready := ep.Conditions.Ready == nil || *ep.Conditions.Ready || ep.Conditions.Serving != nil && *ep.Conditions.Serving
			for _, a := range ep.Addresses {
				if ready {
					out = append(out, net.JoinHostPort(a, number))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

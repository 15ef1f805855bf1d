package hostname

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// kind is a kind of objects that a hostname depends on.
type kind struct {
	name, resource, group string
	versions              []string // the best first
}

// kinds are the kinds that are watched. Secrets are not among them: certificates are seen in the TLS handshake.
var kinds = []kind{
	{"GatewayClass", "gatewayclasses", service.GatewayGroup, []string{"v1", "v1beta1"}},
	{"Gateway", "gateways", service.GatewayGroup, []string{"v1", "v1beta1"}},
	{"ListenerSet", "listenersets", service.GatewayGroup, []string{"v1"}},
	{"HTTPRoute", "httproutes", service.GatewayGroup, []string{"v1", "v1beta1"}},
	{"GRPCRoute", "grpcroutes", service.GatewayGroup, []string{"v1", "v1alpha2"}},
	{"TLSRoute", "tlsroutes", service.GatewayGroup, []string{"v1", "v1alpha3", "v1alpha2"}},
	{"ReferenceGrant", "referencegrants", service.GatewayGroup, []string{"v1", "v1beta1"}},
	{"BackendTLSPolicy", "backendtlspolicies", service.GatewayGroup, []string{"v1", "v1alpha3"}},
	{"Ingress", "ingresses", "networking.k8s.io", []string{"v1"}},
	{"Service", "services", "", []string{"v1"}},
	{"EndpointSlice", "endpointslices", "discovery.k8s.io", []string{"v1"}},
	{"Namespace", "namespaces", "", []string{"v1"}},
	{"Certificate", "certificates", "cert-manager.io", []string{"v1"}},
}

// served returns the kinds that the API server has now, with the best version of each. An error means that it is not
// known, which is not the same as a kind that is not installed.
func served(d discovery.DiscoveryInterface, all []kind) (map[string]schema.GroupVersionResource, error) {
	resources := map[schema.GroupVersion][]string{}
	out := map[string]schema.GroupVersionResource{}
	for _, k := range all {
		for _, v := range k.versions {
			gv := schema.GroupVersion{Group: k.group, Version: v}
			if _, ok := resources[gv]; !ok {
				list, err := d.ServerResourcesForGroupVersion(gv.String())
				if err != nil && !apierrors.IsNotFound(err) {
					return nil, fmt.Errorf("find the resources of %s: %w", gv, err)
				}
				resources[gv] = []string{}
				if err == nil {
					for _, r := range list.APIResources {
						resources[gv] = append(resources[gv], r.Name)
					}
				}
			}
			if _, ok := out[k.name]; !ok && slices.Contains(resources[gv], k.resource) {
				out[k.name] = gv.WithResource(k.resource)
			}
		}
	}
	return out, nil
}

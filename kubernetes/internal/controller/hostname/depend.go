package hostname

import (
	"cmp"
	"slices"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// The label of an EndpointSlice with the name of its Service.
const serviceLabel = "kubernetes.io/service-name"

// maxHosts limits the hostnames of one route. A route without hostnames has those of all its listeners.
const maxHosts = 128

// maxSuggested limits the Gateways among which a check finds the one that a route may have meant.
const maxSuggested = 64

// anyGateway is the topic of all Gateways.
const anyGateway = "Gateway"

// topic returns the topic of an object.
func topic(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// grants returns the topic of the ReferenceGrants of a namespace.
func grants(namespace string) string { return topic("ReferenceGrant", namespace, "") }

// isOwner reports whether objects of a kind have hostnames.
func isOwner(kind string) bool {
	return slices.Contains([]string{"HTTPRoute", "GRPCRoute", "TLSRoute", "Ingress"}, kind)
}

// topicsOf returns the topics of an object.
func topicsOf(o *object) (out []string) {
	p := o.parsed
	switch o.id.kind {
	case "GatewayClass", "ListenerSet", "Namespace", "Service":
		return []string{topic(o.id.kind, o.id.namespace, o.id.name)}
	case "Gateway":
		return []string{topic("Gateway", o.id.namespace, o.id.name), anyGateway}
	case "EndpointSlice":
		return []string{topic("Service", o.id.namespace, p.Slices[0].Labels[serviceLabel])}
	case "BackendTLSPolicy":
		for _, t := range p.Policies[0].Spec.Targets {
			out = append(out, topic("Service", o.id.namespace, t.Name))
		}
	case "ReferenceGrant":
		return []string{grants(o.id.namespace)}
	case "Certificate":
		for _, name := range p.Certificates[0].Spec.Names {
			out = append(out, topic("hostname", "", name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// evaluateLocked returns the hostnames of a route or Ingress and the topics that they depend on. The caller holds mu.
func (x *index) evaluateLocked(o *object) (hosts, needs []string) {
	needs = []string{topic("Namespace", "", o.id.namespace)}
	sub := &service.Objects{}
	merge(sub, o.parsed)
	for _, r := range o.parsed.Routes {
		needs = append(needs, x.parentsLocked(&r)...)
		needs = append(needs, backendsOf(&r)...)
	}
	for _, in := range o.parsed.Ingresses {
		needs = append(needs, ingressBackends(&in)...)
	}
	x.mergeLocked(sub, needs, "Gateway", "ListenerSet", "Namespace")
	for _, a := range sub.Attachments() {
		if a.Host != "" && (a.Route != nil || a.Ingress != nil) {
			hosts = append(hosts, a.Host)
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	hosts = hosts[:min(len(hosts), maxHosts)]
	for _, h := range hosts {
		needs = append(needs, topic("hostname", "", h))
	}
	slices.Sort(needs)
	return hosts, slices.Compact(needs)
}

// parentsLocked returns the topics of the parents of a route: Gateways and ListenerSets, the Gateways of those, and the
// classes. The caller holds mu.
func (x *index) parentsLocked(r *service.Route) (out []string) {
	gateway := func(namespace, name string) {
		out = append(out, topic("Gateway", namespace, name))
		if g := x.objects[objectID{"Gateway", namespace, name}]; g != nil {
			out = append(out, topic("GatewayClass", "", g.parsed.Gateways[0].Spec.Class))
		}
	}
	for _, ref := range r.Spec.Parents {
		namespace := cmp.Or(ref.Namespace, r.Namespace)
		switch cmp.Or(ref.Kind, "Gateway") {
		case "Gateway":
			gateway(namespace, ref.Name)
		case "ListenerSet":
			out = append(out, topic("ListenerSet", namespace, ref.Name))
			if s := x.objects[objectID{"ListenerSet", namespace, ref.Name}]; s != nil {
				parent := s.parsed.ListenerSets[0].Spec.Parent
				gateway(cmp.Or(parent.Namespace, namespace), parent.Name)
			}
		}
	}
	return out
}

// backendsOf returns the topics of the backends of a route, and of the grants for those of other namespaces.
func backendsOf(r *service.Route) (out []string) {
	for _, rule := range r.Spec.Rules {
		for _, ref := range rule.Backends {
			namespace := cmp.Or(ref.Namespace, r.Namespace)
			out = append(out, topic("Service", namespace, ref.Name))
			if namespace != r.Namespace {
				out = append(out, grants(namespace), topic("Namespace", "", namespace))
			}
		}
	}
	return out
}

// ingressBackends returns the topics of the backends of an Ingress.
func ingressBackends(in *service.Ingress) (out []string) {
	for _, rule := range in.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			if s := p.Backend.Service; s != nil {
				out = append(out, topic("Service", in.Namespace, s.Name))
			}
		}
	}
	return out
}

// subset returns the objects that concern a hostname, and the routes and Ingresses that have it.
func (x *index) subset(key Key) (*service.Objects, []*object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var owners []*object
	for _, o := range x.keys[key] {
		owners = append(owners, o)
	}
	slices.SortFunc(owners, func(a, b *object) int { return a.id.compare(b.id) })
	out := &service.Objects{Given: slices.Clone(x.kinds)}
	var needs []string
	missing := false
	for _, o := range owners {
		merge(out, o.parsed)
		needs = append(needs, o.needs...)
	}
	slices.Sort(needs)
	needs = slices.Compact(needs)
	x.mergeLocked(out, needs)
	for _, a := range out.At(key.Host) {
		missing = missing || a.Problem == service.NoParent
	}
	if missing {
		x.suggestLocked(out)
	}
	return out, owners
}

// suggestLocked adds some Gateways that the owner of a route may have meant. The caller holds mu.
func (x *index) suggestLocked(out *service.Objects) {
	var all []*object
	for _, o := range x.about[anyGateway] {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *object) int { return a.id.compare(b.id) })
	for _, o := range all[:min(len(all), maxSuggested)] {
		g := o.parsed.Gateways[0]
		if !slices.ContainsFunc(out.Gateways, func(h service.Gateway) bool {
			return h.Namespace == g.Namespace && h.Name == g.Name
		}) {
			out.Gateways = append(out.Gateways, g)
		}
	}
}

// mergeLocked adds the objects of topics, each once and in a fixed order. With kinds, only those. The caller holds mu.
func (x *index) mergeLocked(out *service.Objects, topics []string, kinds ...string) {
	found := map[objectID]*object{}
	for _, t := range topics {
		for id, o := range x.about[t] {
			if len(kinds) == 0 || slices.Contains(kinds, id.kind) {
				found[id] = o
			}
		}
	}
	all := make([]*object, 0, len(found))
	for _, o := range found {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *object) int { return a.id.compare(b.id) })
	for _, o := range all {
		merge(out, o.parsed)
	}
}

// merge adds objects.
func merge(to, from *service.Objects) {
	to.Classes = append(to.Classes, from.Classes...)
	to.Gateways = append(to.Gateways, from.Gateways...)
	to.ListenerSets = append(to.ListenerSets, from.ListenerSets...)
	to.Routes = append(to.Routes, from.Routes...)
	to.Grants = append(to.Grants, from.Grants...)
	to.Policies = append(to.Policies, from.Policies...)
	to.Ingresses = append(to.Ingresses, from.Ingresses...)
	to.Services = append(to.Services, from.Services...)
	to.Slices = append(to.Slices, from.Slices...)
	to.Certificates = append(to.Certificates, from.Certificates...)
	to.Namespaces = append(to.Namespaces, from.Namespaces...)
}

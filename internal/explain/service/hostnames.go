package service

import (
	"cmp"
	"slices"
	"strings"
)

// Problem is the reason why a hostname is not served by a listener.
type Problem string

// The problems, in the order in which they are found. The empty Problem means that the hostname is served.
const (
	NoParent   Problem = "no parent"   // the route names a Gateway that does not exist
	NoListener Problem = "no listener" // the Gateway has no listener with the name or port of the reference
	WrongKind  Problem = "wrong kind"  // no listener accepts routes of this kind
	NotAllowed Problem = "not allowed" // no listener accepts routes of this namespace
	NoHostname Problem = "no hostname" // no listener has a hostname that matches
	NoRoute    Problem = "no route"    // the listener has a hostname that no route uses
)

// Attachment is one hostname of a route at one of its parents, of an Ingress, or of a listener without a route.
type Attachment struct {
	Host     string // in lower case; "*.example.com" for all names below; "" if neither side has a hostname
	Route    *Route
	Parent   *ObjectRef // the reference of the route that led here
	Gateway  *Gateway   // nil if it does not exist
	Set      *ListenerSet
	Listener *Listener // nil if none matches
	Ingress  *Ingress
	Problem  Problem
}

// Attachments returns what each route, Ingress and listener makes of its hostnames.
func (o *Objects) Attachments() (out []Attachment) {
	for i := range o.Routes {
		r := &o.Routes[i]
		for p := range r.Spec.Parents {
			out = append(out, o.attach(r, &r.Spec.Parents[p])...)
		}
		if len(r.Spec.Parents) == 0 {
			out = append(out, missing(r, nil)...)
		}
	}
	for i := range o.Ingresses {
		in := &o.Ingresses[i]
		for _, rule := range in.Spec.Rules {
			out = append(out, Attachment{Host: normal(rule.Host), Ingress: in})
		}
	}
	for _, e := range o.endpoints() {
		used := slices.ContainsFunc(out, func(a Attachment) bool { return a.Listener == e.Listener && a.Problem == "" })
		if !used && e.Listener.Hostname != "" {
			out = append(out, Attachment{Host: normal(e.Listener.Hostname), Gateway: e.Gateway, Set: e.Set,
				Listener: e.Listener, Problem: NoRoute})
		}
	}
	return out
}

// Hosts returns every hostname that a person wants to reach, sorted. A hostname that only a listener without a route
// has is left out if a route serves names below it.
func (o *Objects) Hosts() []string {
	var out, idle []string
	for _, a := range o.Attachments() {
		switch {
		case a.Host == "":
		case a.Problem == NoRoute:
			idle = append(idle, a.Host)
		default:
			out = append(out, a.Host)
		}
	}
	for _, host := range idle {
		if !slices.ContainsFunc(out, func(h string) bool { _, ok := Intersect(host, h); return ok }) {
			out = append(out, host)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// At returns the attachments of one hostname.
func (o *Objects) At(host string) []Attachment {
	return slices.DeleteFunc(o.Attachments(), func(a Attachment) bool { return a.Host != host })
}

// endpoint is a listener with the object that has it.
type endpoint struct {
	Gateway  *Gateway
	Set      *ListenerSet
	Listener *Listener
}

// endpoints returns all listeners.
func (o *Objects) endpoints() (out []endpoint) {
	for i := range o.Gateways {
		g := &o.Gateways[i]
		for l := range g.Spec.Listeners {
			out = append(out, endpoint{Gateway: g, Listener: &g.Spec.Listeners[l]})
		}
	}
	for i := range o.ListenerSets {
		s := &o.ListenerSets[i]
		g := o.gateway(cmp.Or(s.Spec.Parent.Namespace, s.Namespace), s.Spec.Parent.Name)
		for l := range s.Spec.Listeners {
			out = append(out, endpoint{Gateway: g, Set: s, Listener: &s.Spec.Listeners[l]})
		}
	}
	return out
}

func (o *Objects) gateway(namespace, name string) *Gateway {
	return find(o.Gateways, func(g *Gateway) bool { return g.Namespace == namespace && g.Name == name })
}

// find returns the first object for which is returns true, or nil.
func find[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// attach matches a route with the listeners of one parent. The order of the steps is that of the Gateway API: a reason
// is reported only if all steps before it passed.
func (o *Objects) attach(r *Route, ref *ObjectRef) (out []Attachment) {
	all := slices.DeleteFunc(o.endpoints(), func(e endpoint) bool { return !e.isParent(r, ref) })
	if len(all) == 0 {
		return missing(r, ref)
	}
	left := all
	for _, step := range []struct {
		problem Problem
		pass    func(endpoint) bool
	}{
		{NoListener, func(e endpoint) bool {
			return (ref.Section == "" || ref.Section == e.Listener.Name) && (ref.Port == 0 || ref.Port == e.Listener.Port)
		}},
		{WrongKind, func(e endpoint) bool { return e.takes(r.Kind) }},
		{NotAllowed, func(e endpoint) bool { return o.allows(e, r) }},
	} {
		next := slices.DeleteFunc(slices.Clone(left), func(e endpoint) bool { return !step.pass(e) })
		if len(next) == 0 {
			return refused(r, ref, left[0], step.problem)
		}
		left = next
	}
	for _, host := range hostnames(r) {
		matched := false
		for _, e := range left {
			if both, ok := Intersect(e.Listener.Hostname, host); ok {
				matched = true
				out = append(out, Attachment{Host: both, Route: r, Parent: ref, Gateway: e.Gateway, Set: e.Set,
					Listener: e.Listener})
			}
		}
		if !matched {
			out = append(out, Attachment{Host: normal(host), Route: r, Parent: ref, Gateway: left[0].Gateway,
				Set: left[0].Set, Problem: NoHostname})
		}
	}
	return out
}

// hostnames returns the hostnames of a route. A route without hostnames serves those of its listeners.
func hostnames(r *Route) []string {
	if len(r.Spec.Hostnames) == 0 {
		return []string{""}
	}
	return r.Spec.Hostnames
}

// missing returns the attachments of a route whose parent does not exist.
func missing(r *Route, ref *ObjectRef) (out []Attachment) {
	for _, host := range hostnames(r) {
		out = append(out, Attachment{Host: normal(host), Route: r, Parent: ref, Problem: NoParent})
	}
	return out
}

// refused returns the attachments of a route that no listener accepts.
func refused(r *Route, ref *ObjectRef, e endpoint, why Problem) (out []Attachment) {
	for _, host := range hostnames(r) {
		out = append(out, Attachment{Host: normal(host), Route: r, Parent: ref, Gateway: e.Gateway, Set: e.Set, Problem: why})
	}
	return out
}

// isParent reports whether a reference of a route names the object that has the listener.
func (e endpoint) isParent(r *Route, ref *ObjectRef) bool {
	if ref.Group != nil && *ref.Group != GatewayGroup && *ref.Group != experimentsGroup {
		return false
	}
	namespace := cmp.Or(ref.Namespace, r.Namespace)
	switch cmp.Or(ref.Kind, "Gateway") {
	case "Gateway":
		return e.Set == nil && e.Gateway != nil && e.Gateway.Namespace == namespace && e.Gateway.Name == ref.Name
	case "ListenerSet", "XListenerSet":
		return e.Set != nil && e.Set.Namespace == namespace && e.Set.Name == ref.Name
	}
	return false
}

// takes reports whether the listener accepts routes of a kind, by its protocol and by allowedRoutes.kinds.
func (e endpoint) takes(kind string) bool {
	if kinds := e.Listener.Allowed.Kinds; len(kinds) > 0 {
		ok := false
		for _, k := range kinds {
			ok = ok || k.Kind == kind && (k.Group == nil || *k.Group == GatewayGroup)
		}
		if !ok {
			return false
		}
	}
	switch e.Listener.Protocol {
	case "HTTP", "HTTPS":
		return kind == "HTTPRoute" || kind == "GRPCRoute"
	case "TLS":
		return kind == "TLSRoute"
	case "TCP", "UDP":
		return false
	}
	return true // a protocol of the controller's own
}

// allows reports whether the listener accepts routes of the namespace of r. The selector selects by the labels of the
// namespace, not by those of the route.
func (o *Objects) allows(e endpoint, r *Route) bool {
	owner := ""
	switch {
	case e.Set != nil:
		owner = e.Set.Namespace
	case e.Gateway != nil:
		owner = e.Gateway.Namespace
	}
	switch n := e.Listener.Allowed.Namespaces; n.From {
	case "All":
		return true
	case "None":
		return false
	case "Selector":
		return n.Selector != nil && n.Selector.matches(o.Labels(r.Namespace))
	}
	return r.Namespace == owner
}

// MissingLabels returns the labels, as name=value, that a listener of the attachment wants and the namespace of its
// route does not have.
func (o *Objects) MissingLabels(a Attachment) (out []string) {
	have := o.Labels(a.Route.Namespace)
	for _, e := range o.endpoints() {
		n := e.Listener.Allowed.Namespaces
		if e.Gateway != a.Gateway || e.Set != a.Set || n.From != "Selector" || n.Selector == nil {
			continue
		}
		for k, v := range n.Selector.Labels {
			if text := k + "=" + v; have[k] != v && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Labels returns the labels of a namespace. Kubernetes sets one on every namespace.
func (o *Objects) Labels(namespace string) map[string]string {
	out := map[string]string{"kubernetes.io/metadata.name": namespace}
	if n := find(o.Namespaces, func(n *Namespace) bool { return n.Name == namespace }); n != nil {
		for k, v := range n.Labels {
			out[k] = v
		}
	}
	return out
}

// matches reports whether the selector selects an object with these labels. An empty selector selects all.
func (s *Selector) matches(labels map[string]string) bool {
	for k, v := range s.Labels {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	for _, e := range s.Expressions {
		value, ok := labels[e.Key]
		in := ok && slices.Contains(e.Values, value)
		if e.Operator == "In" && !in || e.Operator == "NotIn" && in || e.Operator == "Exists" && !ok ||
			e.Operator == "DoesNotExist" && ok {
			return false
		}
	}
	return true
}

// Intersect returns the hostname that a listener and a route have in common. A wildcard stands for one or more labels.
// An empty hostname matches every name.
func Intersect(listener, route string) (host string, ok bool) {
	l, r := normal(listener), normal(route)
	switch {
	case l == "" || within(r, l):
		return r, true
	case r == "" || l == r || within(l, r):
		return l, true
	}
	return "", false
}

// within reports whether all names of a hostname are names of the wildcard.
func within(host, wildcard string) bool {
	suffix, ok := strings.CutPrefix(wildcard, "*")
	return ok && host != "" && strings.HasSuffix(host, suffix) && host != suffix
}

// normal returns a hostname in lower case, without the final dot.
func normal(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

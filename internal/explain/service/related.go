package service

import (
	"cmp"
	"slices"
)

// Has reports whether the input had objects of one of these kinds. Without any, a missing object means nothing.
func (o *Objects) Has(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool { return slices.Contains(o.Given, k) })
}

// Related returns the objects that concern a hostname. All Gateways and classes stay, because a report suggests names
// of them.
func (o *Objects) Related(host string) *Objects {
	out := *o
	at := o.At(host)
	out.Routes = kept(o.Routes, func(r *Route) bool {
		return slices.ContainsFunc(at, func(a Attachment) bool { return a.Route == r })
	})
	out.Ingresses = kept(o.Ingresses, func(in *Ingress) bool {
		return slices.ContainsFunc(at, func(a Attachment) bool { return a.Ingress == in })
	})
	var backends []string // "namespace/name"
	for _, b := range o.Backends(host) {
		backends = append(backends, b.Service)
	}
	out.Services = kept(o.Services, func(s *Service) bool { return slices.Contains(backends, s.Namespace+"/"+s.Name) })
	out.Slices = kept(o.Slices, func(s *Slice) bool {
		return slices.Contains(backends, s.Namespace+"/"+s.Labels[serviceLabel])
	})
	out.Certificates = kept(o.Certificates, func(c *Certificate) bool {
		return slices.Contains(c.Spec.Names, host) || slices.ContainsFunc(at, func(a Attachment) bool { return a.uses(c) })
	})
	out.Challenges = kept(o.Challenges, func(c *Challenge) bool { return normal(c.Spec.Host) == host })
	namespaces := map[string]bool{}
	for i := range out.Routes {
		namespaces[out.Routes[i].Namespace] = true
		for _, rule := range out.Routes[i].Spec.Rules {
			for _, ref := range rule.Backends {
				namespaces[cmp.Or(ref.Namespace, out.Routes[i].Namespace)] = true
			}
		}
	}
	out.Namespaces = kept(o.Namespaces, func(n *Namespace) bool { return namespaces[n.Name] })
	out.Grants = kept(o.Grants, func(g *Grant) bool { return namespaces[g.Namespace] })
	out.Policies = kept(o.Policies, func(p *Policy) bool { return namespaces[p.Namespace] })
	return &out
}

// uses reports whether the listener of the attachment has a certificate.
func (a Attachment) uses(c *Certificate) bool {
	if a.Listener == nil || a.Listener.TLS == nil || c.Spec.Secret == "" {
		return false
	}
	owner := ""
	switch {
	case a.Set != nil:
		owner = a.Set.Namespace
	case a.Gateway != nil:
		owner = a.Gateway.Namespace
	}
	return slices.ContainsFunc(a.Listener.TLS.Certificates, func(ref ObjectRef) bool {
		return ref.Name == c.Spec.Secret && cmp.Or(ref.Namespace, owner) == c.Namespace
	})
}

// CertificatesOf returns the Certificates whose Secret the listener of an attachment names.
func (o *Objects) CertificatesOf(a Attachment) []Certificate { return kept(o.Certificates, a.uses) }

// kept returns the elements for which keep returns true.
func kept[T any](all []T, keep func(*T) bool) (out []T) {
	for i := range all {
		if keep(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

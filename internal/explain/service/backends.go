package service

import (
	"cmp"
	"slices"
)

// Backend is a Service that rules of a hostname send requests to, and how many of its endpoints are ready.
type Backend struct {
	Service string `json:"service"` // "shop/web"
	Port    int    `json:"port,omitempty"`
	Known   bool   `json:"known"` // the objects of the Service are in the input
	Found   bool   `json:"found"`
	HasPort bool   `json:"hasPort"`
	Slices  int    `json:"slices"` // number of EndpointSlices; without any, Ready is not known
	Ready   int    `json:"ready"`
	Ending  int    `json:"ending"` // endpoints that are terminating
	Total   int    `json:"total"`
	Refused bool   `json:"refused,omitempty"` // it is in another namespace, and no ReferenceGrant permits the reference
	Grant   string `json:"grant,omitempty"`   // the ReferenceGrant that is missing
}

// serviceLabel is the label of an EndpointSlice with the name of its Service.
const serviceLabel = "kubernetes.io/service-name"

// Backends returns the backends of a hostname, in the order of the rules.
func (o *Objects) Backends(host string) (out []Backend) {
	for _, a := range o.At(host) {
		switch {
		case a.Ingress != nil:
			for _, rule := range a.Ingress.Spec.Rules {
				if normal(rule.Host) != host || rule.HTTP == nil {
					continue
				}
				for _, p := range rule.HTTP.Paths {
					if s := p.Backend.Service; s != nil {
						out = append(out, o.backend(a.Ingress.Namespace, s.Name, s.Port.Number))
					}
				}
			}
		case a.Route != nil && a.Problem == "":
			for _, rule := range a.Route.Spec.Rules {
				for _, ref := range rule.Backends {
					if cmp.Or(ref.Kind, "Service") == "Service" {
						b := o.backend(cmp.Or(ref.Namespace, a.Route.Namespace), ref.Name, ref.Port)
						if b.Refused = !o.granted(a.Route, ref); b.Refused {
							ref.Kind = "Service"
							b.Grant = NewGrant(a.Route.Kind, a.Route.Namespace, ref)
						}
						out = append(out, b)
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Backend) int { return cmp.Compare(a.Service, b.Service) })
	return slices.Compact(out)
}

// backend counts the endpoints of a Service.
func (o *Objects) backend(namespace, name string, port int) Backend {
	b := Backend{Service: namespace + "/" + name, Port: port, Known: o.Has("Service")}
	if s := find(o.Services, func(s *Service) bool { return s.Namespace == namespace && s.Name == name }); s != nil {
		b.Found = true
		for _, p := range s.Spec.Ports {
			b.HasPort = b.HasPort || port == 0 || p.Port == port
		}
	}
	for _, s := range o.Slices {
		if s.Namespace != namespace || s.Labels[serviceLabel] != name {
			continue
		}
		b.Slices++
		for _, e := range s.Endpoints {
			b.Total++
			switch c := e.Conditions; {
			case c.Terminating != nil && *c.Terminating:
				b.Ending++
			case c.Ready == nil || *c.Ready:
				b.Ready++
			}
		}
	}
	return b
}

// granted reports whether a route may use a backend: one of its own namespace, or one that a ReferenceGrant permits.
func (o *Objects) granted(r *Route, ref ObjectRef) bool {
	if ref.Namespace == "" || ref.Namespace == r.Namespace {
		return true
	}
	return slices.ContainsFunc(o.Grants, func(g Grant) bool {
		if g.Namespace != ref.Namespace {
			return false
		}
		from, to := false, false
		for _, f := range g.Spec.From {
			from = from || f.Group == GatewayGroup && f.Kind == r.Kind && f.Namespace == r.Namespace
		}
		for _, t := range g.Spec.To {
			to = to || t.Group == "" && t.Kind == "Service" && (t.Name == "" || t.Name == ref.Name)
		}
		return from && to
	})
}

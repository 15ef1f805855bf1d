package check

import "github.com/nameplane/nameplane/internal/explain"

// backendsFound is check SVC11. The objects name the Service and the grant that is missing; the condition adds reasons
// that only the controller knows, such as a kind that it does not support.
func backendsFound(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil || f.Service.Objects == nil {
		return nil
	}
	for _, b := range f.Service.Objects.Backends(f.Service.Host) {
		if b.Refused {
			x := fail("", explain.You, "Service "+b.Service, "The Service %s is in another namespace than its route, and no "+
				"ReferenceGrant there allows it.", b.Service)
			x.Fix = "Create this ReferenceGrant with kubectl apply: " + b.Grant
			out = append(out, x)
		}
		// A file without any Service says nothing. A file that has Services is expected to have all of them.
		if !b.Found && (f.Service.Whole || b.Known) {
			out = append(out, fail("", explain.You, "Service "+b.Service, "The Service %s does not exist.", b.Service))
		}
	}
	failed := len(out) > 0
	for _, a := range attachments(f) {
		if a.Route == nil || a.Problem != "" {
			continue
		}
		switch c, fact := condition(parentStatus(a), "ResolvedRefs", a.Route.Generation); {
		case fact == explain.No:
			out = append(out, fail("", explain.You, a.Route.String(), "%s has a backend that cannot be used: %s", a.Route,
				because(c)))
		// The condition may be older than the Services: it does not outweigh one that is missing now.
		case fact == explain.Yes && !failed:
			out = append(out, pass(a.Route.String(), "The backends of %s are valid.", a.Route)...)
		}
	}
	return out
}

// endpointsReady is check HTTP06. EndpointSlices are read and not pods: they are what the Gateway sends requests to,
// and they contain the result of the readiness probes.
func endpointsReady(f *explain.Facts) (out []explain.Finding) {
	if f.Service == nil || f.Service.Objects == nil {
		return nil
	}
	for _, b := range f.Service.Objects.Backends(f.Service.Host) {
		subject := "Service " + b.Service
		switch {
		case !b.Found:
		case !b.HasPort:
			out = append(out, fail("", explain.You, subject, "The Service %s has no port %d.", b.Service, b.Port))
		case b.Slices == 0 && !f.Service.Whole:
			out = append(out, unknown(subject, "The input has no EndpointSlice of the Service %s.", b.Service)...)
		// A deployment that is being replaced or scaled to zero needs another fix than a readiness probe that fails.
		case b.Ready == 0 && b.Total > 0 && b.Ending == b.Total:
			out = append(out, fail("", explain.You, subject, "All %d endpoints of the Service %s are terminating.", b.Total,
				b.Service))
		case b.Ready == 0:
			out = append(out, fail("", explain.You, subject, "The Service %s has no ready endpoint: 0 of %d.", b.Service,
				b.Total))
		default:
			out = append(out, pass(subject, "The Service %s has %d ready endpoints of %d.", b.Service, b.Ready, b.Total)...)
		}
	}
	return out
}

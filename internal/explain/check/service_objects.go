package check

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// attachments returns what the objects make of the hostname, or nil without objects.
func attachments(f *explain.Facts) []service.Attachment {
	if f.Service == nil || f.Service.Objects == nil {
		return nil
	}
	return f.Service.Objects.At(f.Service.Host)
}

// condition returns a condition and what it says. It is unknown if it is missing, or if the controller has not seen the
// newest version of the object. A missing condition is Unasked: some conditions exist only while they are True, so
// callers must decide what their absence means.
func condition(all []service.Condition, kind string, generation int64) (service.Condition, explain.Fact) {
	c, ok := find(all, func(c service.Condition) bool { return c.Type == kind })
	switch {
	case !ok:
		return c, explain.Unasked
	case c.Generation != 0 && c.Generation < generation:
		return c, explain.Unknown
	case c.Status == "True":
		return c, explain.Yes
	case c.Status == "False":
		return c, explain.No
	}
	return c, explain.Unknown
}

// accepted judges a condition that must be True.
func accepted(all []service.Condition, kind string, h service.Head) []explain.Finding {
	c, fact := condition(all, kind, h.Generation)
	switch fact {
	case explain.Yes:
		return pass(h.String(), "%s: the condition %s is True.", h, kind)
	case explain.No:
		return []explain.Finding{fail("", explain.You, h.String(), "%s is not %s: %s", h, strings.ToLower(kind), because(c))}
	case explain.Unasked:
		return unknown(h.String(), "%s has no condition %s.", h, kind)
	}
	return unknown(h.String(), "The controller has not yet judged the newest version of %s.", h)
}

// because returns why a condition has its status.
func because(c service.Condition) string {
	if c.Message == "" {
		return sentence(c.Reason)
	}
	return fmt.Sprintf("%s (%s).", strings.TrimRight(c.Message, ". "), c.Reason)
}

// each returns the findings of judge for every different object of the attachments.
func each[T any](f *explain.Facts, object func(service.Attachment) *T, judge func(
	service.Attachment) []explain.Finding) (
	out []explain.Finding) {
	var seen []*T
	for _, a := range attachments(f) {
		if x := object(a); x != nil && !slices.Contains(seen, x) {
			seen = append(seen, x)
			out = append(out, judge(a)...)
		}
	}
	return out
}

func gatewayOf(a service.Attachment) *service.Gateway   { return a.Gateway }
func listenerOf(a service.Attachment) *service.Listener { return a.Listener }

// classAccepted is check SVC01.
func classAccepted(f *explain.Facts) []explain.Finding {
	return each(f, gatewayOf, func(a service.Attachment) []explain.Finding {
		name := a.Gateway.Spec.Class
		c, ok := find(f.Service.Objects.Classes, func(c service.Class) bool { return c.Name == name })
		switch {
		case ok:
			return accepted(c.Status.Conditions, "Accepted", c.Head)
		// An input with other classes is expected to have this one, too.
		case f.Service.Whole || f.Service.Objects.Has("GatewayClass"):
			return []explain.Finding{fail("", explain.You, "GatewayClass "+name,
				"%s names the GatewayClass %s, which does not exist.",
				a.Gateway, name)}
		}
		return unknown("GatewayClass "+name, "The GatewayClass %s is not in the input.", name)
	})
}

// gatewayAccepted is check SVC02. It is judged by the listener where only some listeners are wrong.
func gatewayAccepted(f *explain.Facts) []explain.Finding {
	out := each(f, gatewayOf, func(a service.Attachment) []explain.Finding {
		c, fact := condition(a.Gateway.Status.Conditions, "Accepted", a.Gateway.Generation)
		if fact == explain.No && c.Reason == "ListenersNotValid" {
			return []explain.Finding{fail(explain.Warning, explain.You, a.Gateway.String(),
				"Some listeners of %s are not valid: %s",
				a.Gateway, because(c))}
		}
		return accepted(a.Gateway.Status.Conditions, "Accepted", a.Gateway.Head)
	})
	return append(out, each(f, func(a service.Attachment) *service.ListenerSet { return a.Set },
		func(a service.Attachment) []explain.Finding {
			return accepted(a.Set.Status.Conditions, "Accepted", a.Set.Head)
		})...)
}

// gatewayProgrammed is check SVC03. Some controllers leave out the condition: then the addresses decide.
func gatewayProgrammed(f *explain.Facts) []explain.Finding {
	return each(f, gatewayOf, func(a service.Attachment) []explain.Finding {
		g := a.Gateway
		c, fact := condition(g.Status.Conditions, "Programmed", g.Generation)
		switch {
		case fact == explain.No:
			return []explain.Finding{fail("", explain.You, g.String(), "%s has no address that can be used: %s", g, because(c))}
		case len(g.Status.Addresses) > 0:
			return pass(g.String(), "%s has an address.", g)
		case fact == explain.Yes:
			return []explain.Finding{fail("", explain.You, g.String(), "%s has no address yet: nothing can point to it.", g)}
		}
		return unknown(g.String(), "The status of %s has no address and no condition Programmed.", g)
	})
}

// listenerStatus returns the status of the listener of an attachment.
func listenerStatus(a service.Attachment) (service.ListenerStatus, int64) {
	all, generation := []service.ListenerStatus(nil), int64(0)
	switch {
	case a.Set != nil:
		all, generation = a.Set.Status.Listeners, a.Set.Generation
	case a.Gateway != nil:
		all, generation = a.Gateway.Status.Listeners, a.Gateway.Generation
	}
	s, _ := find(all, func(s service.ListenerStatus) bool { return s.Name == a.Listener.Name })
	return s, generation
}

// listenerName returns the listener of an attachment in words.
func listenerName(a service.Attachment) string {
	if a.Set != nil {
		return fmt.Sprintf("listener %s of %s", a.Listener.Name, a.Set)
	}
	return fmt.Sprintf("listener %s of %s", a.Listener.Name, a.Gateway)
}

// refusal returns the condition that says that the controller does not serve the listener of an attachment. Accepted
// comes first: it has the cause, and a listener that is not accepted is not programmed either.
func refusal(a service.Attachment) (service.Condition, bool) {
	s, generation := listenerStatus(a)
	for _, kind := range []string{"Accepted", "Programmed"} {
		if c, fact := condition(s.Conditions, kind, generation); fact == explain.No {
			return c, true
		}
	}
	return service.Condition{}, false
}

// replaces reports whether b serves the hostname of a with the same protocol. A listener for HTTP does not replace one
// for HTTPS: clients of the other protocol still fail.
func replaces(b, a service.Attachment) bool {
	if b.Listener == nil || b.Problem != "" || b.Listener.Protocol != a.Listener.Protocol {
		return false
	}
	_, refused := refusal(b)
	return !refused
}

// listenerConflict is check SVC05. Conflicted is the one condition that must be False.
func listenerConflict(f *explain.Facts) []explain.Finding {
	return each(f, listenerOf, func(a service.Attachment) []explain.Finding {
		s, generation := listenerStatus(a)
		if c, refused := refusal(a); refused {
			severity := explain.Severity("")
			if slices.ContainsFunc(attachments(f), func(b service.Attachment) bool { return replaces(b, a) }) {
				severity = explain.Warning // the hostname works at another port
			}
			return []explain.Finding{fail(severity, explain.You, listenerName(a), "The %s is not %s: %s", listenerName(a),
				strings.ToLower(c.Type), because(c))}
		}
		c, fact := condition(s.Conditions, "Conflicted", generation)
		switch fact {
		case explain.Yes:
			return []explain.Finding{fail("", explain.You, listenerName(a), "The %s conflicts with another one: %s",
				listenerName(a), because(c))}
		case explain.Unknown:
			return unknown(listenerName(a), "The controller has not yet judged the newest version of the %s.", listenerName(a))
		}
		return pass(listenerName(a), "The %s has no conflict.", listenerName(a))
	})
}

// listenerRefs is check SVC06.
func listenerRefs(f *explain.Facts) []explain.Finding {
	return each(f, listenerOf, func(a service.Attachment) []explain.Finding {
		s, generation := listenerStatus(a)
		c, fact := condition(s.Conditions, "ResolvedRefs", generation)
		name := listenerName(a)
		switch {
		case a.Listener.TLS == nil && a.Listener.Protocol == "HTTPS":
			return []explain.Finding{fail("", explain.You, name, "The %s has the protocol HTTPS and no certificate.", name)}
		case fact == explain.No:
			x := fail("", explain.You, name, "The %s has a reference that cannot be used: %s", name, because(c))
			if grants := missingGrants(a); c.Reason == "RefNotPermitted" && len(grants) > 0 {
				x.Fix = "Create with kubectl apply: " + strings.Join(grants, " and ")
			}
			return []explain.Finding{x}
		case fact == explain.Yes:
			return pass(name, "The references of the %s are valid.", name)
		case a.Listener.TLS == nil:
			return nil // no certificate is needed
		}
		return unknown(name, "The %s has no valid condition ResolvedRefs.", name)
	})
}

// missingGrants returns the ReferenceGrants for the certificates of a listener that are in other namespaces. A grant
// is in the namespace of the Secret: the owner of the Secret decides, not the owner of the Gateway.
func missingGrants(a service.Attachment) (out []string) {
	kind, namespace := "Gateway", ""
	switch {
	case a.Set != nil:
		kind, namespace = a.Set.Kind, a.Set.Namespace
	case a.Gateway != nil:
		namespace = a.Gateway.Namespace
	}
	if a.Listener.TLS == nil {
		return nil
	}
	for _, ref := range a.Listener.TLS.Certificates {
		if ref.Namespace != "" && ref.Namespace != namespace {
			ref.Kind = "Secret"
			out = append(out, service.NewGrant(kind, namespace, ref))
		}
	}
	return out
}

// routeFinding returns the findings of one problem: a failure for each route that has it, and a pass for each route
// that gets past it. A route with another problem gets no finding: its own check reports it, and later steps cannot be
// judged.
func routeFinding(f *explain.Facts, problem service.Problem, words func(service.Attachment) string) (
	out []explain.Finding) {
	for _, a := range attachments(f) {
		switch {
		case a.Route == nil:
		case a.Problem == problem:
			out = append(out, fail("", explain.You, a.Route.String(), "%s", words(a)))
		case a.Problem == "":
			out = append(out, pass(a.Route.String(), "%s is attached to the %s.", a.Route, listenerName(a))...)
		}
	}
	return out
}

// routeParent is check SVC07.
func routeParent(f *explain.Facts) []explain.Finding {
	out := routeFinding(f, service.NoParent, func(a service.Attachment) string {
		if a.Parent == nil {
			return fmt.Sprintf("%s has no parentRefs: no Gateway serves it.", a.Route)
		}
		want := cmp.Or(a.Parent.Namespace, a.Route.Namespace) + "/" + a.Parent.Name
		near := nearest(want, words.Each(f.Service.Objects.Gateways, func(g service.Gateway) string {
			return g.Namespace + "/" + g.Name
		}))
		return fmt.Sprintf("%s names the %s %s, which does not exist%s.", a.Route, cmp.Or(a.Parent.Kind, "Gateway"), want,
			near)
	})
	for _, a := range attachments(f) {
		// A route with a status of other controllers was seen by the API server, and this controller says nothing.
		if a.Route != nil && a.Problem == "" && f.Service.Whole && len(parentStatus(a)) == 0 {
			out = append(out, fail("", explain.You, a.Route.String(), "No controller has written a status for %s at %s.",
				a.Route, a.Gateway))
		}
	}
	return out
}

// nearest returns a suggestion for a name that does not exist.
func nearest(name string, all []string) string {
	// If more than a third differs, the names have nothing in common, and a suggestion would mislead.
	best, least := "", max(3, len(name)/3)
	for _, other := range all {
		if d := service.Distance(name, other); d < least {
			best, least = other, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// parentStatus returns the conditions of a route at the parent of an attachment. A namespace that is left out is that
// of the route, on both sides: controllers may write it out.
func parentStatus(a service.Attachment) []service.Condition {
	if a.Route == nil || a.Parent == nil {
		return nil
	}
	p, _ := find(a.Route.Status.Parents, func(p service.ParentStatus) bool {
		return p.Parent.Name == a.Parent.Name && p.Parent.Section == a.Parent.Section &&
			cmp.Or(p.Parent.Namespace, a.Route.Namespace) == cmp.Or(a.Parent.Namespace, a.Route.Namespace)
	})
	return p.Conditions
}

// routeSection is check SVC08.
func routeSection(f *explain.Facts) []explain.Finding {
	return routeFinding(f, service.NoListener, func(a service.Attachment) string {
		var names []string
		if a.Gateway != nil {
			names = words.Each(a.Gateway.Spec.Listeners, func(l service.Listener) string { return l.Name })
		}
		if a.Set != nil {
			names = words.Each(a.Set.Spec.Listeners, func(l service.Listener) string { return l.Name })
		}
		wanted := a.Parent.Section
		if wanted == "" {
			wanted = fmt.Sprintf("with port %d", a.Parent.Port)
		}
		return fmt.Sprintf("%s wants the listener %s, but the listeners are %s%s.", a.Route, wanted, words.List(names),
			nearest(a.Parent.Section, names))
	})
}

// routeAllowed is check SVC09.
func routeAllowed(f *explain.Facts) []explain.Finding {
	out := routeFinding(f, service.NotAllowed, func(a service.Attachment) string {
		return fmt.Sprintf("%s accepts no routes of the namespace %s.", a.Gateway, a.Route.Namespace)
	})
	// The condition Accepted decides about a pass: the controller may refuse for a reason that the objects do not show.
	out = slices.DeleteFunc(out, func(x explain.Finding) bool { return x.Status == explain.Pass })
	for i, a := range only(attachments(f), func(a service.Attachment) bool { return a.Problem == service.NotAllowed }) {
		if labels := f.Service.Objects.MissingLabels(a); len(labels) > 0 {
			out[i].Fix = fmt.Sprintf("Add the label that the listener wants: kubectl label namespace %s %s", a.Route.Namespace,
				strings.Join(labels, " "))
		}
	}
	for _, a := range attachments(f) {
		if a.Route != nil && a.Problem == service.WrongKind {
			out = append(out, fail("", explain.You, a.Route.String(), "No listener of %s accepts a %s.", a.Gateway,
				a.Route.Kind))
		}
		if a.Route == nil || a.Problem != "" {
			continue
		}
		if _, refused := refusal(a); refused {
			continue // SVC05: no route can be accepted there
		}
		switch c, fact := condition(parentStatus(a), "Accepted", a.Route.Generation); fact {
		case explain.No:
			out = append(out, fail("", explain.You, a.Route.String(), "%s is not accepted by %s: %s", a.Route, a.Gateway,
				because(c)))
		case explain.Yes:
			out = append(out, pass(a.Route.String(), "%s is accepted by %s.", a.Route, a.Gateway)...)
		default:
			out = append(out, unknown(a.Route.String(), "%s has no current condition Accepted of %s.", a.Route, a.Gateway)...)
		}
	}
	return out
}

// routeHostname is check SVC10. The condition is not needed: the intersection of hostnames is defined by the API, and
// this names the listeners.
func routeHostname(f *explain.Facts) []explain.Finding {
	return routeFinding(f, service.NoHostname, func(a service.Attachment) string {
		var names []string
		for _, l := range a.Gateway.Spec.Listeners {
			names = append(names, cmp.Or(l.Hostname, "any name"))
		}
		return fmt.Sprintf("No listener of %s serves %s: its listeners have %s.", a.Gateway, a.Host, words.Some(names))
	})
}

// routePartial is check SVC12.
func routePartial(f *explain.Facts) (out []explain.Finding) {
	for _, a := range attachments(f) {
		if a.Route == nil || a.Problem != "" {
			continue
		}
		switch c, fact := condition(parentStatus(a), "PartiallyInvalid", a.Route.Generation); fact {
		case explain.Yes:
			out = append(out, fail("", explain.You, a.Route.String(), "Some rules of %s are left out: %s", a.Route, because(c)))
		case explain.Unknown:
			out = append(out, unknown(a.Route.String(), "The newest version of %s is not yet judged.", a.Route)...)
		default: // the condition is there only when it is True
			out = append(out, pass(a.Route.String(), "The rules of %s are valid.", a.Route)...)
		}
	}
	return out
}

// listenerRoutes is check SVC13. A whole cluster is needed: a file may simply not have the route.
func listenerRoutes(f *explain.Facts) (out []explain.Finding) {
	all := attachments(f)
	if len(all) == 0 {
		return nil
	}
	_, _, shadowed := f.Service.Objects.Shadow(f.Service.Host)
	for _, a := range all {
		if a.Listener == nil {
			continue
		}
		s, _ := listenerStatus(a)
		switch {
		case a.Problem == service.NoRoute && shadowed:
			// SVC15 reports it: a route wants the hostname, but is attached to another listener.
		// attachedRoutes also counts routes that the input does not have.
		case a.Problem != service.NoRoute || s.Attached > 0:
			out = append(out, pass(listenerName(a), "A route uses the %s.", listenerName(a))...)
		case f.Service.Whole || f.Service.Objects.Has("HTTPRoute", "GRPCRoute", "TLSRoute"):
			out = append(out, fail("", explain.You, listenerName(a), "No route uses the hostname %s of the %s.", a.Host,
				listenerName(a)))
		default:
			out = append(out, unknown(listenerName(a), "The input has no route for the %s.", listenerName(a))...)
		}
	}
	return out
}

// hostForm matches the characters of a host name. Its labels are short enough, because it was parsed as a domain name.
// An underscore is valid in DNS but not in a host name (RFC 1123 §2.1): CAs issue no certificate for it.
var hostForm = regexp.MustCompile(`^(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)*[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// hostnameForm is check SVC16.
func hostnameForm(f *explain.Facts) []explain.Finding {
	if f.Service == nil {
		return nil
	}
	host := f.Service.Host
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		return []explain.Finding{fail("", explain.You, host, "%s is an address, not a hostname.", host)}
	case !hostForm.MatchString(strings.ToLower(strings.TrimSuffix(host, "."))):
		return []explain.Finding{fail("", explain.You, host, "%s has characters that a host name cannot have.", host)}
	}
	return pass(host, "%s is a host name.", host)
}

package check

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// judgedObject is an object of the hostname with the conditions that controllers wrote.
type judgedObject struct {
	service.Head
	conditions []service.Condition
}

// judgedObjects returns the objects of the hostname that have conditions, each once. A route counts with its status at
// this parent only: each controller writes an entry of its own into status.parents, and another controller may have
// stopped.
func judgedObjects(f *explain.Facts) (out []judgedObject) {
	add := func(h service.Head, all []service.Condition) {
		if len(all) > 0 && !slices.ContainsFunc(out, func(o judgedObject) bool { return o.String() == h.String() }) {
			out = append(out, judgedObject{h, all})
		}
	}
	for _, a := range attachments(f) {
		if a.Gateway != nil {
			if c, ok := find(f.Service.Objects.Classes, func(c service.Class) bool {
				return c.Name == a.Gateway.Spec.Class
			}); ok {
				add(c.Head, c.Status.Conditions)
			}
			add(a.Gateway.Head, a.Gateway.Status.Conditions)
		}
		if a.Set != nil {
			add(a.Set.Head, a.Set.Status.Conditions)
		}
		if a.Route != nil {
			add(a.Route.Head, parentStatus(a))
		}
	}
	return out
}

// lag is how long a controller may take to judge a change. Controllers react within seconds; a minute also covers a
// change of leader.
const lag = time.Minute

// controllerCurrent is check SVC04. A controller that has stopped leaves its last status, which seems healthy.
func controllerCurrent(f *explain.Facts) (out []explain.Finding) {
	for _, o := range judgedObjects(f) {
		behind := slices.ContainsFunc(o.conditions, func(c service.Condition) bool {
			// Some controllers leave out observedGeneration. Nothing is known about their age.
			return c.Generation != 0 && c.Generation < o.Generation
		})
		subject, changed := o.String(), o.Changed()
		switch {
		case !behind:
			out = append(out, pass(subject, "The status of %s is that of its newest version.", subject)...)
		// kubectl prints managedFields, which have the time of the change, only on request.
		case changed.IsZero() || f.At.Sub(changed) <= lag:
			out = append(out, unknown(subject, "The controller has not yet judged the newest version of %s.", subject)...)
		default:
			out = append(out, fail("", explain.You, subject, "The controller has not judged the last change of %s, made "+
				"at %s: it may not be running.", subject, words.Moment(changed, f.At)))
		}
	}
	return out
}

// noRivals is check SVC14. Both routes are accepted, so no condition shows the conflict. The Gateway API prefers the
// older route, so that a new one cannot take over the requests of another team.
func noRivals(f *explain.Facts) (out []explain.Finding) {
	if len(attachments(f)) == 0 {
		return nil
	}
	for _, r := range f.Service.Objects.Rivals(f.Service.Host) {
		if !r.Known {
			out = append(out, fail("", explain.You, r.Loser.String(),
				"%s and %s both want %s of %s: only the older one gets the requests.", r.Winner, r.Loser, r.Match,
				f.Service.Host))
			continue
		}
		out = append(out, fail("", explain.You, r.Loser.String(),
			"%s gets no requests for %s of %s: %s wants them too, and is older.", r.Loser, r.Match, f.Service.Host, r.Winner))
	}
	if len(out) > 0 {
		return out
	}
	for _, a := range attachments(f) {
		if a.Route != nil && a.Problem == "" {
			return pass(a.Route.String(), "No two routes want the same requests for %s.", f.Service.Host)
		}
	}
	return nil
}

// notShadowed is check SVC15. The listener is chosen by its hostname before any route is considered: a request that
// has no route at the more specific listener gets 404, and does not fall back to the wildcard.
func notShadowed(f *explain.Facts) []explain.Finding {
	if len(attachments(f)) == 0 {
		return nil
	}
	if a, by, ok := f.Service.Objects.Shadow(f.Service.Host); ok {
		return []explain.Finding{fail("", explain.You, a.Route.String(),
			"%s is attached to the %s, but requests for %s reach the listener %s, whose hostname %s is more specific and "+
				"which has no route.", a.Route, listenerName(a), f.Service.Host, by.Name, by.Hostname)}
	}
	for _, a := range attachments(f) {
		if a.Route != nil && a.Problem == "" {
			return pass(a.Route.String(), "Requests for %s reach the listener of the route.", f.Service.Host)
		}
	}
	return nil
}

// targetRead is check SVC29. external-dns reads the target of a Gateway, ListenerSet or Ingress, and not of a route.
func targetRead(f *explain.Facts) (out []explain.Finding) {
	var seen []string
	judge := func(h service.Head) {
		if slices.Contains(seen, h.String()) {
			return
		}
		seen = append(seen, h.String())
		out = append(out, annotated(h)...)
	}
	for _, a := range attachments(f) {
		if a.Route != nil {
			judge(a.Route.Head)
		}
		if a.Gateway != nil {
			judge(a.Gateway.Head)
		}
		if a.Set != nil {
			judge(a.Set.Head)
		}
		if a.Ingress != nil {
			judge(a.Ingress.Head)
		}
	}
	return out
}

// annotated judges the annotations for external-dns of one object. external-dns ignores annotations that it does not
// know, without an error: nothing else reports a mistyped prefix.
func annotated(h service.Head) (out []explain.Finding) {
	subject := h.String()
	for _, key := range slices.Sorted(maps.Keys(h.Annotations)) {
		switch {
		case !strings.HasSuffix(key, "/target") || !strings.Contains(key, "external-dns"):
		case strings.HasSuffix(h.Kind, "Route"):
			out = append(out, fail("", explain.You, subject, "The annotation %s is on %s, where external-dns does not read it.",
				key, subject))
		case key == service.NewTarget:
			out = append(out, pass(subject, "external-dns reads the target of %s.", subject)...)
		case key == service.OldTarget && h.Annotations[service.NewTarget] != "":
		case key == service.OldTarget:
			out = append(out, fail(explain.Notice, explain.You, subject,
				"The annotation %s of %s has the older prefix, which new versions of external-dns do not read by default.", key,
				subject))
		default:
			out = append(out, fail("", explain.You, subject, "The annotation %s of %s has a prefix that external-dns does not "+
				"know.", key, subject))
		}
	}
	return out
}

// noSurprise is check SVC30. A wildcard record is rarely intended: with it, every name below that does not exist leads
// to this Gateway.
func noSurprise(f *explain.Facts) (out []explain.Finding) {
	for _, a := range attachments(f) {
		switch {
		case a.Route == nil || a.Problem != "" || !strings.HasPrefix(a.Host, "*."):
		case len(a.Route.Spec.Hostnames) == 0:
			out = append(out, fail("", explain.You, a.Route.String(),
				"%s has no hostnames, so it serves every name of %s: external-dns publishes a wildcard record for it.", a.Route,
				a.Host))
		default:
			out = append(out, pass(a.Route.String(), "%s names %s itself.", a.Route, a.Host)...)
		}
	}
	return out
}

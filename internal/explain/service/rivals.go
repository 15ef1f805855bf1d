package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rival is a pair of routes that want the same requests. Only one of them gets them.
type Rival struct {
	Winner, Loser *Route
	Match         string // the requests, in words
	Known         bool   // the objects have the times of creation, which decide
}

// Rivals returns the routes of a hostname that have the same match at the same listener. The older one gets the
// requests; of two with the same age, the one whose namespace and name come first.
func (o *Objects) Rivals(host string) (out []Rival) {
	at := slices.DeleteFunc(o.At(host), func(a Attachment) bool { return a.Route == nil || a.Problem != "" })
	for i, a := range at {
		for _, b := range at[i+1:] {
			if a.Route == b.Route || a.Listener != b.Listener || a.Route.Kind != b.Route.Kind {
				continue
			}
			match, ok := commonMatch(a.Route, b.Route)
			if !ok || slices.ContainsFunc(out, func(r Rival) bool { return r.of(a.Route, b.Route) }) {
				continue
			}
			r := Rival{Winner: a.Route, Loser: b.Route, Match: match,
				Known: !a.Route.Created.IsZero() && !b.Route.Created.IsZero()}
			if older(b.Route, a.Route) {
				r.Winner, r.Loser = b.Route, a.Route
			}
			out = append(out, r)
		}
	}
	return out
}

func (r Rival) of(a, b *Route) bool {
	return r.Winner == a && r.Loser == b || r.Winner == b && r.Loser == a
}

func older(a, b *Route) bool {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// commonMatch returns a match that both routes have.
func commonMatch(a, b *Route) (string, bool) {
	theirs := matches(b)
	for _, m := range matches(a) {
		if slices.Contains(theirs, m) {
			return m, true
		}
	}
	return "", false
}

// matches returns the matches of a route as texts that are equal for equal matches. A rule without matches has the
// prefix "/".
func matches(r *Route) (out []string) {
	for _, rule := range r.Spec.Rules {
		if len(rule.Matches) == 0 {
			out = append(out, "the path /")
		}
		for _, m := range rule.Matches {
			path, kind := "/", "PathPrefix"
			if m.Path != nil {
				path, kind = cmp.Or(m.Path.Value, path), cmp.Or(m.Path.Type, kind)
			}
			text := "the path " + path
			if kind != "PathPrefix" {
				text += " (" + kind + ")"
			}
			if m.Method != nil {
				text += fmt.Sprintf(", method %v", m.Method)
			}
			out = append(out, text+fieldsText("header", m.Headers)+fieldsText("parameter", m.Params))
		}
	}
	if len(r.Spec.Rules) == 0 {
		out = append(out, "the path /")
	}
	return out
}

// fieldsText returns the matches of headers or parameters, in an order of their own.
func fieldsText(what string, all []FieldMatch) string {
	var out []string
	for _, f := range all {
		out = append(out, fmt.Sprintf(", %s %s %s %s", what, strings.ToLower(f.Name), f.Type, f.Value))
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// Shadow returns the attachment of a route to a listener that does not get the requests for the hostname, because
// another listener of the same port has a more specific hostname and no route for it.
func (o *Objects) Shadow(host string) (hidden Attachment, by *Listener, ok bool) {
	at := slices.DeleteFunc(o.At(host), func(a Attachment) bool {
		return a.Route == nil || a.Problem != "" || a.Gateway == nil
	})
	for _, a := range at {
		best := a.Listener
		for _, e := range o.endpoints() {
			l := e.Listener
			if e.Gateway != a.Gateway || l.Port != a.Listener.Port || l.Protocol != a.Listener.Protocol {
				continue
			}
			if both, ok := Intersect(l.Hostname, host); ok && both == host && specific(l.Hostname) > specific(best.Hostname) {
				best = l
			}
		}
		if !slices.ContainsFunc(at, func(b Attachment) bool { return b.Listener == best }) {
			return a, best, true
		}
	}
	return Attachment{}, nil, false
}

// specific orders the hostnames that match a name: the name itself, then longer wildcards, then no hostname.
func specific(hostname string) int {
	if hostname == "" || strings.HasPrefix(hostname, "*") {
		return len(hostname)
	}
	return 1 << 10
}

// Listens reports whether a Gateway of the hostname has a listener with a protocol and port that accepts the hostname.
func (o *Objects) Listens(host, protocol string, port int) bool {
	var gateways []*Gateway
	for _, a := range o.At(host) {
		if a.Gateway != nil {
			gateways = append(gateways, a.Gateway)
		}
	}
	return slices.ContainsFunc(o.endpoints(), func(e endpoint) bool {
		both, ok := Intersect(e.Listener.Hostname, host)
		return ok && both == host && e.Listener.Protocol == protocol && e.Listener.Port == port &&
			slices.Contains(gateways, e.Gateway)
	})
}

// IsPlain reports whether the hostname has a listener or an Ingress, and none of them has TLS.
func (o *Objects) IsPlain(host string) bool {
	plain := false
	for _, a := range o.At(host) {
		switch {
		case a.Ingress != nil && a.Ingress.HasTLS(host):
			return false
		case a.Listener != nil && (a.Listener.Protocol == "HTTPS" || a.Listener.Protocol == "TLS"):
			return false
		case a.Ingress != nil || a.Listener != nil:
			plain = true
		}
	}
	return plain
}

// HasTLS reports whether an Ingress has TLS for a hostname.
func (in *Ingress) HasTLS(host string) bool {
	return slices.ContainsFunc(in.Spec.TLS, func(t IngressTLS) bool { return slices.Contains(t.Hosts, host) })
}

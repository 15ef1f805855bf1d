package service

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Targets are what a hostname must point to: host names, or addresses.
type Targets struct {
	Hosts []dnsname.Name `json:"hosts,omitempty"`
	Addrs []netip.Addr   `json:"addrs,omitempty"`
	From  string         `json:"from"` // where they come from, in words: "the annotation of Gateway infra/edge"
}

// IsZero reports whether no target is known.
func (t Targets) IsZero() bool { return len(t.Hosts)+len(t.Addrs) == 0 }

// The annotations by which users give external-dns the target of a Gateway, ListenerSet or Ingress. Newer versions of
// external-dns read only NewTarget, unless the older prefix is an option of theirs.
const (
	OldTarget = "external-dns.alpha.kubernetes.io/target"
	NewTarget = "external-dns.kubernetes.io/target"
)

// hasTarget reports whether an object has an annotation with a target.
func hasTarget(h Head) bool { return h.Annotations[OldTarget]+h.Annotations[NewTarget] != "" }

// ParseTarget parses a target that a user typed: a host name or an address.
func ParseTarget(text string) (t Targets, err error) {
	t.From = "--target"
	if a, err := netip.ParseAddr(text); err == nil {
		t.Addrs = []netip.Addr{a.Unmap()}
		return t, nil
	}
	n, err := dnsname.Parse(text)
	t.Hosts = []dnsname.Name{n}
	return t, err
}

// Targets returns the targets of a hostname: those of an annotation, else the addresses that the controllers of its
// Gateways and Ingresses report.
func (o *Objects) Targets(host string) (out Targets) {
	for _, a := range o.At(host) {
		switch {
		case a.Problem != "" && a.Problem != NoRoute:
		case a.Ingress != nil:
			var values []string
			for _, in := range a.Ingress.Status.LoadBalancer.Ingress {
				values = append(values, cmp.Or(in.Hostname, in.IP))
			}
			out.add(a.Ingress.Head, values)
		case a.Gateway != nil:
			if a.Set != nil && hasTarget(a.Set.Head) {
				out.add(a.Set.Head, nil) // it is nearer to the hostname than the Gateway
				continue
			}
			out.addGateway(a.Gateway)
		}
	}
	slices.SortFunc(out.Hosts, dnsname.Name.Compare)
	slices.SortFunc(out.Addrs, netip.Addr.Compare)
	out.Hosts, out.Addrs = slices.Compact(out.Hosts), slices.Compact(out.Addrs)
	return out
}

// Targets returns the targets of all hostnames of the Gateway.
func (g *Gateway) Targets() (out Targets) {
	out.addGateway(g)
	return out
}

func (t *Targets) addGateway(g *Gateway) {
	var values []string
	for _, addr := range g.Status.Addresses {
		values = append(values, addr.Value)
	}
	t.add(g.Head, values)
}

// add adds the targets of one object. An annotation replaces the addresses of the status.
func (t *Targets) add(h Head, values []string) {
	from := "the status of " + h.String()
	for _, key := range []string{OldTarget, NewTarget} {
		if text := h.Annotations[key]; text != "" {
			values, from = strings.Split(text, ","), "the annotation "+key+" of "+h.String()
		}
	}
	for _, v := range values {
		one, err := ParseTarget(strings.TrimSpace(v))
		if err != nil {
			continue // an address of a type of the controller's own
		}
		t.Hosts, t.Addrs, t.From = append(t.Hosts, one.Hosts...), append(t.Addrs, one.Addrs...), from
	}
}

// Record is a record set that a zone must have.
type Record struct {
	Owner dnsname.Name `json:"owner"`
	Type  rr.Type      `json:"type"`
	Data  []string     `json:"data"` // in presentation form
	TTL   uint32       `json:"ttl"`
}

// advisedTTL is the TTL of advised records: mistakes in a new record are corrected soon.
const advisedTTL = 300

// Expected returns the record sets that a hostname needs in its zone. resolved are the addresses of the host names of
// t, which stand in for an alias at the apex of a zone: a CNAME is not possible there (RFC 1034 §3.6.2).
func Expected(host, zone dnsname.Name, t Targets, resolved []netip.Addr) (out []Record) {
	addrs := t.Addrs
	if len(t.Hosts) > 0 {
		if host != zone {
			return []Record{{Owner: host, Type: rr.TypeCNAME, Data: []string{t.Hosts[0].String()}, TTL: advisedTTL}}
		}
		addrs = append(slices.Clone(addrs), resolved...)
	}
	byType := map[rr.Type][]string{}
	for _, a := range addrs {
		t := rr.TypeA
		if a.Is6() {
			t = rr.TypeAAAA
		}
		if text := a.String(); !slices.Contains(byType[t], text) {
			byType[t] = append(byType[t], text)
		}
	}
	for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA} {
		if len(byType[t]) > 0 {
			out = append(out, Record{Owner: host, Type: t, Data: byType[t], TTL: advisedTTL})
		}
	}
	return out
}

// Typed returns a value as a person enters it in a form: a text without the quotation marks of zone files.
func Typed(t rr.Type, data string) string {
	if t == rr.TypeTXT {
		return Text(t, data)
	}
	return data
}

// HostField returns the owner of a record as the form of a registrar wants it: without the zone, and "@" for the zone
// itself.
func HostField(owner, zone dnsname.Name) string {
	if owner == zone {
		return "@"
	}
	if !owner.IsIn(zone) {
		return strings.TrimSuffix(owner.String(), ".")
	}
	return strings.TrimSuffix(strings.TrimSuffix(owner.String(), zone.String()), ".")
}

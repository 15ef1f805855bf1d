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

// The annotations by which users give external-dns the target of a Gateway or Ingress.
var targetAnnotations = []string{"external-dns.alpha.kubernetes.io/target", "external-dns.kubernetes.io/target"}

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
			var values []string
			for _, addr := range a.Gateway.Status.Addresses {
				values = append(values, addr.Value)
			}
			out.add(a.Gateway.Head, values)
		}
	}
	slices.SortFunc(out.Hosts, dnsname.Name.Compare)
	slices.SortFunc(out.Addrs, netip.Addr.Compare)
	out.Hosts, out.Addrs = slices.Compact(out.Hosts), slices.Compact(out.Addrs)
	return out
}

// add adds the targets of one object. An annotation replaces the addresses of the status.
func (t *Targets) add(h Head, values []string) {
	from := "the status of " + h.String()
	for _, key := range targetAnnotations {
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

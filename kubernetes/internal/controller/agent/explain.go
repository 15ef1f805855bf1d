package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/dnsname"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// Question asks whether a pod of a namespace may connect to a destination, and why.
type Question struct {
	Namespace string
	Name      dnsname.Name // name or address of the destination
	Addr      netip.Addr
	Protocol  enforce.Protocol // zero means any
	Port      uint16           // zero means any

	Resolvers      string         // namespace of the DNSNameResolvers
	ClusterSubnets []netip.Prefix // default: those of all nodes
	Deep           bool           // also set if there is a DNSNameResolver for such a name
	// Ask queries the agents about an address of a name. If it is nil, agents are not queried.
	Ask func(ctx context.Context, p enforce.Pattern, addr netip.Addr) []NodeState
	// asked counts the queries.
	asked   int
	unasked bool              // there were more names than maxAsked
	silent  map[string]string // agents that could not be queried, with the reason
}

// Report is the answer, in a form for programs.
type Report struct {
	Namespace   string   `json:"namespace"`
	Destination string   `json:"destination"`
	InForce     []string `json:"inForce,omitempty"`  // zones whose switches have the firewall, according to its status
	Silent      []string `json:"silent,omitempty"`   // zones without such a message
	Answers     []Answer `json:"answers"`            // one for each address
	Warnings    []string `json:"warnings,omitempty"` // reasons for which the answers may be incomplete
	Unknown     string   `json:"unknown,omitempty"`  // reason for which there is no answer
}

// Answer is the decision about one address.
type Answer struct {
	Address string        `json:"address,omitempty"`
	Action  string        `json:"action"` // Allow or Deny
	Rule    *int          `json:"rule,omitempty"`
	Text    string        `json:"text"`              // text of the rule, or the reason for which there is none
	Depends []string      `json:"depends,omitempty"` // earlier rules that decide for some ports
	Name    string        `json:"name,omitempty"`    // name in the rule
	Object  string        `json:"dnsNameResolver,omitempty"`
	Learned []LearnedName `json:"learned,omitempty"`
	Nodes   []NodeState   `json:"nodes,omitempty"` // absent if agents were not queried
}

// LearnedName is a name through which an address belongs to the rule.
type LearnedName struct {
	Name  string    `json:"name"`
	At    time.Time `json:"learned"`
	Until time.Time `json:"validUntil"`
	// Failing is the reason for which lookups of the name fail. Its addresses stay for a while without being in an answer.
	Failing string `json:"failing,omitempty"`
}

// NodeState is the reply of one agent.
type NodeState struct {
	Agent      string        `json:"agent"`
	Node       string        `json:"node,omitempty"`
	Programmed bool          `json:"programmed"`
	Age        time.Duration `json:"ageNanoseconds,omitempty"`
	Lease      time.Duration `json:"leaseNanoseconds,omitempty"`
	Error      string        `json:"error,omitempty"`
}

// Written reports that the agent has written the address, but cannot confirm that its switch has it, for example
// because it has lost the database.
func (n NodeState) Written() bool { return !n.Programmed && n.Age > 0 }

// Explain reads the objects in the cluster and returns the answer.
func Explain(ctx context.Context, c client.Reader, q Question) (Report, error) {
	var efs apiv1.EgressFirewallList
	var names v1alpha1.DNSNameResolverList
	var nodes corev1.NodeList
	if err := c.List(ctx, &efs, client.InNamespace(q.Namespace)); err != nil {
		return Report{}, fmt.Errorf("list EgressFirewalls: %w", err)
	}
	if err := c.List(ctx, &names, client.InNamespace(q.Resolvers)); err != nil {
		return Report{}, fmt.Errorf("list DNSNameResolvers: %w", err)
	}
	if err := c.List(ctx, &nodes); err != nil {
		return Report{}, fmt.Errorf("list Nodes: %w", err)
	}
	if len(efs.Items) == 0 {
		if r, ok := unseen(ctx, c, q); ok {
			return r, nil
		}
	}
	services, err := serviceCIDRs(ctx, c)
	if err != nil {
		return Report{}, err
	}
	return explain(ctx, objects{firewalls: efs.Items, resolvers: names.Items, nodes: nodes.Items, services: services}, q,
		time.Now()), nil
}

func explain(ctx context.Context, o objects, q Question, now time.Time) Report {
	r := Report{Namespace: q.Namespace, Destination: q.destination()}
	if len(q.ClusterSubnets) == 0 {
		q.ClusterSubnets = podPrefixes(o.nodes, func(*corev1.Node) bool { return true })
	}
	// The manager creates these only if deep names are enabled.
	q.Deep = q.Deep || slices.ContainsFunc(o.resolvers,
		func(r v1alpha1.DNSNameResolver) bool { return strings.HasPrefix(string(r.Spec.Name), "**.") })
	in := newReader(Options{ClusterSubnets: q.ClusterSubnets, Deep: q.Deep}).read(o)
	for _, err := range in.errs[q.Namespace] {
		r.Warnings = append(r.Warnings, "not in force: "+err.Error())
	}
	if slices.Contains(in.input.Frozen, q.Namespace) {
		r.Unknown = "the EgressFirewall has too many rules; its previous rules, if any, are still in force"
		return r
	}
	r.status(o, q.Namespace, in.errs[q.Namespace])
	fw, ok := in.firewall(q.Namespace)
	r.unnamed(o.resolvers, fw, q.Resolvers)
	addrs := []netip.Addr{q.Addr}
	if !q.Name.IsZero() {
		addrs = addressesOf(o.resolvers, q.Name)
	}
	switch {
	case len(addrs) == 0 && !ok:
		r.Answers = []Answer{{Action: enforce.Allow.String(), Text: noFirewall}}
		return r
	case len(addrs) == 0:
		r.Unknown = unlearned(fw, q.Name, o.resolvers)
		return r
	case ok && in.ofService(q.Addr):
		r.Unknown = fmt.Sprintf(service, q.Addr)
		return r
	}
	for _, a := range addrs {
		answer := Answer{Address: a.String(), Action: enforce.Allow.String(), Text: noFirewall}
		if ok {
			var notes []string
			answer, notes = in.answer(ctx, fw, q, a)
			r.Warnings = append(r.Warnings, notes...)
		}
		if ok && in.ofService(a) {
			r.Warnings = append(r.Warnings, fmt.Sprintf(service, a))
		} else if why := in.policy.Refused(a); why != "" && answer.Name != "" {
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("%s: %s, which agents do not open unless their --permit lists it", a, why))
		}
		answer.add(ctx, o.resolvers, q, a)
		r.warn(a, answer, now)
		r.Answers = append(r.Answers, answer)
	}
	return r
}

const noFirewall = "the namespace has no EgressFirewall"

func (in reading) firewall(namespace string) (enforce.Firewall, bool) {
	i := slices.IndexFunc(in.input.Firewalls, func(f enforce.Firewall) bool { return f.Namespace == namespace })
	if i < 0 {
		return enforce.Firewall{}, false
	}
	return in.input.Firewalls[i], true
}

func (q Question) destination() string {
	out := q.Name.String()
	if q.Name.IsZero() {
		out = q.Addr.String()
	}
	if q.Port != 0 {
		out += fmt.Sprintf(" port %d", q.Port)
	}
	if q.Protocol != enforce.AnyProtocol {
		out += " " + q.Protocol.String()
	}
	return out
}

// answer finds the rule that decides about one address. notes lists queries that were skipped or failed.
func (in reading) answer(ctx context.Context, fw enforce.Firewall, q Question, a netip.Addr) (_ Answer,
	notes []string) {
	q.silent = map[string]string{}
	known := enforce.Known{ClusterSubnets: q.ClusterSubnets,
		Learned: func(p enforce.Pattern) []netip.Addr { return in.known(ctx, &q, p, a) }}
	d := enforce.Decide(fw, known, enforce.Packet{To: a, Protocol: q.Protocol, Port: q.Port})
	out := Answer{Address: a.String(), Action: d.Action.String(), Text: "no rule matches it"}
	for _, r := range d.Depends {
		out.Depends = append(out.Depends, r.String())
	}
	if d.Rule != nil {
		out.Rule, out.Text = &d.Rule.Index, d.Rule.String()
		if d.Rule.Kind == enforce.ByName {
			out.Name = d.Rule.Pattern.String()
		}
	} else if in.input.InCluster(a) {
		out.Text = "it is a pod address, to which rules by address and name do not apply"
	}
	if q.unasked {
		notes = append(notes, fmt.Sprintf("%s: agents were asked about only %d names, and may have it under another one", a,
			maxAsked))
	}
	if out.Name == "" { // otherwise the agents are queried about that name, and warn reports errors
		for _, who := range slices.Sorted(maps.Keys(q.silent)) {
			notes = append(notes, fmt.Sprintf("%s: the agent %s could not be asked, and may have it under a name: %s", a, who,
				q.silent[who]))
		}
	}
	return out, notes
}

// known returns the addresses of a name if they include a. Agents may have a by a lease that is in no status yet. The
// number of queries is limited, so that a firewall with thousands of names does not take minutes.
func (in reading) known(ctx context.Context, q *Question, p enforce.Pattern, a netip.Addr) []netip.Addr {
	switch {
	case len(q.ClusterSubnets) > 0 && (a.Is4() && !in.input.V4 || a.Is6() && !in.input.V6):
		return nil // there is no set of that family
	case slices.Contains(in.status[p], a) || q.Ask == nil:
		return in.status[p]
	case q.asked >= maxAsked:
		q.unasked = true
		return nil
	}
	q.asked++
	states := q.Ask(ctx, p, a)
	for _, n := range states {
		if n.Error != "" {
			q.silent[n.Agent] = n.Error
		}
	}
	if slices.ContainsFunc(states, func(n NodeState) bool { return n.Programmed || n.Written() }) {
		return []netip.Addr{a}
	}
	return nil
}

const maxAsked = 32

// add adds the known state of the rule's name.
func (out *Answer) add(ctx context.Context, resolvers []v1alpha1.DNSNameResolver, q Question, a netip.Addr) {
	if out.Name == "" {
		return
	}
	for _, r := range resolvers {
		if string(r.Spec.Name) != out.Name {
			continue
		}
		out.Object = r.Namespace + "/" + r.Name
		for _, n := range r.Status.ResolvedNames {
			for _, ra := range n.ResolvedAddresses {
				if ip, err := netip.ParseAddr(ra.IP); err == nil && ip == a && ra.LastLookupTime != nil {
					at := ra.LastLookupTime.Time
					out.Learned = append(out.Learned,
						LearnedName{string(n.DNSName), at, at.Add(time.Duration(ra.TTLSeconds) * time.Second), failing(n)})
				}
			}
		}
	}
	if p, err := enforce.ParsePattern(out.Name, enforce.PatternOptions{Deep: true}); err == nil && q.Ask != nil {
		out.Nodes = q.Ask(ctx, p, a)
	}
}

// addressesOf returns the addresses of a name, for all patterns.
func addressesOf(resolvers []v1alpha1.DNSNameResolver, name dnsname.Name) []netip.Addr {
	var out []netip.Addr
	for _, r := range resolvers {
		for _, n := range r.Status.ResolvedNames {
			if got, err := dnsname.Parse(string(n.DNSName)); err != nil || got != name {
				continue
			}
			for _, ra := range n.ResolvedAddresses {
				if a, err := netip.ParseAddr(ra.IP); err == nil && !a.Is4In6() { // as agents do
					out = append(out, a)
				}
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func sortedOnce(in []string) []string { return slices.Compact(slices.Sorted(slices.Values(in))) }

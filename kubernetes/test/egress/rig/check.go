package rig

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Check returns the differences between the state and the firewalls. Every name in a rule has one custom resource, and
// no other name has. The rows of each northbound database are exactly those of the rules. An address set has all
// addresses of the status. It may also have addresses that the authority returned after since, for which there may be
// leases.
func (s *System) Check(since time.Time) error {
	efs, names, err := s.Desired()
	if err != nil {
		return err
	}
	firewalls, err := parse(efs)
	if err != nil {
		return err
	}
	if err := checkNames(firewalls, names); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if err := s.checkNode(n, firewalls, stored(names), since); err != nil {
			return fmt.Errorf("%s: %w", n.Node, err)
		}
	}
	return nil
}

// parse fails for a rule that is not valid: tests write valid rules only, and a skipped one would weaken every
// comparison after it.
func parse(efs []apiv1.EgressFirewall) ([]enforce.Firewall, error) {
	var out []enforce.Firewall
	for _, ef := range efs {
		var in []enforce.RuleInput
		for _, r := range ef.Spec.Egress {
			one := enforce.RuleInput{Type: string(r.Type), CIDR: r.To.CIDRSelector, DNSName: r.To.DNSName}
			for _, p := range r.Ports {
				one.Ports = append(one.Ports, enforce.PortInput{Protocol: p.Protocol, Port: p.Port})
			}
			in = append(in, one)
		}
		f, errs := enforce.ParseFirewall(ef.Namespace, in)
		if len(errs) > 0 {
			return nil, errs[0]
		}
		out = append(out, f)
	}
	return out, nil
}

// checkNames compares the names in rules with those of custom resources.
func checkNames(firewalls []enforce.Firewall, names []v1alpha1.DNSNameResolver) error {
	have := map[string]int{}
	for i := range names {
		have[string(names[i].Spec.Name)]++
	}
	for _, f := range firewalls {
		for _, p := range f.Patterns() {
			if have[p.String()] == 0 {
				return fmt.Errorf("%s of %s has no DNSNameResolver", p, f.Namespace)
			}
		}
	}
	for name, n := range have {
		p, err := enforce.ParsePattern(name, enforce.PatternOptions{})
		if err != nil || n > 1 || !slices.ContainsFunc(firewalls,
			func(f enforce.Firewall) bool { return slices.Contains(f.Patterns(), p) }) {
			return fmt.Errorf("%d DNSNameResolvers of %s, which no firewall has, or which should be one", n, name)
		}
	}
	return nil
}

// stored returns the addresses in the status of each name.
func stored(names []v1alpha1.DNSNameResolver) map[enforce.Pattern][]netip.Addr {
	out := map[enforce.Pattern][]netip.Addr{}
	for i := range names {
		p, err := enforce.ParsePattern(string(names[i].Spec.Name), enforce.PatternOptions{})
		if err != nil {
			continue
		}
		for _, n := range names[i].Status.ResolvedNames {
			for _, a := range n.ResolvedAddresses {
				if addr, err := netip.ParseAddr(a.IP); err == nil {
					out[p] = append(out[p], addr)
				}
			}
		}
	}
	return out
}

// Rows returns the rows of a node's northbound database, the ports of the pods, and the features of the database.
func (n *Node) Rows() (ovn.Rows, map[string][]string, ovn.Features, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	return n.database().Read(ctx)
}

// Learned returns the addresses in the sets of a name.
func (n *Node) Learned(name string) ([]netip.Addr, error) {
	p, err := enforce.ParsePattern(name, enforce.PatternOptions{})
	if err != nil {
		return nil, err
	}
	rows, _, _, err := n.Rows()
	learned, _ := rows.Addresses()
	return learned[p], err
}

// checkNode plans the operations that lead to the wanted rows, of which there must be none. The addresses are compared
// first and without the planner, which gets them from the rows that it is to judge.
func (s *System) checkNode(n *Node, firewalls []enforce.Firewall, status map[enforce.Pattern][]netip.Addr,
	since time.Time) error {
	have, ports, features, err := n.Rows()
	if err != nil {
		return err
	}
	learned, kept := have.Addresses()
	for p, addrs := range learned {
		for _, a := range addrs {
			if !slices.Contains(status[p], a) && !s.Authority.LastAnswer(a).After(since) {
				return fmt.Errorf("%s has the address %s, which nobody said it has", p, a)
			}
		}
	}
	for p, addrs := range status {
		for _, a := range addrs {
			if !slices.Contains(learned[p], a) {
				return fmt.Errorf("%s lacks the address %s of its status", p, a)
			}
		}
	}
	w := ovn.Input{Firewalls: firewalls, Learned: learned, Kept: kept, Ports: ports,
		ClusterSubnets: cluster.ClusterSubnets(), V4: true, V6: true}
	want := ovn.Render(w, features)
	if err := orphans(want, have); err != nil {
		return err
	}
	txs, waiting := ovn.Plan(want, have, features)
	if len(waiting) > 0 {
		return fmt.Errorf("no port groups of %v", waiting)
	}
	var left []string
	for _, tx := range txs {
		for _, op := range tx.Ops {
			left = append(left, fmt.Sprintf("%+v", op))
		}
	}
	if left != nil {
		return fmt.Errorf("rows differ: %s", strings.Join(left[:min(len(left), 5)], "; "))
	}
	return nil
}

// orphans finds rows that no rule has. It does not use the planner, which may have left them.
func orphans(want, have ovn.Rows) error {
	const id, kind = "k8s.ovn.org/id", "k8s.ovn.org/owner-type"
	wanted := map[string]int{}
	for _, s := range want.Sets {
		wanted[s.IDs[id]]++
	}
	for _, a := range want.ACLs {
		wanted[a.IDs[id]]++
	}
	for _, s := range have.Sets {
		if wanted[s.IDs[id]]--; wanted[s.IDs[id]] < 0 && strings.HasPrefix(s.IDs[kind], "EgressFirewallDNS") {
			return fmt.Errorf("the address set %s is of no rule", s.IDs[id])
		}
	}
	for _, a := range have.ACLs {
		if wanted[a.IDs[id]]--; wanted[a.IDs[id]] < 0 && strings.HasPrefix(a.IDs[kind], "EgressFirewall") {
			return fmt.Errorf("the ACL %s is of no rule, or there twice", a.IDs[id])
		}
	}
	return nil
}

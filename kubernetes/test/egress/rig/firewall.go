package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// Rule parses one line of a firewall: "allow *.example.test tcp/80 udp/53" or "deny 0.0.0.0/0".
func Rule(text string) apiv1.EgressFirewallRule {
	words := strings.Fields(text)
	r := apiv1.EgressFirewallRule{Type: apiv1.EgressFirewallRuleAllow}
	if words[0] == "deny" {
		r.Type = apiv1.EgressFirewallRuleDeny
	}
	if strings.Contains(words[1], "/") {
		r.To.CIDRSelector = words[1]
	} else {
		r.To.DNSName = words[1]
	}
	for _, w := range words[2:] {
		p := apiv1.EgressFirewallPort{}
		protocol, number, _ := strings.Cut(w, "/")
		p.Protocol = strings.ToUpper(protocol)
		_, _ = fmt.Sscan(number, &p.Port)
		r.Ports = append(r.Ports, p)
	}
	return r
}

// DenyRest denies everything else, as at the end of most firewalls.
var DenyRest = []string{"deny 0.0.0.0/0", "deny ::/0"}

// Firewall sets the rules of a namespace, and returns when they are in force everywhere.
func (s *System) Firewall(namespace string, rules ...string) error {
	if err := s.SetFirewall(namespace, rules...); err != nil {
		return err
	}
	return s.Settled(Soon)
}

// SetFirewall sets the rules of a namespace; no rules delete its firewall.
func (s *System) SetFirewall(namespace string, rules ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	ef := &apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	if len(rules) == 0 {
		return client.IgnoreNotFound(s.Admin.Delete(ctx, ef))
	}
	if err := s.CreateNamespace(namespace, nil); err != nil {
		return err
	}
	// The manager writes the status of the same object, so the update may conflict and is tried again.
	return Within(Soon, func() error {
		err := s.Admin.Get(ctx, client.ObjectKeyFromObject(ef), ef)
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return err
		}
		ef.Spec.Egress = nil
		for _, r := range rules {
			ef.Spec.Egress = append(ef.Spec.Egress, Rule(r))
		}
		if missing {
			ef.ResourceVersion = ""
			return s.Admin.Create(ctx, ef)
		}
		return s.Admin.Update(ctx, ef)
	})
}

// Desired returns all firewalls and names.
func (s *System) Desired() ([]apiv1.EgressFirewall, []v1alpha1.DNSNameResolver, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	var efs apiv1.EgressFirewallList
	if err := s.Admin.List(ctx, &efs); err != nil {
		return nil, nil, err
	}
	var names v1alpha1.DNSNameResolverList
	err := s.Admin.List(ctx, &names, client.InNamespace(Namespace))
	return efs.Items, names.Items, err
}

// Name returns the DNSNameResolver of a name.
func (s *System) Name(name string) (*v1alpha1.DNSNameResolver, error) {
	p, err := enforce.ParsePattern(name, enforce.PatternOptions{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	out := &v1alpha1.DNSNameResolver{}
	err = s.Admin.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: enforce.ObjectName(p, 0)}, out)
	return out, err
}

// Stored returns the addresses in the status of a name, including those of its subdomains.
func (s *System) Stored(name string) ([]string, error) {
	obj, err := s.Name(name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, n := range obj.Status.ResolvedNames {
		for _, a := range n.ResolvedAddresses {
			out = append(out, a.IP)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Settled waits until the state matches the firewalls: in the northbound databases, in the switches, in the custom
// resources and in CoreDNS.
func (s *System) Settled(limit time.Duration) error {
	// Addresses of earlier answers may still be in the sets. An hour is longer than most tests.
	if err := Within(limit, func() error { return s.Check(time.Now().Add(-time.Hour)) }); err != nil {
		return fmt.Errorf("%w\n%s", err, s.Logs())
	}
	for _, n := range s.Nodes {
		if err := n.Sync(); err != nil {
			return err
		}
	}
	return Within(limit, s.matched)
}

// matched reports whether every replica knows all names.
func (s *System) matched() error {
	for _, r := range s.DNS {
		if r.Ended() {
			continue
		}
		if err := s.Knows(r); err != nil {
			return err
		}
	}
	return nil
}

// Knows reports whether a replica knows all names.
func (s *System) Knows(r *Replica) error {
	_, names, err := s.Desired()
	if err != nil {
		return err
	}
	m, err := r.Metrics()
	if err != nil {
		return err
	}
	if got := int(m["coredns_dnsnameresolver_objects"]); got != len(names) {
		return fmt.Errorf("%s knows %d names, want %d", r.Pod.Name, got, len(names))
	}
	return nil
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Chaos injects faults into a system.
type Chaos struct {
	Spent map[string]time.Duration // time spent on faults, restoring, settling and reaching

	sys    *System
	spaces []string
	pods   []*cluster.Pod
	names  int
	// State of the current schedule:
	did    []string
	mark   string                  // a name that only the last rules of this schedule have
	asking sync.WaitGroup          // queries that nothing waits for
	parted map[string]func() error // functions that restore partitions
}

// NewChaos creates namespaces with a pod on each node.
func NewChaos(s *System) *Chaos {
	c := &Chaos{sys: s, Spent: map[string]time.Duration{}, parted: map[string]func() error{}}
	for i, n := range s.Nodes {
		ns := fmt.Sprintf("chaos%d", i)
		c.spaces = append(c.spaces, ns)
		c.pods = append(c.pods, s.Pod(n, ns, "web"))
		s.Authority.Fresh(ns+".test", 2*time.Second)
	}
	return c
}

// Schedule performs a few random actions, gives every part time to recover, and compares the state with the wanted one.
// Then a pod must reach a new name, and must not reach another address.
func (c *Chaos) Schedule(r *rand.Rand) error {
	c.did = nil
	i := r.IntN(len(c.spaces))
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"harm", func() error { return c.harm(r) }},
		{"heal", c.restore},
		{"settle", func() error { return c.settle(i) }},
		{"reach", func() error { return c.reach(r, i) }},
	} {
		begun := time.Now()
		err := step.do()
		c.Spent[step.name] += time.Since(begun)
		if err != nil {
			return fmt.Errorf("%s, after %v: %w", step.name, c.did, err)
		}
	}
	return nil
}

func (c *Chaos) harm(r *rand.Rand) error {
	acts := []func(*rand.Rand) error{c.edit, c.edit, c.query, c.query, c.kill, c.kill, c.pause, c.cut, c.part, c.row,
		c.row, c.row, c.object, c.database}
	for range 3 + r.IntN(4) {
		if err := acts[r.IntN(len(acts))](r); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the state is the wanted one.
func (c *Chaos) settle(i int) error {
	c.mark = c.name(i)
	if err := c.sys.SetFirewall(c.spaces[i],
		append([]string{"allow *." + c.spaces[i] + ".test", "allow " + c.mark}, DenyRest...)...); err != nil {
		return err
	}
	// An agent that has just started keeps existing addresses for half a minute.
	return Within(Soon, func() error { return c.sys.Check(time.Now().Add(-2 * time.Minute)) })
}

func (c *Chaos) note(format string, args ...any) { c.did = append(c.did, fmt.Sprintf(format, args...)) }

func (c *Chaos) name(i int) string {
	c.names++
	return Name(c.names, c.spaces[i]+".test")
}

// reach checks that a pod reaches a new name. Watches and streams of plugins recover a moment after everything else. A
// plugin that was disconnected may hold answers by a deleted rule while it remembers it; a plugin that holds the mark
// knows the current rules.
func (c *Chaos) reach(r *rand.Rand, i int) error {
	server := c.sys.DNS[r.IntN(len(c.sys.DNS))]
	if err := Within(Soon, func() error {
		if err := server.Holds(c.pods[i], c.sys.Nodes[i], c.mark, c.mark); err != nil {
			return err
		}
		return server.Holds(c.pods[i], c.sys.Nodes[i], "*."+c.spaces[i]+".test", c.name(i))
	}); err != nil {
		return err
	}
	// Waiting for a dropped packet takes the same time whatever else happens. The packet goes to a distant network: the
	// switch caches for a while that it drops packets to an address and to others with the same leading bits.
	through, to := make(chan bool, 1), netip.AddrFrom4([4]byte{203, 0, 113, byte(c.names)})
	go func() { through <- Connects(c.pods[i], to, 80, 300*time.Millisecond) }()
	err := c.reachName(i, server)
	if <-through {
		err = errors.Join(err, fmt.Errorf("%s is reached, which is an address of no name", to))
	}
	return err
}

func (c *Chaos) reachName(i int, server *Replica) error {
	var got Tried
	if err := Within(Soon, func() error {
		got = Try(c.pods[i], server.At, c.name(i), dns.TypeA, 20*time.Second)
		return got.Problem
	}); err != nil {
		return err
	}
	if got.Dialed.Err != nil || got.Dialed.Lost > 0 {
		return fmt.Errorf("%s of %s, answered by %s in %v: connected in %v, with %d SYNs lost: %v", got.Addr,
			c.pods[i].Port, server.Pod.Name, got.Asked, got.Dialed.Took, got.Dialed.Lost, got.Dialed.Err)
	}
	return nil
}

// edit changes or deletes a firewall.
func (c *Chaos) edit(r *rand.Rand) error {
	ns := c.spaces[r.IntN(len(c.spaces))]
	all := []string{"allow *." + c.spaces[0] + ".test", "allow *." + c.spaces[len(c.spaces)-1] + ".test", "allow www." +
		ns + ".test tcp/80",
		"deny bad." + ns + ".test", "allow 192.0.2.0/24", "deny 0.0.0.0/0", "deny ::/0"}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	rules := all[:r.IntN(len(all)+1)]
	c.note("rules of %s: %q", ns, rules)
	return c.sys.SetFirewall(ns, rules...)
}

// query queries a name. There may be no answer now.
func (c *Chaos) query(r *rand.Rand) error {
	i := r.IntN(len(c.spaces))
	name := c.name(i)
	c.note("ask for %s", name)
	pod, server := c.pods[i], c.sys.DNS[r.IntN(len(c.sys.DNS))].At
	c.asking.Go(func() { _, _, _ = Ask(pod, server, name, dns.TypeA, 200*time.Millisecond) })
	return nil
}

func (c *Chaos) any(r *rand.Rand) *Part {
	all := c.sys.Parts()
	return all[r.IntN(len(all))]
}

func (c *Chaos) kill(r *rand.Rand) error {
	p := c.any(r)
	c.note("kill %s", p.Pod.Name)
	p.Kill()
	if r.IntN(2) == 0 {
		return p.Start()
	}
	return nil
}

func (c *Chaos) pause(r *rand.Rand) error {
	p := c.any(r)
	c.note("pause %s", p.Pod.Name)
	if err := p.Signal(syscall.SIGSTOP); err != nil && !p.Ended() {
		return err
	}
	return nil
}

func (c *Chaos) cut(r *rand.Rand) error {
	p := c.any(r)
	c.note("cut %s off the API server", p.Pod.Name)
	p.API.Cut()
	return nil
}

// part removes the route from a CoreDNS to an agent.
func (c *Chaos) part(r *rand.Rand) error {
	from, to := c.sys.DNS[r.IntN(len(c.sys.DNS))], c.sys.Nodes[r.IntN(len(c.sys.Nodes))]
	c.note("part %s and the agent of %s", from.Pod.Name, to.Node)
	if err := route(from, "replace", to); err != nil {
		return err
	}
	c.parted[from.Pod.Name+" "+to.Node] = func() error { return route(from, "del", to) }
	return nil
}

// route adds or removes a route that leads nowhere.
func route(from *Replica, verb string, to *Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	if out, err := from.Pod.Command(ctx, "ip", "route", verb, "blackhole",
		to.At.Addr().String()).CombinedOutput(); err != nil {
		return fmt.Errorf("ip route: %w\n%s", err, out)
	}
	return nil
}

// database kills the northbound database, which restarts with its stored data.
func (c *Chaos) database(r *rand.Rand) error {
	n := c.sys.Nodes[r.IntN(len(c.sys.Nodes))]
	c.note("kill the database of %s", n.Node)
	n.NBServer.Kill()
	return n.NBServer.Start()
}

// row changes a row as a person with ovn-nbctl might.
func (c *Chaos) row(r *rand.Rand) error {
	n := c.sys.Nodes[r.IntN(len(c.sys.Nodes))]
	rows, _, _, err := n.Rows()
	if err != nil {
		return err
	}
	var cmds [][]string
	for _, s := range rows.Sets {
		cmds = append(cmds, []string{"--if-exists", "destroy", "Address_Set", s.UUID},
			[]string{"--if-exists", "clear", "Address_Set", s.UUID, "addresses"},
			[]string{"--if-exists", "clear", "Address_Set", s.UUID, "external_ids"})
	}
	for _, a := range rows.ACLs {
		cmds = append(cmds, []string{"--if-exists", "set", "ACL", a.UUID, "action=drop"},
			[]string{"--if-exists", "set", "ACL", a.UUID, "priority=7"},
			[]string{"--if-exists", "clear", "ACL", a.UUID, "external_ids"})
	}
	for _, g := range rows.Groups {
		cmds = append(cmds, []string{"--if-exists", "clear", "Port_Group", g.UUID, "acls"},
			[]string{"--if-exists", "clear", "Port_Group", g.UUID, "ports"})
	}
	if len(cmds) == 0 {
		return nil
	}
	cmd := cmds[r.IntN(len(cmds))]
	c.note("%s: ovn-nbctl %v", n.Node, cmd)
	_, err = n.NBCtl(cmd...)
	return err
}

// object deletes a custom resource, or creates one without a rule.
func (c *Chaos) object(r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	_, names, err := c.sys.Desired()
	if err != nil {
		return err
	}
	if len(names) == 0 || r.IntN(2) == 0 {
		c.note("a custom resource of nobody")
		return c.sys.Admin.Create(ctx,
			&v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, GenerateName: "dns-"},
				Spec: v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(fmt.Sprintf("n%d.nobody.test.", r.IntN(1000)))}})
	}
	obj := &names[r.IntN(len(names))]
	c.note("delete the custom resource of %s", obj.Spec.Name)
	return client.IgnoreNotFound(c.sys.Admin.Delete(ctx, obj))
}

// restore ends all faults.
func (c *Chaos) restore() error {
	c.asking.Wait()
	var errs []error
	for _, undo := range c.parted {
		errs = append(errs, undo())
	}
	clear(c.parted)
	for _, p := range c.sys.Parts() {
		errs = append(errs, p.API.Restore())
		if p.Ended() {
			errs = append(errs, p.Start())
		} else {
			errs = append(errs, p.Signal(syscall.SIGCONT))
		}
	}
	return errors.Join(slices.Clip(errs)...)
}

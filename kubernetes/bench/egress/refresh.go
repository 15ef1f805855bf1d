package main

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// watchRefresh injects the faults, and checks every second for names that have disappeared. A name is live from the
// first time its address is in a set.
func (s site) watchRefresh(f figure, n int, long time.Duration, name func(int) string, l teaching) figure {
	live, dead := map[netip.Addr]string{}, map[netip.Addr]string{}
	for i := range n {
		addr := s.addrOf(name(i))
		if i%20 == 7 {
			dead[addr] = name(i)
			s.Authority.Say(name(i), rig.Answer{Rcode: dns.RcodeNameError})
		} else {
			live[addr] = name(i)
		}
	}
	l.rows(&f)
	// A stopped process keeps its sockets: queries to it are lost without an error, as at a node that hangs.
	_ = s.DNS[3].Signal(syscall.SIGSTOP)
	begun, seen, gone, checks := time.Now(), map[netip.Addr]bool{}, map[string]bool{}, 0
	deadLeft, worst, stored, first := 0, 0, 0, 0
	var when time.Duration
	for time.Since(begun) < long {
		now, err := s.inSets()
		if err != nil {
			f.row("error", "%v", err)
			return f
		}
		var away []netip.Addr
		for a, name := range live {
			if now[a] {
				seen[a] = true
			} else if seen[a] {
				gone[name] = true
				away = append(away, a)
			}
		}
		if len(away) > worst {
			worst, when = len(away), time.Since(begun)
			stored = s.stored(away)
		}
		if checks == 0 {
			first = len(seen)
		}
		deadLeft = 0
		for a := range dead {
			if now[a] {
				deadLeft++
			}
		}
		checks++
		time.Sleep(time.Second)
	}
	f.row("live names in their set at the first check", "%d of %d", first, len(live))
	f.row("live names seen in their set at any time", "%d of %d", len(seen), len(live))
	f.row("checks", "%d", checks)
	f.row("live names that left their set at any time", "%d", len(gone))
	f.row("most live names missing at the same time", "%d, after %v; %d of them in a status", worst,
		when.Round(time.Second), stored)
	f.row("names that turned NXDOMAIN and are still in a set at the end", "%d of %d", deadLeft, len(dead))
	// first counts as well: a name that was never learned cannot disappear.
	f.met = len(gone) == 0 && first == len(live) && l.unanswered+l.left == 0
	return f
}

// inSets returns all addresses of names on the node.
func (s site) inSets() (map[netip.Addr]bool, error) {
	rows, _, _, err := s.Nodes[0].Rows()
	if err != nil {
		return nil, err
	}
	learned, _ := rows.Addresses()
	out := map[netip.Addr]bool{}
	for _, addrs := range learned {
		for _, a := range addrs {
			out[a] = true
		}
	}
	return out, nil
}

// stored counts the addresses that are in the status of any name. It shows which part lost them: those that are in a
// status were lost by the agent, the others by CoreDNS or the resolver.
func (s site) stored(addrs []netip.Addr) int {
	_, names, err := s.Desired()
	if err != nil {
		return 0
	}
	has := map[string]bool{}
	for _, o := range names {
		for _, n := range o.Status.ResolvedNames {
			for _, a := range n.ResolvedAddresses {
				has[a.IP] = true
			}
		}
	}
	return count(addrs, func(a netip.Addr) bool { return has[a.String()] })
}

// addrOf returns the IPv4 address that the authority gives a name. It queries from a pod of CoreDNS, to which no
// firewall applies.
func (s site) addrOf(name string) netip.Addr {
	var err error
	for range 5 { // a busy switch sometimes loses a datagram
		var m *dns.Msg
		if m, _, err = rig.Ask(s.DNS[0].Pod, s.Authority.Addr, name, dns.TypeA, time.Second); err == nil &&
			len(rig.Addrs(m)) > 0 {
			return rig.Addrs(m)[0]
		}
	}
	panic(fmt.Sprintf("the authority does not answer for %s: %v", name, err))
}

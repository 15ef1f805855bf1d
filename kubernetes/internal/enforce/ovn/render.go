package ovn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// firstPriority is the priority of the first rule of a firewall. Each following rule has the next lower one, for up to
// enforce.MaxRules rules.
const firstPriority = 10000

// firewallTier is the tier of egress firewalls. It comes after the tiers of admin network policies.
const firewallTier = 2

const (
	direction = "to-lport" // after load balancing, and separate from egress network policies, which are from-lport
	meter     = "acl-logging"
	maxName   = 63 // maximum length of the name of an ACL, according to the schema
)

// Render returns the rows for w.
func Render(w Input, f Features) Rows {
	out := Rows{Frozen: w.Frozen}
	named := map[enforce.Pattern]bool{} // true if a rule that allows has the name
	for _, p := range w.Names {
		named[p] = true
	}
	for _, fw := range w.Firewalls {
		group := PortGroup{Name: groupName(fw.Namespace), IDs: groupIDs(fw.Namespace)}
		if f.ManageGroups {
			group.IDs[madeKey] = "true"
			group.Ports = sorted(w.Ports[fw.Namespace])
		}
		acls := w.guards(fw, group.Name, f)
		for _, r := range fw.Rules {
			if r.Kind == enforce.ByName {
				named[r.Pattern] = named[r.Pattern] || r.Action == enforce.Allow
			}
			acls = append(acls, w.acls(fw.Namespace, group.Name, r, f)...)
		}
		for _, acl := range acls {
			if f.Tier {
				acl.Tier = firewallTier
			}
			out.ACLs = append(out.ACLs, acl)
			group.ACLs = append(group.ACLs, acl.id())
		}
		out.Groups = append(out.Groups, group)
	}
	for _, p := range slices.SortedFunc(maps.Keys(named),
		func(a, b enforce.Pattern) int { return strings.Compare(a.String(), b.String()) }) {
		out.Sets = append(out.Sets, w.sets(p, f.Keep && named[p])...)
	}
	return out
}

// sets returns the address sets of a name: one for each address family of the cluster, even if it is empty. With keep,
// it adds as many sets of kept addresses.
func (w Input) sets(p enforce.Pattern, keep bool) []AddressSet {
	var out []AddressSet
	for _, v4 := range w.families() {
		ids := setIDs(p, v4)
		out = append(out, AddressSet{Name: hashName(ids[idKey]), Addresses: w.outside(w.Learned[p], v4), IDs: ids})
		if keep {
			ids := keptIDs(p, v4)
			out = append(out, AddressSet{Name: hashName(ids[idKey]), Addresses: w.outside(w.Kept[p], v4), IDs: ids})
		}
	}
	return out
}

func (w Input) families() []bool {
	var out []bool
	if w.V4 {
		out = append(out, true)
	}
	if w.V6 {
		out = append(out, false)
	}
	return out
}

// outside returns the addresses of the given family that are not in a pod subnet: rules by name never apply to pods.
func (w Input) outside(addrs []netip.Addr, v4 bool) []string {
	var out []string
	for _, a := range addrs {
		if a.Is4() == v4 && !w.InCluster(a) {
			out = append(out, a.String())
		}
	}
	return sorted(out)
}

// InCluster reports whether a is in a pod subnet.
func (w Input) InCluster(a netip.Addr) bool {
	return slices.ContainsFunc(w.ClusterSubnets, func(s netip.Prefix) bool { return s.Contains(a) })
}

func sorted(in []string) []string { return slices.Compact(slices.Sorted(slices.Values(in))) }

// acls returns the rows of one rule. There are none if the rule has no destination, for example because its selector
// selects no node.
func (w Input) acls(namespace, group string, r enforce.Rule, f Features) []ACL {
	acl := ACL{
		Name:      cut(fmt.Sprintf("EF:%s:%d", namespace, r.Index)),
		Direction: direction,
		Priority:  firstPriority - r.Index,
		Action:    "drop",
		Severity:  w.Logging[namespace].Deny,
		Meter:     meter,
		IDs:       ids(stockController, aclType, namespace, ruleKey, strconv.Itoa(r.Index)),
	}
	if r.Action == enforce.Allow {
		acl.Action, acl.Severity = "allow", w.Logging[namespace].Allow
	}
	acl.Log = acl.Severity != ""
	if r.Kind == enforce.ByName {
		return w.named(acl, namespace, group, r, f)
	}
	dst := w.destination(r)
	if dst == "" {
		return nil
	}
	acl.Match = match(dst, group, r.Ports)
	return []ACL{acl}
}

// named returns the rows of a rule by name, based on the common columns in acl. If one match has both address families,
// ovn-controller rebuilds all flows of the rule for each new address: 8 ms for 500 flows, compared with 1 ms for a
// match with one set.
func (w Input) named(acl ACL, namespace, group string, r enforce.Rule, f Features) []ACL {
	parts := [][]bool{w.families()}
	if len(parts[0]) == 2 && !f.Stock {
		parts = [][]bool{{true}, {false}}
	}
	var out []ACL
	for i, families := range parts {
		if len(families) == 0 {
			continue
		}
		row := acl
		row.Match = match(inSets(families, func(v4 bool) string { return setIDs(r.Pattern, v4)[idKey] }), group, r.Ports)
		rows := []ACL{row}
		if f.Keep && r.Action == enforce.Allow {
			rows = append(rows, w.keptACL(namespace, group, r, row, families))
		}
		for _, row := range rows {
			if i > 0 {
				row.Name, row.IDs = cut(row.Name+":"+family(families[0])), ofFamily(row.IDs, families[0])
			}
			out = append(out, row)
		}
	}
	return out
}

// inSets returns the part of a match that tests addresses against sets. id returns the id of the set of a family.
func inSets(families []bool, id func(v4 bool) string) string {
	var out []string
	for _, v4 := range families {
		out = append(out, fmt.Sprintf("%s.dst == $%s", ip(v4), hashName(id(v4))))
	}
	return strings.Join(out, " || ")
}

// keptACL returns the row that lets connections continue after their address left the set of the rule's name. It has
// the priority of its rule, so that the rules before it decide first. It exists before any address is kept, because it
// makes the switch track connections. A connection that began untracked could not be distinguished from a new one.
func (w Input) keptACL(namespace, group string, r enforce.Rule, acl ACL, families []bool) ACL {
	acl.Name = cut(fmt.Sprintf("EFK:%s:%d", namespace, r.Index))
	acl.Action = "allow-related"
	acl.Match = match(inSets(families, func(v4 bool) string { return keptIDs(r.Pattern, v4)[idKey] }), group, r.Ports) +
		established
	acl.IDs = ids(ourController, keptACLType, namespace, ruleKey, strconv.Itoa(r.Index))
	return acl
}

// established matches packets of connections that were allowed when they began and have not been blocked since.
const established = " && ct.est && !ct.new && ct_mark.blocked == 0"

func match(dst, group string, ports []enforce.Port) string {
	m := fmt.Sprintf("(%s) && inport == @%s", dst, group)
	if len(ports) > 0 {
		m += " && " + matchPorts(ports)
	}
	return m
}

// destination returns the part of a match that tests fixed addresses, or an empty string if no packet can match.
func (w Input) destination(r enforce.Rule) string {
	if r.Kind == enforce.ByCIDR {
		return w.cidr(r.CIDR)
	}
	var addrs, out []string
	for _, a := range r.Nodes {
		addrs = append(addrs, a.String())
	}
	for _, a := range sorted(addrs) {
		out = append(out, fmt.Sprintf("%s.dst == %s", ip(netip.MustParseAddr(a).Is4()), a))
	}
	return strings.Join(out, " || ")
}

// cidr excludes the pod subnets, which are the subject of network policies.
func (w Input) cidr(p netip.Prefix) string {
	field := ip(p.Addr().Is4()) + ".dst"
	out := fmt.Sprintf("%s == %s", field, p)
	var not []string
	for _, s := range w.ClusterSubnets {
		if s.Overlaps(p) {
			not = append(not, fmt.Sprintf("%s != %s", field, s.Masked()))
		}
	}
	if len(not) == 0 {
		return out
	}
	return out + " && " + strings.Join(not, "&&")
}

func ip(v4 bool) string {
	if v4 {
		return "ip4"
	}
	return "ip6"
}

func matchPorts(ports []enforce.Port) string {
	var protocols []string
	for _, p := range []struct {
		number enforce.Protocol
		name   string
	}{{enforce.UDP, "udp"}, {enforce.TCP, "tcp"}, {enforce.SCTP, "sctp"}} {
		var terms []string
		for _, port := range ports {
			if port.Protocol == p.number {
				terms = append(terms, fmt.Sprintf("%s.dst == %d", p.name, port.Port))
			}
		}
		if len(terms) > 0 {
			protocols = append(protocols, fmt.Sprintf("(%s && ( %s ))", p.name, strings.Join(terms, " || ")))
		}
	}
	return "(" + strings.Join(protocols, " || ") + ")"
}

// cut shortens a name to the limit of the column. Names are for people; rows are not found by name.
func cut(s string) string { return s[:min(len(s), maxName)] }

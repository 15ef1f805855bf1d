// Package ovn turns egress firewalls into rows of OVN's northbound database, and keeps them there.
//
// Start with Render in render.go, which returns the rows that should exist, and Plan in plan.go, which returns the
// operations that lead there from the existing rows. Both are pure functions. DB in db.go is the connection to the
// database. The rows are identical to those of OVN-Kubernetes except for the differences that Features list, so that
// either program can replace the other.
package ovn

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// Input is everything that the rows depend on.
type Input struct {
	Firewalls []enforce.Firewall // at most one per namespace
	// Frozen lists namespaces whose firewall cannot be read completely. Their rows stay unchanged.
	Frozen []string
	// Names lists the names whose sets are kept up to date for the rules of frozen firewalls.
	Names []enforce.Pattern
	// Learned has the current addresses of each name.
	Learned map[enforce.Pattern][]netip.Addr
	// Kept has former addresses of each name. Existing connections to them continue, but new ones are not allowed. See
	// Features.Keep.
	Kept map[enforce.Pattern][]netip.Addr
	// Ports has the UUIDs of the logical switch ports of the pods of each namespace. It is only used if ManageGroups is
	// set.
	Ports          map[string][]string
	Logging        map[string]Logging // by namespace
	ClusterSubnets []netip.Prefix
	V4, V6         bool // address families of the cluster
}

// Logging has the severities with which packets are logged. An empty severity means no log.
type Logging struct{ Allow, Deny string }

// Features describe what the database supports and what the agent does in it.
type Features struct {
	Tier         bool // ACLs have tiers: OVN 23.06 and later
	ManageGroups bool // the agent, not OVN-Kubernetes, creates and fills port groups
	Keep         bool // connections continue after their address is removed; adds rows that OVN-Kubernetes does not have
	// Stock creates one ACL per rule, as OVN-Kubernetes does. Without it, a rule by name has one ACL per address family,
	// so that ovn-controller does not rebuild all flows of the rule for each new address.
	Stock bool
	Guard bool // switches cache denials by single address; adds rows that OVN-Kubernetes does not have
}

// Rows are rows of the three tables that this package writes.
type Rows struct {
	Sets   []AddressSet
	Groups []PortGroup
	ACLs   []ACL
	Frozen []string // only in wanted rows: see Input
}

// AddressSet is a row of Address_Set. UUID is empty in wanted rows, here and below.
type AddressSet struct {
	UUID, Name string
	Addresses  []string
	IDs        map[string]string
}

// PortGroup is a row of Port_Group.
type PortGroup struct {
	UUID, Name string
	Ports      []string // UUIDs
	ACLs       []string // UUIDs; in wanted rows, the ids of ACLs
	IDs        map[string]string
}

// ACL is a row of ACL. Label and Options are always empty in wanted rows, but another program may have set them.
type ACL struct {
	UUID, Name, Direction, Match, Action, Severity, Meter string
	Priority, Tier, Label                                 int
	Log                                                   bool
	IDs, Options                                          map[string]string
}

// Addresses returns the current and the former addresses of names, as stored in the sets of r.
func (r Rows) Addresses() (learned, kept map[enforce.Pattern][]netip.Addr) {
	learned, kept = map[enforce.Pattern][]netip.Addr{}, map[enforce.Pattern][]netip.Addr{}
	for _, s := range r.Sets {
		p, err := enforce.ParsePattern(s.IDs[nameKey], enforce.PatternOptions{Deep: true})
		if err != nil || !s.ours() {
			continue
		}
		to := learned
		if s.IDs[typeKey] == keptSetType {
			to = kept
		}
		for _, text := range s.Addresses {
			if a, err := netip.ParseAddr(text); err == nil {
				to[p] = append(to[p], a)
			}
		}
	}
	return learned, kept
}

// Keys and values of external_ids that OVN-Kubernetes uses.
const (
	idKey         = "k8s.ovn.org/id"
	controllerKey = "k8s.ovn.org/owner-controller"
	typeKey       = "k8s.ovn.org/owner-type"
	nameKey       = "k8s.ovn.org/name"
	familyKey     = "ip-family"
	ruleKey       = "rule-index"

	stockController = "default-network-controller"
	setType         = "EgressFirewallDNS"
	groupType       = "Namespace"
	aclType         = "EgressFirewall"

	// Values for rows that OVN-Kubernetes does not have.
	ourController = "nameplane"
	keptSetType   = "EgressFirewallDNSKept"
	keptACLType   = "EgressFirewallKept"
	guardType     = "EgressFirewallGuard"
	partKey       = "part"

	// madeKey marks port groups that this package created, and may therefore delete.
	madeKey = "nameplane/made"
)

// ids returns the external ids of a row. The value of key is part of the id.
func ids(controller, kind, name, key, value string) map[string]string {
	m := map[string]string{controllerKey: controller, typeKey: kind, nameKey: name}
	id := controller + ":" + kind + ":" + name
	if key != "" {
		m[key] = value
		id += ":" + value
	}
	m[idKey] = id
	return m
}

// ofFamily returns the ids of the row for one address family. It keeps the keys by which OVN-Kubernetes finds stale
// rows.
func ofFamily(ids map[string]string, v4 bool) map[string]string {
	out := maps.Clone(ids)
	out[familyKey] = family(v4)
	out[idKey] += ":" + family(v4)
	return out
}

// hashName returns an identifier for OVN expressions, computed from an id in the same manner as OVN-Kubernetes.
func hashName(id string) string {
	h := fnv.New64a()
	h.Write([]byte(id))
	return "a" + strconv.FormatUint(h.Sum64(), 10)
}

// SetName returns the name of the address set of p for the family of addr.
func SetName(p enforce.Pattern, addr netip.Addr) string {
	return hashName(setIDs(p, addr.Is4())[idKey])
}

func setIDs(p enforce.Pattern, v4 bool) map[string]string {
	return ids(stockController, setType, p.String(), familyKey, family(v4))
}

func keptIDs(p enforce.Pattern, v4 bool) map[string]string {
	return ids(ourController, keptSetType, p.String(), familyKey, family(v4))
}

func family(v4 bool) string {
	if v4 {
		return "v4"
	}
	return "v6"
}

func groupName(namespace string) string { return hashName(groupIDs(namespace)[idKey]) }

func groupIDs(namespace string) map[string]string {
	return ids(stockController, groupType, namespace, "", "")
}

func (a ACL) id() string { return a.IDs[idKey] }

// ours reports whether an ACL is of a kind that this package writes, whatever its content.
func (a ACL) ours() bool { return isOurs(a.IDs, aclType, keptACLType, guardType) }

func (s AddressSet) ours() bool { return isOurs(s.IDs, setType, keptSetType) }

func isOurs(ids map[string]string, stock string, own ...string) bool {
	switch ids[controllerKey] {
	case stockController:
		return ids[typeKey] == stock
	case ourController:
		return slices.Contains(own, ids[typeKey])
	}
	return false
}

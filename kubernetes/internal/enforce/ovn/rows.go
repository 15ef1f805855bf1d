// Package ovn turns egress firewalls into rows of OVN's northbound database, and keeps them there.
//
// Render says which rows there should be, Plan which operations lead there from those there are; both are functions of values.
// DB is the database. The rows are those of OVN-Kubernetes, so that either can take over from the other: to the letter but for what
// Features say.
package ovn

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// World is all that rows depend on.
type World struct {
	Firewalls []enforce.Firewall // at most one of a namespace
	// Frozen are namespaces whose firewall cannot be read as a whole. Their rows stay as they are.
	Frozen []string
	// Names are names whose sets are kept up to date for the rules of frozen firewalls.
	Names []enforce.Pattern
	// Learned are the addresses that a name has now.
	Learned map[enforce.Pattern][]netip.Addr
	// Kept are addresses that a name had. Connections that were made then live on; new ones are not made. See Features.Keep.
	Kept map[enforce.Pattern][]netip.Addr
	// Ports are the logical switch ports of the pods of a namespace, by UUID. Only used when port groups are ours.
	Ports          map[string][]string
	Logging        map[string]Logging // by namespace
	ClusterSubnets []netip.Prefix
	V4, V6         bool // which families the cluster has
}

// Logging are the severities with which packets are logged; empty ones are not.
type Logging struct{ Allow, Deny string }

// Features are what the database can do and what this agent is to do in it.
type Features struct {
	Tier         bool // ACLs have tiers: OVN 23.06 and later
	ManageGroups bool // port groups are made and filled by us, not by OVN-Kubernetes
	Keep         bool // connections outlive the addresses they were made to; adds rows that OVN-Kubernetes has no like of
	// Stock makes one ACL of every rule, as OVN-Kubernetes does. Without it a rule by name has one for each family of addresses, so that
	// ovn-controller need not make all its flows again for an address that comes.
	Stock bool
	Guard bool // switches remember refusals by address; adds rows that OVN-Kubernetes has no like of
}

// Rows are rows of the three tables we write.
type Rows struct {
	Sets   []AddressSet
	Groups []PortGroup
	ACLs   []ACL
	Frozen []string // of wanted rows: see World
}

// AddressSet is a row of Address_Set. UUIDs are empty in wanted rows, here and below.
type AddressSet struct {
	UUID, Name string
	Addresses  []string
	IDs        map[string]string
}

// PortGroup is a row of Port_Group.
type PortGroup struct {
	UUID, Name string
	Ports      []string // UUIDs
	ACLs       []string // UUIDs; in wanted rows the ids of ACLs
	IDs        map[string]string
}

// ACL is a row of ACL. Label and Options are never wanted, but somebody may have set them.
type ACL struct {
	UUID, Name, Direction, Match, Action, Severity, Meter string
	Priority, Tier, Label                                 int
	Log                                                   bool
	IDs, Options                                          map[string]string
}

// Addresses are what names have and had, as the sets in r say it.
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

// Keys and values of external_ids, as OVN-Kubernetes has them.
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

	// Rows that OVN-Kubernetes has no like of.
	ourController = "nameplane"
	keptSetType   = "EgressFirewallDNSKept"
	keptACLType   = "EgressFirewallKept"
	guardType     = "EgressFirewallGuard"
	partKey       = "part"

	// madeKey marks port groups that we made, and may therefore delete.
	madeKey = "nameplane/made"
)

// ids makes the external ids of a row; the values in rest are part of its id.
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

// ofFamily are the ids of a row's like for one family. OVN-Kubernetes finds stale rows by what it leaves as it is.
func ofFamily(ids map[string]string, v4 bool) map[string]string {
	out := maps.Clone(ids)
	out[familyKey] = family(v4)
	out[idKey] += ":" + family(v4)
	return out
}

// hashName is how OVN-Kubernetes makes an identifier of OVN expressions out of an id.
func hashName(id string) string {
	h := fnv.New64a()
	h.Write([]byte(id))
	return "a" + strconv.FormatUint(h.Sum64(), 10)
}

// SetName is the name of the address set of p for the family of addr.
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

// ours tells whether an ACL is of the kinds we write, whatever is in it.
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

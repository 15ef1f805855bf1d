package ovn

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// guards returns rows that no packet matches. Every packet of the pods is compared with them, so that the switch caches
// denials by single address.
//
// Open vSwitch caches its decision for all packets that it did not need to distinguish. To look up an address it reads
// only as many leading bits as are needed to exclude a match. A denial is therefore cached for a whole network, which
// is larger if fewer addresses are allowed. When an address of that network becomes allowed, the cached denial remains
// for some milliseconds, and hv_cfg does not wait for that. Half of the first packets to an address near one that was
// being denied were lost. This optimisation applies only to matches that are prefixes. The matches of the guards are
// not prefixes, and together they cover all bits of an address.
//
// The guards also require a TTL of zero, which no packet has.
func (w Input) guards(fw enforce.Firewall, group string, f Features) []ACL {
	if !f.Guard || !slices.ContainsFunc(fw.Rules,
		func(r enforce.Rule) bool { return r.Kind == enforce.ByName && r.Action == enforce.Allow }) {
		return nil
	}
	var out []ACL
	for _, v4 := range w.families() {
		last := 127
		if v4 {
			last = 31
		}
		for i, bits := range []string{
			fmt.Sprintf("%s.dst[0..%d] == 0", ip(v4), last-1),
			fmt.Sprintf("%s.dst[0] == 1 && %[1]s.dst[%d] == 1", ip(v4), last),
		} {
			part := strconv.Itoa(i)
			out = append(out, ACL{
				Name:      cut("EFG:" + fw.Namespace + ":" + part + ":" + family(v4)),
				Direction: direction,
				Priority:  firstPriority + 1,
				Action:    "drop",
				Meter:     meter,
				Match:     match(bits, group, nil) + " && ip.ttl == 0",
				IDs:       ofFamily(ids(ourController, guardType, fw.Namespace, partKey, part), v4),
			})
		}
	}
	return out
}

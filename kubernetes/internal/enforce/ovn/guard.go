package ovn

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// guards are rows that no packet matches, and that every packet of the pods is compared with, so that their switch remembers refusals by
// address.
//
// Open vSwitch remembers what it did with a packet for all packets that it had no reason to tell from it. Where it looks for addresses it
// reads as many leading bits as it needs to know that it will not find this one: a refusal stands for a whole network, which is the
// wider the fewer addresses are allowed. When one of that network is allowed, the memory outlives the change by some milliseconds, and
// hv_cfg does not wait for that: half of the first packets were lost to addresses next to one that was being refused. It can only
// save reading for matches that are prefixes. These are not, and together have all bits of an address.
//
// They ask for a TTL of zero, too, with which no packet is sent.
func (w World) guards(fw enforce.Firewall, group string, f Features) []ACL {
	if !f.Guard || !slices.ContainsFunc(fw.Rules, func(r enforce.Rule) bool { return r.Kind == enforce.ByName && r.Action == enforce.Allow }) {
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

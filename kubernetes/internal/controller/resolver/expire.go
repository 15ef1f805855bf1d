package resolver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
)

// grace is the time for which an address stays after its TTL, so that an address that is being refreshed does not flap.
const grace = 5 * time.Second

// recheckAfter is the delay until an address that stays after its end is checked again.
const recheckAfter = 2 * time.Second

// expiry is the result of checking a status at a time.
type expiry struct {
	patch []operation // removes ended addresses; nil if there are none
	gone  int         // number of addresses that patch removes
	ended []string    // names with an address past its TTL: query them now
	next  time.Time   // when to check again; zero means never

	stays stays
}

// stays reports whether an address of a name stays although its end has passed.
type stays func(name v1alpha1.DNSName, ip string, end time.Time) bool

type operation = fetch.Operation

// expired finds the addresses that have ended. It removes addresses whose TTL and grace have passed. For a wildcard it
// also removes the names without addresses, because a wildcard matches an unlimited number of names. Tests in the patch
// verify that it removes what was seen here: if the status changed meanwhile, nothing happens.
//
// keep means that nothing must be removed now: while no CoreDNS pod answers, the current addresses are unknown. stays
// decides for one address: the plugin may be slower to write an answer than this controller is to see it.
func expired(r *v1alpha1.DNSNameResolver, now time.Time, keep bool, stays stays) expiry {
	l := expiry{stays: stays}
	var removals []operation                                // applied from the end, so that the other indexes stay valid
	wildcard := strings.HasPrefix(string(r.Spec.Name), "*") // including deep ones
	for i, n := range r.Status.ResolvedNames {
		over := l.check(n, now, keep)
		path := fmt.Sprintf("/status/resolvedNames/%d", i)
		whole := wildcard && len(over) == len(n.ResolvedAddresses) && !keep
		if len(over) == 0 && !whole {
			continue
		}
		if len(l.patch)+len(removals) > fetch.MaxOperations-5 {
			break // the next event removes the other ones
		}
		l.patch = append(l.patch, operation{Op: "test", Path: path + "/dnsName", Value: n.DNSName})
		if whole {
			l.gone += len(over)
			l.patch = append(l.patch, operation{Op: "test", Path: path + "/resolvedAddresses", Value: n.ResolvedAddresses})
			removals = append(removals, operation{Op: "remove", Path: path})
			continue
		}
		for _, j := range over[:min(len(over), max(fetch.MaxOperations-len(l.patch)-len(removals), 0)/2)] {
			l.gone++
			at := fmt.Sprintf("%s/resolvedAddresses/%d", path, j)
			l.patch = append(l.patch, operation{Op: "test", Path: at, Value: n.ResolvedAddresses[j]})
			removals = append(removals, operation{Op: "remove", Path: at})
		}
	}
	slices.Reverse(removals)
	l.patch = append(l.patch, removals...)
	return l
}

// check notes when the addresses of one name end. It returns the indexes of the addresses to remove.
func (l *expiry) check(n v1alpha1.DNSNameResolverResolvedName, now time.Time, keep bool) (over []int) {
	asked := false
	for j, a := range n.ResolvedAddresses {
		var end time.Time
		if a.LastLookupTime != nil {
			end = a.LastLookupTime.Add(time.Duration(a.TTLSeconds) * time.Second)
		}
		switch {
		case now.Before(end):
			l.wait(end)
		case now.Before(end.Add(grace)):
			l.wait(end.Add(grace))
			asked = true
		case keep:
			l.wait(now.Add(grace))
			asked = true
		case l.stays(n.DNSName, a.IP, end):
			l.wait(now.Add(recheckAfter))
			asked = true
		default:
			over = append(over, j)
		}
	}
	if asked {
		l.ended = append(l.ended, string(n.DNSName))
	}
	return over
}

func (l *expiry) wait(t time.Time) {
	if l.next.IsZero() || t.Before(l.next) {
		l.next = t
	}
}

package resolver

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
)

// grace is how long an address stays after its TTL, so that one that is being refreshed does not come and go.
const grace = 5 * time.Second

// lookAgain is how soon an address that should be over and stands is looked at again.
const lookAgain = 2 * time.Second

// lapse is what time has done to a status.
type lapse struct {
	patch []operation // removes what is over; nil, if nothing is
	gone  int         // addresses that it removes
	ended []string    // names of which an address is past its TTL and will be over: now is the time to ask
	next  time.Time   // when to look again; zero: nothing is waited for

	stands stands
}

// stands tells whether an address of a name stays though it was to be over at a moment.
type stands func(name v1alpha1.DNSName, ip string, end time.Time) bool

type operation = fetch.Operation

// lapsed finds what is over at a moment. It removes addresses that are past their TTL and the grace after it; of a wildcard
// also the names that have no address left, because there is no end to the names that it matches. Every removal is
// preceded by tests that it removes what was seen here: if the status has changed meanwhile, nothing happens.
//
// Keep says that nothing is to be removed now: while no CoreDNS pod answers, nobody can tell what is still true. Stands
// says so of one address: the plugin may be slower to write what we have heard ourselves.
func lapsed(r *v1alpha1.DNSNameResolver, now time.Time, keep bool, stands stands) lapse {
	l := lapse{stands: stands}
	var removals []operation                                // to be done from the end, so that positions stay true
	wildcard := strings.HasPrefix(string(r.Spec.Name), "*") // deep ones, too
	for i, n := range r.Status.ResolvedNames {
		over := l.look(n, now, keep)
		path := fmt.Sprintf("/status/resolvedNames/%d", i)
		whole := wildcard && len(over) == len(n.ResolvedAddresses) && !keep
		if len(over) == 0 && !whole {
			continue
		}
		if len(l.patch)+len(removals) > fetch.MaxOperations-5 {
			break // the removal of the others comes with the next event
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

// look notes what of one name ends when, and returns the positions of the addresses that are over.
func (l *lapse) look(n v1alpha1.DNSNameResolverResolvedName, now time.Time, keep bool) (over []int) {
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
		case l.stands(n.DNSName, a.IP, end):
			l.wait(now.Add(lookAgain))
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

func (l *lapse) wait(t time.Time) {
	if l.next.IsZero() || t.Before(l.next) {
		l.next = t
	}
}

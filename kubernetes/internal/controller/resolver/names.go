package resolver

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

const (
	// maxPods is the number of pods that are queried for a name with several addresses: each pod may know other ones.
	maxPods = 5

	// A name that resolves, but of which the plugin has written nothing, is queried again after firstAgain. The delay
	// doubles each time, up to lastAgain: the plugin may not have known the object yet.
	firstAgain = time.Second
	lastAgain  = 30 * time.Second
)

// names is the set of names that objects need to be queried.
type names struct {
	follow, unfollow func(dnsname.Name)

	mu sync.Mutex // guards the fields below
	// names of each object; true if it has several addresses of a family
	of    map[types.NamespacedName]map[dnsname.Name]bool
	many  map[dnsname.Name]int                  // number of objects with several addresses of a name
	under map[dnsname.Name]types.NamespacedName // wildcard that contains the name; the first one, if there are several
	again map[types.NamespacedName]wait         // retries of names that were not learned
}

// wait is the time of the next retry, and the delay after that.
type wait struct {
	at   time.Time
	step time.Duration
}

func newNames(follow, unfollow func(dnsname.Name)) *names {
	return &names{
		follow: follow, unfollow: unfollow,
		of:    map[types.NamespacedName]map[dnsname.Name]bool{},
		many:  map[dnsname.Name]int{},
		under: map[dnsname.Name]types.NamespacedName{},
		again: map[types.NamespacedName]wait{},
	}
}

// wanted returns the names to query for an object: its own name, even if it is a wildcard, and the names in its status.
// The value is true if the name has several addresses.
func wanted(r *v1alpha1.DNSNameResolver) map[dnsname.Name]bool {
	out := make(map[dnsname.Name]bool, len(r.Status.ResolvedNames)+1)
	add := func(s v1alpha1.DNSName, several bool) {
		if n, err := dnsname.Parse(string(s)); err == nil {
			out[n] = out[n] || several
		}
	}
	if !strings.HasPrefix(string(r.Spec.Name), "**.") { // not a name that can be queried
		add(r.Spec.Name, false)
	}
	for _, n := range r.Status.ResolvedNames {
		add(n.DNSName, severalOf(n))
	}
	return out
}

// severalOf reports whether a name has more than one address of a family: the other family is another query.
func severalOf(n v1alpha1.DNSNameResolverResolvedName) bool {
	v6 := 0
	for _, a := range n.ResolvedAddresses {
		if strings.Contains(a.IP, ":") {
			v6++
		}
	}
	return v6 > 1 || len(n.ResolvedAddresses)-v6 > 1
}

// set follows the names of an object and unfollows those that it no longer has. r is nil if the object was deleted.
func (s *names) set(key types.NamespacedName, r *v1alpha1.DNSNameResolver) {
	var now map[dnsname.Name]bool
	wildcard := false
	if r != nil {
		now, wildcard = wanted(r), strings.HasPrefix(string(r.Spec.Name), "*")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil {
		delete(s.again, key)
	}
	had := s.of[key]
	for n, several := range now {
		before, known := had[n]
		if !known {
			s.follow(n)
		}
		if _, has := s.under[n]; wildcard && !has {
			s.under[n] = key
		}
		s.count(n, before, several)
	}
	for n, several := range had {
		if _, stays := now[n]; !stays {
			s.unfollow(n)
			s.count(n, several, false)
			if s.under[n] == key {
				delete(s.under, n)
			}
		}
	}
	if s.of[key] = now; len(now) == 0 {
		delete(s.of, key)
	}
}

// count updates the number of objects that have several addresses of a name.
func (s *names) count(n dnsname.Name, before, now bool) {
	switch {
	case now && !before:
		s.many[n]++
	case before && !now:
		if s.many[n]--; s.many[n] == 0 {
			delete(s.many, n)
		}
	}
}

// width returns the number of pods to query for a name. With at most one address, another pod cannot add any.
func (s *names) width(n dnsname.Name) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.many[n] == 0 {
		return 1
	}
	return maxPods
}

// home returns the key that selects the preferred pod of a name. All names of a wildcard have the same key, so that one
// plugin renews many of them with one write: the cost of a write grows with the size of the whole status.
func (s *names) home(n dnsname.Name) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, ok := s.under[n]; ok {
		return key.String()
	}
	return n.String()
}

// len returns the number of objects.
func (s *names) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// unlearned returns the time of the next query for an object that has no entries although its name resolves. due
// reports that the time has come. A name that was learned starts again with firstAgain.
func (s *names) unlearned(key types.NamespacedName, learned bool, now time.Time) (due bool, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if learned {
		delete(s.again, key)
		return false, time.Time{}
	}
	w, ok := s.again[key]
	switch {
	case !ok:
		w = wait{now.Add(firstAgain), 2 * firstAgain}
	case !now.Before(w.at):
		due = true
		w = wait{now.Add(w.step), min(2*w.step, lastAgain)}
	}
	s.again[key] = w
	return due, w.at
}

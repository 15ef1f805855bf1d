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
	// maxPods is how many pods are asked for a name that has several addresses: each may know other ones of them.
	maxPods = 5

	// A name that resolves, but of which the plugin has written nothing, is asked for again after firstAgain, and after twice as
	// long each time, up to lastAgain: the plugin may not have known of the object yet.
	firstAgain = time.Second
	lastAgain  = 30 * time.Second
)

// names are the names that objects want to be asked for.
type names struct {
	follow, unfollow func(dnsname.Name)

	mu    sync.Mutex                                     // guards the following
	of    map[types.NamespacedName]map[dnsname.Name]bool // whether it has several addresses of a family of a name
	many  map[dnsname.Name]int                           // how many objects have
	under map[dnsname.Name]types.NamespacedName          // the wildcard that has it; the first, if there are several
	again map[types.NamespacedName]wait
}

// wait is when to ask again for a name that was not learned, and how long the wait after that is.
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

// wanted are the names to ask for because of an object: its own, be it a wildcard, and those that it has addresses of; and whether
// it has several of them.
func wanted(r *v1alpha1.DNSNameResolver) map[dnsname.Name]bool {
	out := make(map[dnsname.Name]bool, len(r.Status.ResolvedNames)+1)
	add := func(s v1alpha1.DNSName, several bool) {
		if n, err := dnsname.Parse(string(s)); err == nil {
			out[n] = out[n] || several
		}
	}
	if !strings.HasPrefix(string(r.Spec.Name), "**.") { // which is no name one could ask for
		add(r.Spec.Name, false)
	}
	for _, n := range r.Status.ResolvedNames {
		add(n.DNSName, severalOf(n))
	}
	return out
}

// severalOf tells whether a name has more than one address of a family: the other family is another question.
func severalOf(n v1alpha1.DNSNameResolverResolvedName) bool {
	v6 := 0
	for _, a := range n.ResolvedAddresses {
		if strings.Contains(a.IP, ":") {
			v6++
		}
	}
	return v6 > 1 || len(n.ResolvedAddresses)-v6 > 1
}

// set follows the names of an object, and no longer those that it does not have any more. An object that is gone is nil.
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

// count notes that an object has several addresses of a name, or no longer.
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

// width is how many pods are asked for a name: with one address or none there is nothing that another pod could add.
func (s *names) width(n dnsname.Name) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.many[n] == 0 {
		return 1
	}
	return maxPods
}

// home is by what the pod is chosen that is asked for a name each time. Names of a wildcard have one home, so that one plugin renews them,
// with one write for many: each write of a status costs the API server as much as the whole of it is large.
func (s *names) home(n dnsname.Name) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, ok := s.under[n]; ok {
		return key.String()
	}
	return n.String()
}

// len is how many objects there are.
func (s *names) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// unlearned reports when to ask once more for the name of an object that has nothing although the name resolves; due says
// that it is time. A name that was learned starts over.
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

package resolver

import (
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// downAfter is the number of consecutive queries without a reply after which a pod counts as down.
	downAfter = 3

	// A pod that is down is tried again after firstRetry. The delay doubles each time, up to lastRetry. Another pod gets
	// the same query, so no name waits for the pod that is down.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// pods is the set of CoreDNS pods and their health.
type pods struct {
	shuffle func(n int, swap func(i, j int))
	// weight of a pod for a name; the pod with the largest one is the home of the name
	weight func(name string, pod netip.AddrPort) uint64

	mu       sync.Mutex // guards the fields below
	all      []*pod
	dark     time.Time // when no pod was up last
	answered time.Time // when a pod answered last
}

// pod is one CoreDNS pod. The mutex of its set guards its fields.
type pod struct {
	addr    netip.AddrPort
	silent  int // consecutive queries without a reply
	retries int
	until   time.Time // when it may be tried again
}

func newPods(now time.Time) *pods { return &pods{shuffle: rand.Shuffle, weight: weight, dark: now} }

// weight gives each name another order of pods (rendezvous hashing): if a pod comes or goes, only its own names move.
func weight(name string, pod netip.AddrPort) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + " " + pod.String()))
	x := h.Sum64() // its high bits depend little on the last bytes
	x ^= x >> 32
	return x * 0x9e3779b97f4a7c15
}

// begin marks the start of queries: before, another leader sent them, or none did.
func (p *pods) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dark = now
}

// set sets the pods. Those that remain keep their health.
func (p *pods) set(addrs []netip.AddrPort, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upLocked(now)
	next := make([]*pod, 0, len(addrs))
	for _, a := range slices.Compact(slices.SortedFunc(slices.Values(addrs), netip.AddrPort.Compare)) {
		i := slices.IndexFunc(p.all, func(q *pod) bool { return q.addr == a })
		if i >= 0 {
			next = append(next, p.all[i])
		} else {
			next = append(next, &pod{addr: a})
		}
	}
	p.all = next
}

func (p *pods) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// pick chooses n pods for a name among those that are up, and returns all other pods in others, those that are up
// first. The first chosen pod is the home of the name. It is the same each time for the same text, so that one plugin
// learns all types of the name and keeps writing it. The other pods are random. A pod that is down and due for a retry
// is chosen in addition to the n, so that no query waits for it alone.
func (p *pods) pick(name string, n int, now time.Time) (chosen, others []*pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var up, down, back []*pod
	for _, q := range p.all {
		switch {
		case q.silent < downAfter:
			up = append(up, q)
		case !now.Before(q.until):
			q.backOff(now) // other queries must not try it at the same time
			back = append(back, q)
		default:
			down = append(down, q)
		}
	}
	p.shuffle(len(up), func(i, j int) { up[i], up[j] = up[j], up[i] })
	for i, q := range up {
		if p.weight(name, q.addr) > p.weight(name, up[0].addr) {
			up[0], up[i] = up[i], up[0]
		}
	}
	n = min(n, len(up))
	chosen = append(slices.Clone(up[:n]), back...)
	others = append(slices.Clone(up[n:]), down...)
	if len(chosen) == 0 { // all are down: query some nevertheless
		k := min(max(n, 1), len(others))
		chosen, others = others[:k], others[k:]
	}
	return chosen, others
}

// report records whether a pod answered.
func (p *pods) report(q *pod, answered bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upLocked(now)
	if answered {
		q.silent, q.retries = 0, 0
		p.answered = now
		return
	}
	q.silent++
	if q.silent == downAfter {
		q.backOff(now)
	}
}

// backOff delays the next retry of a pod.
func (q *pod) backOff(now time.Time) {
	q.until = now.Add(min(firstRetry<<min(q.retries, 10), lastRetry))
	q.retries++
}

// up returns the number of pods that answer, and the last time at which there were none.
func (p *pods) up(now time.Time) (n int, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upLocked(now), p.dark
}

// upLocked counts the pods that are up. It also updates dark, before any change of the pods: otherwise a period without
// pods could be missed.
func (p *pods) upLocked(now time.Time) (n int) {
	for _, q := range p.all {
		if q.silent < downAfter {
			n++
		}
	}
	if n == 0 {
		p.dark = now
	}
	return n
}

// inTheDark reports whether no pod answers, or none did until recently, so that the current addresses are unknown. If a
// pod answered, an address that was queried at the end of its TTL was answered within the grace.
func (p *pods) inTheDark(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upLocked(now) == 0 || now.Sub(p.dark) < 2*grace || now.Sub(p.answered) > grace+time.Second
}

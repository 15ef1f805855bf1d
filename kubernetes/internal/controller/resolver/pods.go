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
	// downAfter is how many queries in a row a pod must leave unanswered before it is left alone.
	downAfter = 3

	// A pod that is down is tried again after firstRest, and after twice as long each time, up to lastRest. What waits for it
	// is one query, not a name: whoever tries it has asked another pod as well.
	firstRest = time.Second
	lastRest  = 30 * time.Second
)

// pods are the CoreDNS pods that may be asked, and how they fare.
type pods struct {
	shuffle func(n int, swap func(i, j int))
	near    func(name string, pod netip.AddrPort) uint64 // the pod of which this is greatest is the home of a name

	mu       sync.Mutex // guards the following
	all      []*pod
	dark     time.Time // when none was up last
	answered time.Time // when one answered last
}

// pod is one of them. Its fields are guarded by the mutex of its set.
type pod struct {
	addr   netip.AddrPort
	silent int // queries in a row that it did not answer
	rests  int
	until  time.Time // when it may be tried again
}

func newPods(now time.Time) *pods { return &pods{shuffle: rand.Shuffle, near: near, dark: now} }

// near gives each name another order of pods, of which only those change that come or go.
func near(name string, pod netip.AddrPort) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + " " + pod.String()))
	x := h.Sum64() // whose high bits hardly know of the last octets
	x ^= x >> 32
	return x * 0x9e3779b97f4a7c15
}

// begin says that it is asked from now on: before, another leader did, or nobody.
func (p *pods) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dark = now
}

// set makes these the pods there are. Those that stay keep their health.
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

// pick chooses n pods for a name among those that are up, and puts all other pods behind them, those that are up first. The first is
// the home of the name, the same each time for the same text, so that one plugin learns all types of it and goes on writing it; the others are
// chosen by chance. A pod that is down and has rested is chosen besides the n, so that it can show that it is back and nobody
// waits for it alone.
func (p *pods) pick(name string, n int, now time.Time) (chosen, others []*pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var up, down, back []*pod
	for _, q := range p.all {
		switch {
		case q.silent < downAfter:
			up = append(up, q)
		case !now.Before(q.until):
			q.rest(now) // others shall not try it at the same time
			back = append(back, q)
		default:
			down = append(down, q)
		}
	}
	p.shuffle(len(up), func(i, j int) { up[i], up[j] = up[j], up[i] })
	for i, q := range up {
		if p.near(name, q.addr) > p.near(name, up[0].addr) {
			up[0], up[i] = up[i], up[0]
		}
	}
	n = min(n, len(up))
	chosen = append(slices.Clone(up[:n]), back...)
	others = append(slices.Clone(up[n:]), down...)
	if len(chosen) == 0 { // all are down: some must be asked nevertheless
		k := min(max(n, 1), len(others))
		chosen, others = others[:k], others[k:]
	}
	return chosen, others
}

// report tells whether a pod answered.
func (p *pods) report(q *pod, answered bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upLocked(now)
	if answered {
		q.silent, q.rests = 0, 0
		p.answered = now
		return
	}
	q.silent++
	if q.silent == downAfter {
		q.rest(now)
	}
}

// rest leaves a pod alone for a while.
func (q *pod) rest(now time.Time) {
	q.until = now.Add(min(firstRest<<min(q.rests, 10), lastRest))
	q.rests++
}

// up is how many pods answer, and since when there has been one.
func (p *pods) up(now time.Time) (n int, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upLocked(now), p.dark
}

// upLocked notes when none is up, also before that changes: nobody may look in between.
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

// inTheDark reports whether no pod answers, or none did until a moment ago, so that what is true could not be learned. What was
// asked for when its TTL ended was answered within the grace after it, or nothing was.
func (p *pods) inTheDark(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upLocked(now) == 0 || now.Sub(p.dark) < 2*grace || now.Sub(p.answered) > grace+time.Second
}

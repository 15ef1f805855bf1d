package crash

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// load is a number of writers that change one zone. Each writer owns its units, so no other writer changes them, and
// has one request in flight.
type load struct {
	zone    zone
	writers []*writer
	checked atomic.Int64  // answers that were compared with a change right after its acknowledgement
	serial  atomic.Uint32 // highest serial that was acknowledged or served
}

const (
	writers   = 4
	singles   = 8 // units with one record set, per writer
	batches   = 3 // units with five record sets, per writer
	batchSize = 5
)

// unit has the record sets that change together: one set, or the five of a batch.
type unit struct {
	names []string
	id    string   // ID of a single set, while it exists
	acked []string // last acknowledged text of each name; "" for no set
	maybe []string // texts after a request without a reply; nil for none
}

// step is one request of a writer with the texts that it gives to a unit.
type step struct {
	unit   int
	values []string
}

type writer struct {
	rand    *rand.Rand
	units   []*unit
	version int
	sent    []step       // in order; all except the last one are acknowledged
	done    atomic.Int64 // number of acknowledged steps in sent
}

func newLoad(z zone, seed uint64) *load {
	l := &load{zone: z}
	for w := range writers {
		wr := &writer{rand: rand.New(rand.NewPCG(seed, uint64(w)))}
		for u := range singles + batches {
			n := 1
			if u >= singles {
				n = batchSize
			}
			un := &unit{acked: make([]string, n)}
			for i := range n {
				un.names = append(un.names, fmt.Sprintf("w%d-u%d-%d.%s", w, u, i, z.Name))
			}
			wr.units = append(wr.units, un)
		}
		l.writers = append(l.writers, wr)
	}
	return l
}

// run runs all writers until the server ends or stop is closed.
func (l *load) run(t *testing.T, s *node, stop <-chan struct{}) {
	t.Helper()
	var all sync.WaitGroup
	ask := func() *asker {
		a := newAsker(t, s.DNS[0])
		// Without this, a query that the server received before it ended would block until its timeout.
		go func() {
			<-s.Done()
			_ = a.conn.Close()
		}()
		return a
	}
	for _, w := range l.writers {
		a := ask()
		all.Go(func() {
			for w.step(t, l, s, a) {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	a := ask()
	all.Go(func() { l.watch(t, a, stop) })
	all.Wait()
}

// watch queries the serial continuously. It must never decrease, and a served serial must survive a crash.
func (l *load) watch(t *testing.T, a *asker, stop <-chan struct{}) {
	var last uint32
	for {
		n, err := a.serial(l.zone.Name)
		if err != nil {
			return // the server has ended
		}
		if n < last {
			t.Errorf("the served serial decreased from %d to %d", last, n)
		}
		last = n
		l.raise(n)
		select {
		case <-stop:
			return
		default:
		}
	}
}

func (l *load) raise(serial uint32) {
	for {
		old := l.serial.Load()
		if serial <= old || l.serial.CompareAndSwap(old, serial) {
			return
		}
	}
}

// step makes one change. It reports whether the writer can continue.
func (w *writer) step(t *testing.T, l *load, s *node, a *asker) bool {
	n := w.rand.IntN(len(w.units))
	u := w.units[n]
	w.version++
	next := u.next(w.rand, w.version)
	w.sent = append(w.sent, step{n, next})
	u.maybe = next
	r, err := u.send(s, l.zone, next)
	if err != nil {
		return false // the outcome is unknown
	}
	u.maybe = nil
	if !r.OK() {
		t.Errorf("change of %s: %d %s", u.names[0], r.Status, r.Body)
		return false
	}
	u.acked = next
	w.done.Add(1)
	if len(u.names) == 1 {
		u.id = ""
		if next[0] != "" {
			u.id = decode[recordSet](t, r.Body).ID
		}
	} else {
		l.raise(decode[struct{ Zone zone }](t, r.Body).Zone.Serial)
	}
	return w.checkServed(t, l, u, a)
}

// checkServed sometimes queries what was just acknowledged: it must be served.
func (w *writer) checkServed(t *testing.T, l *load, u *unit, a *asker) bool {
	if w.rand.IntN(4) > 0 {
		return true
	}
	i := w.rand.IntN(len(u.names))
	got, err := a.text(u.names[i])
	if err != nil {
		return false // the server has ended
	}
	if got != u.acked[i] {
		t.Errorf("%s was acknowledged as %q, but %q was served right after that", u.names[i], u.acked[i], got)
	}
	l.checked.Add(1)
	return true
}

// next returns the next texts of the unit: other texts, or none. The texts of a batch have the number of the batch.
func (u *unit) next(r *rand.Rand, version int) []string {
	next := make([]string, len(u.names))
	for i := range next {
		if u.acked[i] == "" && len(next) == 1 || r.IntN(3) > 0 {
			next[i] = "v" + strconv.Itoa(version)
		}
	}
	if slices.Equal(next, u.acked) { // nothing at all, twice
		next[0] = "v" + strconv.Itoa(version)
	}
	return next
}

func (u *unit) send(s *node, z zone, next []string) (server.Response, error) {
	sets := "/v2/zones/" + z.ID + "/recordsets"
	switch {
	case len(next) > 1:
		return s.Call(http.MethodPost, "/v2/zones/"+z.ID+"/changes", map[string]any{"changes": u.changes(next)})
	case u.id == "":
		return s.Call(http.MethodPost, sets, textSet(u.names[0], next[0]))
	case next[0] == "":
		return s.Call(http.MethodDelete, sets+"/"+u.id, nil)
	}
	return s.Call(http.MethodPut, sets+"/"+u.id, map[string]any{"records": quote(next[0])})
}

func (u *unit) changes(next []string) []map[string]any {
	out := []map[string]any{}
	for i, name := range u.names {
		switch {
		case next[i] != "":
			out = append(out, map[string]any{"action": "upsert", "name": name, "type": "TXT", "records": quote(next[i])})
		case u.acked[i] != "":
			out = append(out, map[string]any{"action": "delete", "name": name, "type": "TXT"})
		}
	}
	return out
}

func quote(text string) []string { return []string{strconv.Quote(text)} }

func textSet(name, text string) recordSet {
	return recordSet{Name: name, Type: "TXT", Records: quote(text)}
}

// settle compares the server with what was acknowledged, and records the outcome of requests without a reply. It
// returns how many of those there were, and how many of them were made.
func (l *load) settle(t *testing.T, s *node) (unknown, made int) {
	t.Helper()
	have := s.setsOf(t, l.zone, "TXT")
	a := newAsker(t, s.DNS[0])
	for _, w := range l.writers {
		for _, u := range w.units {
			got := u.observe(have)
			switch {
			case slices.Equal(got, u.acked):
			case u.maybe != nil && slices.Equal(got, u.maybe):
				made++
			default:
				t.Errorf("%s: the API has %q; acknowledged was %q, in flight %q", u.names[0], got, u.acked, u.maybe)
			}
			if u.maybe != nil {
				unknown++
			}
			u.acked, u.maybe, u.id = got, nil, have[u.names[0]].ID
			for i, name := range u.names {
				if text, err := a.text(name); err != nil || text != got[i] {
					t.Errorf("%s: DNS has %q, %v; the API has %q", name, text, err, got[i])
				}
			}
		}
		w.sent = nil
		w.done.Store(0)
	}
	l.settleSerial(t, s, a)
	return unknown, made
}

func (l *load) settleSerial(t *testing.T, s *node, a *asker) {
	t.Helper()
	var z zone
	s.Must(http.MethodGet, "/v2/zones/"+l.zone.ID, nil, &z)
	served, err := a.serial(l.zone.Name)
	if err != nil || served != z.Serial {
		t.Errorf("serial %d in DNS, %v; %d in the API", served, err, z.Serial)
	}
	if promised := l.serial.Load(); served < promised {
		t.Errorf("serial %d, but %d was seen before", served, promised)
	}
	l.raise(served)
}

// observe returns the texts of the unit in a list of record sets.
func (u *unit) observe(have map[string]recordSet) []string {
	got := make([]string, len(u.names))
	for i, name := range u.names {
		if r, ok := have[name]; ok && len(r.Records) == 1 {
			got[i], _ = strconv.Unquote(r.Records[0])
		}
	}
	return got
}

// export fetches the zone file, and compares it with what was acknowledged.
func (l *load) export(t *testing.T, s *node) {
	t.Helper()
	var task struct{ ID string }
	s.Must(http.MethodPost, "/v2/zones/"+l.zone.ID+"/tasks/export", nil, &task)
	file := s.Must(http.MethodGet, "/v2/zones/tasks/exports/"+task.ID+"/export", nil, nil).Body
	texts := parseZone(t, l.zone.Name, file)
	want := 0
	for _, w := range l.writers {
		for _, u := range w.units {
			for i, name := range u.names {
				if texts[name] != u.acked[i] {
					t.Errorf("%s: the export has %q, want %q", name, texts[name], u.acked[i])
				}
				if u.acked[i] != "" {
					want++
				}
			}
		}
	}
	if len(texts) != want {
		t.Errorf("the export has %d TXT records, want %d", len(texts), want)
	}
}

// parseZone parses a zone file with the parser of another program, and returns its TXT records.
func parseZone(t *testing.T, origin string, file []byte) map[string]string {
	t.Helper()
	p := dns.NewZoneParser(bytes.NewReader(file), origin, "export")
	texts, soa := map[string]string{}, 0
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		switch rr := rr.(type) {
		case *dns.SOA:
			soa++
		case *dns.TXT:
			texts[rr.Hdr.Name] = rr.Txt[0]
		}
	}
	if err := p.Err(); err != nil || soa != 1 {
		t.Errorf("the export has %d SOA, %v:\n%s", soa, err, file)
	}
	return texts
}

package externaldns

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/nameplane/nameplane/internal/zone"
)

// item is an endpoint with its record set.
type item struct {
	endpoint
	set zone.RecordSet
}

// list is an array of endpoints in a body. It keeps only endpoints that can be record sets: the shortest of these has
// 50 bytes of JSON, so a list fits the memory that the budget has for its body. The element {} has two bytes, and
// an endpoint has more than a hundred.
type list struct {
	minTTL uint32
	items  []*item
	drops  drops // the endpoints that cannot be record sets
}

// UnmarshalJSON reads the endpoints one by one.
func (l *list) UnmarshalJSON(b []byte) error {
	l.items, l.drops = nil, drops{}
	return eachOf(b, func(e endpoint) {
		set, why := e.set(l.minTTL)
		if why != nil {
			l.drops.add(e, why)
			return
		}
		l.items = append(l.items, &item{e, set})
	})
}

// eachOf calls fn with the elements of a JSON array, one by one: all elements together can take a hundred times as much
// memory as their JSON.
func eachOf[T any](b []byte, fn func(T)) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return json.Unmarshal(b, new([]T)) // the error for another type; null is an empty array
	}
	for d.More() {
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		fn(element)
	}
	return nil
}

// joined returns a list with the endpoints of both lists.
func (l list) joined(with list) list {
	l.items, l.drops = slices.Concat(l.items, with.items), l.drops.joined(with.drops)
	return l
}

// maxDropLines limits the log lines of one request: a client can send 100,000 bad endpoints.
const maxDropLines = 20

// drops are the endpoints that a request left out.
type drops struct {
	byReason map[string]int
	first    []drop // at most maxDropLines
	n        int
}

type drop struct {
	name, typ string
	why       *refusal
}

func (d *drops) add(e endpoint, why *refusal) {
	if d.byReason == nil {
		d.byReason = map[string]int{}
	}
	d.byReason[why.reason]++
	d.n++
	if len(d.first) < maxDropLines {
		d.first = append(d.first, drop{e.DNSName, e.RecordType, why})
	}
}

// joined returns the drops of both. It shares no memory with them.
func (d drops) joined(with drops) drops {
	out := drops{byReason: map[string]int{}, n: d.n + with.n}
	maps.Copy(out.byReason, d.byReason)
	for reason, n := range with.byReason {
		out.byReason[reason] += n
	}
	out.first = slices.Concat(d.first, with.first)
	out.first = out.first[:min(len(out.first), maxDropLines)]
	return out
}

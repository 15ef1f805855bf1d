package zonefile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Content is the records of a whole file, put in canonical order. It is two allocations: as Go values, the records of a
// zone of a million names took 600 MB, and a third of the time of an import went into making and collecting them.
type Content struct {
	kept  string // records as AppendKept writes them
	order []kept
	sets  int
}

// kept is a record: where it stands, and the octets of its key behind those that all keys have in common. Two of a
// million names rarely agree in all sixteen, so that sorting does not have to look at the keys themselves.
type kept struct {
	first, second uint64
	at            int
}

// AppendKept appends a record in the form that NewContent reads:
//
//	key length 2, key, TTL 4, data length 2, data
//
// The key is that of the name, a 0x00 and the type, so that its order is that of names, then of types, and the key of a name
// with its types comes before those of the names below.
func AppendKept(b []byte, r Record) []byte {
	from := len(b)
	b = append(b, 0, 0)
	b = append(r.Name.AppendKey(b), 0)
	b = binary.BigEndian.AppendUint16(b, uint16(r.Type))
	binary.BigEndian.PutUint16(b[from:], uint16(len(b)-from-2))
	b = binary.BigEndian.AppendUint32(b, r.TTL)
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.Data)))
	return append(b, r.Data...)
}

const keyTail = 3 // 0x00 and the type behind the key of the name

var errKept = errors.New("the records kept of a zone file are damaged")

// NewContent puts the records that AppendKept wrote into order. Records of one name and type stay in the order they came in.
func NewContent(records string) (*Content, error) {
	c := &Content{kept: records}
	common := ""
	for at := 0; at < len(records); {
		key, end := c.extent(at)
		if end > len(records) {
			return nil, errKept
		}
		if at == 0 {
			common = key
		}
		common = common[:sameOctets(common, key)]
		c.order = append(c.order, kept{at: at})
		at = end
	}
	for i := range c.order {
		k := &c.order[i]
		var b [16]byte
		copy(b[:], c.key(k.at)[len(common):])
		k.first, k.second = binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])
	}
	slices.SortFunc(c.order, c.compare)
	for i := range c.order {
		if i == 0 || !c.sameKey(i-1, i) {
			c.sets++
		}
	}
	return c, nil
}

// Sets counts the record sets.
func (c *Content) Sets() int { return c.sets }

// All walks the record sets in canonical order of their names, then by type. Of several TTLs in one set, which
// RFC 2181 §5.2 forbids, the smallest is taken.
func (c *Content) All() iter.Seq[rr.Set] {
	return func(yield func(rr.Set) bool) {
		var s rr.Set
		for i, k := range c.order {
			ttl, data := c.record(k.at)
			if i > 0 && c.sameKey(i-1, i) {
				s.TTL, s.Data = min(s.TTL, ttl), append(s.Data, data)
				continue
			}
			if i > 0 && !yield(normal(s)) {
				return
			}
			key := c.key(k.at)
			t := rr.Type(key[len(key)-2])<<8 | rr.Type(key[len(key)-1])
			s = rr.Set{Name: c.name(key, i, s.Name), Type: t, TTL: ttl, Data: []string{data}}
		}
		if len(c.order) > 0 {
			yield(normal(s))
		}
	}
}

func normal(s rr.Set) rr.Set {
	if len(s.Data) > 1 {
		s.Data = rr.Normal(s.Type, s.Data)
	}
	return s
}

// name is the name of record i, whose key is given. before is the name of the record before.
func (c *Content) name(key string, i int, before dnsname.Name) dnsname.Name {
	name := key[:len(key)-keyTail]
	if i > 0 {
		if last := c.key(c.order[i-1].at); last[:len(last)-keyTail] == name {
			return before
		}
	}
	n, _ := dnsname.FromKey([]byte(name)) // AppendKept wrote it
	return n
}

// extent is the key of the record at an octet, and where the record ends, which may be beyond the end of all.
func (c *Content) extent(at int) (key string, end int) {
	rest := c.kept[at:]
	if len(rest) < 2 {
		return "", len(c.kept) + 1
	}
	data := 2 + be16(rest, 0) + 6
	if len(rest) < data {
		return "", len(c.kept) + 1
	}
	return rest[2 : data-6], at + data + be16(rest, data-2)
}

func (c *Content) key(at int) string { return c.kept[at+2 : at+2+be16(c.kept, at)] }

func (c *Content) record(at int) (ttl uint32, data string) {
	rest := c.kept[at+2+be16(c.kept, at):]
	ttl = uint32(be16(rest, 0))<<16 | uint32(be16(rest, 2))
	return ttl, rest[6 : 6+be16(rest, 4)]
}

func (c *Content) compare(a, b kept) int {
	switch {
	case a.first != b.first:
		return cmp.Compare(a.first, b.first)
	case a.second != b.second:
		return cmp.Compare(a.second, b.second)
	}
	return cmp.Or(strings.Compare(c.key(a.at), c.key(b.at)), cmp.Compare(a.at, b.at))
}

// sameKey reports whether two records in order are of the same set.
func (c *Content) sameKey(i, j int) bool {
	a, b := c.order[i], c.order[j]
	return a.first == b.first && a.second == b.second && c.key(a.at) == c.key(b.at)
}

func be16(s string, i int) int { return int(s[i])<<8 | int(s[i+1]) }

func sameOctets(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

package gather

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// record is an exchange with its decoded reply.
type record struct {
	iterate.Exchange
	id      int
	view    *iterate.View // decoded reply; nil: none
	subnet  netip.Prefix
	unusual bool // a probe query: its reply does not show how the server treats usual queries
}

// records returns the exchanges so far, in order of time.
func (r *run) records() []record {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]record, 0, len(r.exchanges))
	for i, e := range r.exchanges {
		rec := record{Exchange: e, id: i, subnet: r.subnets[i], unusual: r.unusual[i]}
		if v, err := e.View(); err == nil {
			rec.view = &v
		}
		out = append(out, rec)
	}
	slices.SortStableFunc(out, func(a, b record) int { return a.Compare(b.Exchange) })
	return out
}

const typeNSEC3 = rr.Type(50)

// maxSets is larger than the longest chain of aliases needs.
const maxSets = 64

// setsOf returns the record sets of a section in their order, without signatures.
func setsOf(section []iterate.Record) (out []explain.Set) {
	for _, rec := range section {
		if rec.Type == rr.TypeRRSIG || len(out) == maxSets {
			continue
		}
		known := func(s explain.Set) bool { return s.Name == rec.Name && s.Type == rec.Type }
		if !slices.ContainsFunc(out, known) {
			out = append(out, setOf(iterate.Records(section, rec.Name, rec.Type)))
		}
	}
	return out
}

func setOf(records []iterate.Record) explain.Set {
	first := records[0]
	set := explain.Set{Name: first.Name, Type: first.Type, TTL: first.TTL}
	mixed := false
	for _, rec := range records {
		// The name in a question has random upper and lower case (0x20). A server that compresses names copies that case
		// into the data, so the data are normalized.
		set.Data = append(set.Data, rr.DataText(rec.Type, rr.DataKey(rec.Type, rec.Data)))
		set.TTLs = append(set.TTLs, rec.TTL)
		mixed = mixed || rec.TTL != first.TTL
		set.TTL = min(set.TTL, rec.TTL)
	}
	if !mixed {
		set.TTLs = nil
	}
	slices.Sort(set.Data)
	set.Data = slices.Compact(set.Data)
	return set
}

// sameSets reports whether two answers have the same records, ignoring order and TTLs.
func sameSets(a, b []explain.Set) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s explain.Set) bool {
		return !slices.ContainsFunc(b, func(t explain.Set) bool {
			return s.Name == t.Name && s.Type == t.Type && slices.Equal(s.Data, t.Data)
		})
	})
}

// soaOf returns the first SOA record of a section, or nil.
func soaOf(section []iterate.Record) *explain.SOA {
	var soa *explain.SOA
	count := 0
	for _, rec := range section {
		if rec.Type != rr.TypeSOA {
			continue
		}
		if count++; soa == nil {
			soa = parseSOA(rec)
		}
	}
	if soa != nil && count > 1 {
		soa.Count = count
	}
	return soa
}

// parseSOA returns nil for data of the wrong length. Such a record counts as missing: its timers would be guesses.
func parseSOA(rec iterate.Record) *explain.SOA {
	data := []byte(rec.Data)
	mname, n, err := dnsname.FromWire(data)
	if err != nil {
		return nil
	}
	rname, m, err := dnsname.FromWire(data[n:])
	if err != nil || len(data) != n+m+5*4 {
		return nil
	}
	number := func(i int) uint32 { return binary.BigEndian.Uint32(data[n+m+4*i:]) }
	return &explain.SOA{Owner: rec.Name, TTL: rec.TTL, MName: mname, RName: rname,
		Serial: number(0), Refresh: number(1), Retry: number(2), Expire: number(3), Minimum: number(4)}
}

// targetOf returns the target of a name's CNAME or DNAME in an answer section.
func targetOf(section []iterate.Record, name dnsname.Name) (dnsname.Name, bool) {
	for _, rec := range section {
		switch {
		case rec.Type == rr.TypeCNAME && rec.Name == name:
			return rr.Target(rec.Type, rec.Data)
		case rec.Type == rr.TypeDNAME && rec.Name != name && name.IsIn(rec.Name):
			target, ok := rr.Target(rec.Type, rec.Data)
			if !ok {
				return dnsname.Name{}, false
			}
			made, _, err := dnsname.FromWire([]byte(name.In(rec.Name) + target.Wire()))
			return made, err == nil
		}
	}
	return dnsname.Name{}, false
}

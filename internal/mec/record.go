package mec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// Record is a record set that the platform put into an overlay zone through the server management API.
type Record struct {
	Zone        dnsname.Name
	Name        dnsname.Name
	Type        rr.Type // A or AAAA
	TTL         *uint32 // as given; nil: defaultTTL
	Addrs       []netip.Addr
	LoadBalance bool // may stand beside other addresses of other owners who say so too
	Updated     time.Time
}

// RecordDraft is a record as a client writes it.
type RecordDraft struct {
	Zone        string // may be empty: "."
	Name        string
	Type        string
	Class       string // IN, or empty
	TTL         *int64
	Data        []string // rData
	LoadBalance bool
}

// maxAddrs is how many addresses one record has: more do not fit a UDP message of 4096 octets, and a client tries but a few.
const maxAddrs = 256

// ParseRecord checks a draft and makes a record of it. Errors are FieldErrors with the names of the management API.
func ParseRecord(d RecordDraft) (Record, error) {
	r := Record{LoadBalance: d.LoadBalance}
	var err error
	if r.Zone, err = ParseZone(d.Zone); err != nil {
		return Record{}, err
	}
	if r.Name, r.Type, err = ParseRecordKey(d.Name, d.Type); err != nil {
		return Record{}, err
	}
	if !r.Name.IsIn(r.Zone) {
		return Record{}, fieldErr("name", "%s is not in zone %s", r.Name, r.Zone)
	}
	if d.Class != "" && !strings.EqualFold(d.Class, "IN") {
		return Record{}, fieldErr("class", "%.20q is not IN, and no other class is answered", d.Class)
	}
	if r.TTL, err = parseTTL("ttl", d.TTL); err != nil {
		return Record{}, err
	}
	if len(d.Data) == 0 || len(d.Data) > maxAddrs {
		return Record{}, fieldErr("rData", "has %d addresses; it must have 1 to %d", len(d.Data), maxAddrs)
	}
	for i, s := range d.Data {
		field := fmt.Sprintf("rData[%d]", i)
		a, err := parseAddr(field, s)
		if err != nil {
			return Record{}, err
		}
		if addrType(a) != r.Type {
			return Record{}, fieldErr(field, "%s is no address for type %s", a, r.Type)
		}
		r.Addrs = append(r.Addrs, a)
	}
	return r, nil
}

// ParseZone reads the name of an overlay zone; empty is ".".
func ParseZone(s string) (dnsname.Name, error) {
	if s == "" || s == "." {
		return dnsname.Root, nil
	}
	n, err := parseDomain("zone", s)
	if err == nil && n.IsWildcard() {
		return n, fieldErr("zone", "%s is a wildcard", n)
	}
	return n, err
}

// ParseRecordKey reads the name and type by which a path names a record.
func ParseRecordKey(name, typ string) (dnsname.Name, rr.Type, error) {
	n, err := parseDomain("name", name)
	if err != nil {
		return n, 0, err
	}
	switch strings.ToUpper(typ) {
	case "A":
		return n, rr.TypeA, nil
	case "AAAA":
		return n, rr.TypeAAAA, nil
	case "":
		return n, 0, fieldErr("type", "is missing: A or AAAA")
	}
	return n, 0, fieldErr("type", "%.20q is neither A nor AAAA", typ)
}

// recordRow is a record in the store, under its zone, name and type.
type recordRow struct {
	TTL     *uint32      `json:"t,omitempty"`
	Addrs   []netip.Addr `json:"a"` // as given: clients compare what they read with what they wrote
	Balance bool         `json:"b,omitempty"`
	Updated time.Time    `json:"u"`
}

// kindRecords is a kind per zone, so that a zone can be listed alone.
func kindRecords(zoneName dnsname.Name) store.Kind { return store.KindMECRecord.Of(zoneName.String()) }

func recordID(n dnsname.Name, t rr.Type) string { return n.String() + "\x00" + t.String() }

func (w recordRow) record(zoneName, n dnsname.Name, t rr.Type) Record {
	return Record{zoneName, n, t, w.TTL, w.Addrs, w.Balance, w.Updated}
}

func (r Record) same(o Record) bool {
	return slices.Equal(r.Addrs, o.Addrs) && r.LoadBalance == o.LoadBalance &&
		(r.TTL == nil) == (o.TTL == nil) && (r.TTL == nil || *r.TTL == *o.TTL)
}

func (r Record) key() claimKey { return claimKey{r.Zone, r.Name, r.Type} }

func (r Record) claim() claim {
	addrs := slices.Clone(r.Addrs)
	slices.SortFunc(addrs, netip.Addr.Compare)
	return claim{Addrs: slices.Compact(addrs), TTL: servedTTL(r.TTL), Balance: r.LoadBalance}
}

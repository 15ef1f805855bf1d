package mec

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
)

// Record is a record set that the platform wrote into an overlay zone through the server management API.
type Record struct {
	Zone        dnsname.Name
	Name        dnsname.Name
	Type        rr.Type // A or AAAA
	TTL         *uint32 // as the client gave it; nil: defaultTTL
	Addrs       []netip.Addr
	LoadBalance bool // the name may have addresses of other owners too, if they also set it
	Updated     time.Time
}

// RecordDraft is a record as a client writes it.
type RecordDraft struct {
	Zone        string // empty: "."
	Name        string
	Type        string
	Class       string // IN, or empty
	TTL         *int64
	Data        []string // rData
	LoadBalance bool
}

// maxAddrs bounds the addresses of a record: more do not fit into a UDP message of 4096 bytes, and a client tries only
// a few.
const maxAddrs = 256

// ParseRecord checks a draft and returns its record. The table has the NAT64 prefixes of the operator. Errors are
// FieldErrors with the names of the management API.
func ParseRecord(d RecordDraft, special specialaddr.Table) (Record, error) {
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
		a, err := parseAddr(field, s, special)
		if err != nil {
			return Record{}, err
		}
		if addrType(a) != r.Type {
			return Record{}, fieldErr(field, "%s is not an address of type %s", a, r.Type)
		}
		r.Addrs = append(r.Addrs, a)
	}
	return r, nil
}

// ParseZone parses the name of an overlay zone. An empty name is ".".
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

// ParseRecordKey parses the name and type that identify a record in a path.
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

// recordRow is a record in the store. Its key is its zone, name and type.
type recordRow struct {
	TTL     *uint32      `json:"t,omitempty"`
	Addrs   []netip.Addr `json:"a"` // in the order of the client, which compares what it reads with what it wrote
	Balance bool         `json:"b,omitempty"`
	Updated time.Time    `json:"u"`
}

// kindRecords returns the kind for the records of a zone. Each zone has its own, so that it can be listed alone.
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

package designate

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

const maxDescription = 160

var zoneCreateKeys = []string{"name", "email", "ttl", "description", "masters", "type", "attributes", "pool_id"}
var zoneUpdateKeys = []string{"email", "ttl", "description", "masters"}

// newZone reads the body of a create.
func newZone(in *input, s *Settings) (zone.Zone, error) {
	z := zone.Zone{Kind: zone.Primary, TTL: s.DefaultTTL, Pool: s.PoolID}
	in.require("name")
	z.Name = in.hostname("name", false)
	if t := in.text("type", 16); t != nil {
		z.Kind = zone.Kind(*t)
		if !slices.Contains([]zone.Kind{zone.Primary, zone.Secondary, zone.Catalog}, z.Kind) {
			in.note("type", fmt.Sprintf("'%s' is not one of ['PRIMARY', 'SECONDARY', 'CATALOG']", *t), "enum",
				[]zone.Kind{zone.Secondary, zone.Primary, zone.Catalog})
		}
	}
	z.Description = in.text("description", maxDescription)
	z.Attributes = in.dictionary("attributes")
	if p := in.text("pool_id", 36); p != nil {
		id, err := uuid.Parse(*p)
		if err != nil {
			in.note("pool_id", fmt.Sprintf("'%s' is not a 'uuid'", *p), "format", "uuid")
		}
		z.Pool = id
	}
	readZoneFields(in, &z)
	if z.Kind == zone.Primary {
		in.require("email")
	}
	if err := in.err(); err != nil {
		return z, err
	}
	return z, checkNewZone(z, s)
}

// checkNewZone are the rules that have words of their own.
func checkNewZone(z zone.Zone, s *Settings) error {
	switch {
	case z.Name.NumLabels() < 2:
		return refuse("invalid_zone_name", "More than one label is required")
	case z.Name.IsWildcard():
		return refuse("invalid_zone_name", "A zone cannot have the name of a wildcard")
	case z.TTL < s.MinTTL:
		return invalidTTL(s)
	case z.Pool != s.PoolID:
		return notFound("pool", "Pool")
	case z.Kind == zone.Catalog:
		return badRequest("This server takes zones of type PRIMARY and SECONDARY; %s is not supported yet", z.Kind)
	}
	return nil
}

func invalidTTL(s *Settings) *fault {
	return refuse("invalid_ttl", "TTL is below the minimum: %d", s.MinTTL)
}

// readZoneFields reads what an owner may change, with the rules of the zone's kind.
func readZoneFields(in *input, z *zone.Zone) {
	if in.has("ttl") && z.Kind == zone.Secondary {
		in.note("ttl", "'ttl' is not allowed for a SECONDARY zone", "not_allowed", nil)
	} else if in.isNull("ttl") {
		in.note("ttl", "None is not of type 'integer'", "type", "integer")
	} else if n := in.number("ttl", 0, rr.MaxTTL); n != nil {
		z.TTL = uint32(*n)
	}
	if in.has("description") {
		z.Description = in.text("description", maxDescription)
	}
	if in.has("email") {
		readEmail(in, z)
	}
	readMasters(in, z)
}

func readEmail(in *input, z *zone.Zone) {
	if z.Kind == zone.Secondary {
		in.note("email", "'email' is not allowed for a SECONDARY zone", "not_allowed", nil)
		return
	}
	if in.isNull("email") {
		in.note("email", "None is not of type 'string'", "type", "string")
	}
	e := in.text("email", 255)
	if e == nil {
		return
	}
	if !isEmail(*e) {
		in.note("email", fmt.Sprintf("'%s' is not a 'email'", *e), "format", "email")
	}
	z.Email = *e
}

// maxMasters is how many masters a zone may have: they are asked one after the other, and other zones wait meanwhile.
const maxMasters = 16

func readMasters(in *input, z *zone.Zone) {
	masters := in.texts("masters")
	switch {
	case z.Kind == zone.Secondary && len(masters) == 0 && (in.has("masters") || len(z.Masters) == 0):
		in.note("masters", "'masters' is a required property", "required", []string{"masters"})
	case z.Kind != zone.Secondary && len(masters) > 0:
		in.note("masters", fmt.Sprintf("'masters' is not allowed for a %s zone", z.Kind), "not_allowed", nil)
	}
	if len(masters) > maxMasters {
		in.note("masters", fmt.Sprintf("a zone has at most %d masters", maxMasters), "maxItems", maxMasters)
	}
	for i, m := range masters {
		if !isMaster(m) {
			in.noteItem("masters", i, fmt.Sprintf("'%s' is not a 'ip-or-host'", short([]byte(m))), "format", "ip-or-host")
		}
	}
	if in.has("masters") {
		z.Masters = masters
	}
}

// isMaster reports whether s is an address or a host, with or without a port.
func isMaster(s string) bool {
	host := s
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	if h, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return false
		}
		host = h
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if host == "" {
		return false
	}
	if host[len(host)-1] != '.' {
		host += "."
	}
	_, ok := parseHost(host, false)
	return ok
}

// hostname reads a name; the zero Name when it is not one.
func (in *input) hostname(key string, wildcard bool) dnsname.Name {
	s := in.text(key, 255)
	if s == nil {
		return dnsname.Name{}
	}
	format := "domainname"
	if wildcard {
		format = "hostname"
	}
	n, ok := parseHost(*s, wildcard)
	if !ok {
		in.note(key, fmt.Sprintf("'%s' is not a '%s'", short([]byte(*s)), format), "format", format)
	}
	return n
}

// Bounds on the attributes of a zone: Designate's length of each, and a number, because lists show them all.
const maxAttributes, maxAttribute = 50, 50

// dictionary reads an object whose values are strings.
func (in *input) dictionary(key string) map[string]string {
	var out map[string]string
	in.get(key, "object", &out)
	if len(out) > maxAttributes {
		in.note(key, fmt.Sprintf("%d are too many", len(out)), "maxProperties", maxAttributes)
	}
	for k, v := range out {
		if max(utf8.RuneCountInString(k), utf8.RuneCountInString(v)) > maxAttribute {
			in.note(key, fmt.Sprintf("'%s' is too long, or its value is", short([]byte(k))), "maxLength", maxAttribute)
		}
	}
	return out
}

// firstSets are the SOA and NS sets of a new zone. Refresh differs from zone to zone, so that secondaries do not ask
// about all of them at the same moment. The serial is left to the commit.
func firstSets(z zone.Zone, s *Settings) []zone.RecordSet {
	servers := slices.Clone(s.Nameservers)
	slices.SortStableFunc(servers, func(a, b Nameserver) int { return a.Priority - b.Priority })
	rname, _ := zone.MailboxName(z.Email)
	soa := zone.SOA{MName: servers[0].Hostname, RName: rname, Refresh: 3500 + rand.Uint32N(101), Retry: 600,
		Expire: 86400, Minimum: 3600}
	ns := zone.RecordSet{Name: z.Name, Type: rr.TypeNS, Managed: true}
	for _, server := range servers {
		ns.Data = append(ns.Data, server.Hostname.Wire())
	}
	return []zone.RecordSet{{Name: z.Name, Type: rr.TypeSOA, Managed: true, Data: []string{soa.Data()}}, ns}
}

package designate

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

const maxDescription = 160 // characters, as in Designate

var zoneCreateKeys = []string{"name", "email", "ttl", "description", "masters", "type", "attributes", "pool_id"}

// zoneUpdateKeys contains status, action, secondaries and copy, but their values are not read. Clients send back the
// whole object, and the state of other servers may have changed since they read it.
var zoneUpdateKeys = []string{"email", "ttl", "description", "masters", "status", "action", "secondaries", "copy"}

// newZone reads the body of a create request.
func newZone(in *input, s *Settings) (zone.Zone, error) {
	z := zone.Zone{Kind: zone.Primary, TTL: s.DefaultTTL}
	in.require("name")
	z.Name, z.Spelling = in.hostname("name", false)
	if t := in.text("type", 16); t != nil {
		z.Kind = zone.Kind(*t)
		if !slices.Contains([]zone.Kind{zone.Primary, zone.Secondary, zone.Catalog}, z.Kind) {
			in.note("type", fmt.Sprintf("'%s' is not one of ['PRIMARY', 'SECONDARY', 'CATALOG']", *t), "enum",
				[]zone.Kind{zone.Secondary, zone.Primary, zone.Catalog})
		}
	}
	z.Attributes = in.dictionary("attributes")
	z.Pool = in.poolID()
	readZoneValues(in, z.Kind).apply(&z)
	switch {
	case z.Kind == zone.Primary:
		in.require("email")
	case z.Kind == zone.Secondary && !in.has("masters"):
		in.require("masters")
	}
	if err := in.err(); err != nil {
		return z, err
	}
	return z, checkNewZone(z, s)
}

// poolID returns the pool that a zone names, or the zero UUID when it names none.
func (in *input) poolID() uuid.UUID {
	if text := in.uuid("pool_id"); text != "" {
		return uuid.MustParse(text)
	}
	return uuid.Nil
}

// checkNewZone checks the rules that do not concern a single field. Designate has error types of their own for them.
func checkNewZone(z zone.Zone, s *Settings) error {
	switch {
	case z.Name.NumLabels() < 2:
		return refuse("invalid_zone_name", "More than one label is required")
	case z.Name.IsWildcard():
		return refuse("invalid_zone_name", "A zone cannot have the name of a wildcard")
	case z.TTL < s.MinTTL:
		return invalidTTL(s)
	case z.Kind == zone.Catalog:
		return badRequest("This server takes zones of type PRIMARY and SECONDARY; %s is not supported yet", z.Kind)
	}
	return nil
}

func invalidTTL(s *Settings) *fault {
	return refuse("invalid_ttl", "TTL is below the minimum: %d", s.MinTTL)
}

// zoneValues holds the fields of a zone that an owner may change, as the body has them.
type zoneValues struct {
	ttl     *uint32
	email   *string
	mailbox dnsname.Name // email in the form of a domain name (RFC 1035 §8)

	description    *string
	hasDescription bool
	masters        []string
	mastersBy      zone.Namer
	hasMasters     bool
}

// apply writes the values into z. Fields that are not in the body keep their values.
func (v zoneValues) apply(z *zone.Zone) {
	if v.ttl != nil {
		z.TTL = *v.ttl
	}
	if v.email != nil {
		z.Email = *v.email
	}
	if v.hasDescription {
		z.Description = v.description
	}
	if v.hasMasters {
		z.Masters, z.MastersBy = v.masters, v.mastersBy
	}
}

// readZoneValues reads the fields that an owner may change. A SECONDARY zone has its TTL and email from its masters, so
// these fields are refused for it.
func readZoneValues(in *input, kind zone.Kind) zoneValues {
	v := zoneValues{hasDescription: in.has("description"), hasMasters: in.has("masters")}
	if in.has("ttl") && kind == zone.Secondary {
		in.note("ttl", "'ttl' is not allowed for a SECONDARY zone", "not_allowed", nil)
	} else if in.isNull("ttl") {
		in.note("ttl", "None is not of type 'integer'", "type", "integer")
	} else if n := in.number("ttl", 0, rr.MaxTTL); n != nil {
		v.ttl = new(uint32(*n))
	}
	v.description = in.text("description", maxDescription)
	v.email, v.mailbox = readEmail(in, kind)
	v.masters = readMasters(in, kind)
	return v
}

// readEmail returns the address and its form as a domain name, or nil when there is none.
func readEmail(in *input, kind zone.Kind) (*string, dnsname.Name) {
	if in.has("email") && kind == zone.Secondary {
		in.note("email", "'email' is not allowed for a SECONDARY zone", "not_allowed", nil)
		return nil, dnsname.Name{}
	}
	if in.isNull("email") {
		in.note("email", "None is not of type 'string'", "type", "string")
	}
	e := in.text("email", 255)
	if e == nil {
		return nil, dnsname.Name{}
	}
	mailbox, ok := zone.MailboxName(*e)
	if !ok || !isEmail(*e) {
		in.note("email", fmt.Sprintf("'%s' is not a 'email'", *e), "format", "email")
	}
	return e, mailbox
}

// maxMasters bounds the masters of a zone: a transfer asks them one after the other while other zones wait.
const maxMasters = 16

func readMasters(in *input, kind zone.Kind) []string {
	masters := in.texts("masters")
	switch {
	case kind == zone.Secondary && in.has("masters") && len(masters) == 0:
		in.note("masters", "'masters' is a required property", "required", []string{"masters"})
	case kind != zone.Secondary && len(masters) > 0:
		in.note("masters", fmt.Sprintf("'masters' is not allowed for a %s zone", kind), "not_allowed", nil)
	}
	if len(masters) > maxMasters {
		in.note("masters", fmt.Sprintf("a zone has at most %d masters", maxMasters), "maxItems", maxMasters)
	}
	for i, m := range masters {
		if !isMaster(m) && !strings.HasPrefix(m, "tls://") {
			in.noteItem("masters", i, fmt.Sprintf("'%s' is not a 'ip-or-host'", short([]byte(m))), "format", "ip-or-host")
		}
	}
	return masters
}

// isMaster reports whether s is an address or a host name, with or without a port. That is the format of Designate;
// checkMasters refuses host names later, with a message of its own, and checks masters over TLS, which Designate does
// not have.
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

// firstSets returns the SOA and NS sets of a new zone. The refresh interval is random, as in Designate, so that
// secondaries do not ask about all zones at the same moment. The commit sets the serial.
func firstSets(z zone.Zone, servers []dnsname.Name) []zone.RecordSet {
	rname, _ := zone.MailboxName(z.Email)
	soa := zone.SOA{MName: servers[0], RName: rname, Refresh: 3500 + rand.Uint32N(101), Retry: 600,
		Expire: 86400, Minimum: 3600}
	ns := zone.RecordSet{Name: z.Name, Spelling: z.Spelling, Type: rr.TypeNS, Managed: true}
	for _, server := range servers {
		ns.Data = append(ns.Data, server.Wire())
	}
	return []zone.RecordSet{
		{Name: z.Name, Spelling: z.Spelling, Type: rr.TypeSOA, Managed: true, Data: []string{soa.Data()}}, ns}
}

// isEmail reports whether s is an address that can be written as a host name: one @, and no dot at the end.
func isEmail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	if !ok || strings.Contains(domain, "@") || len(local) > dnsname.MaxLabel {
		return false
	}
	if _, ok := parseHost(domain+".", false); !ok {
		return false
	}
	_, ok = parseHost(local+"."+domain+".", false)
	return ok
}

// checkCreate checks a new zone against the reserved names and the zones above and below it.
func (c *call) checkCreate(v store.View, z zone.Zone) error {
	for _, rule := range []func(store.View, zone.Zone) error{
		checkTLDs, c.checkBlacklists, checkParent, checkChildren, c.checkReserved,
	} {
		if err := rule(v, z); err != nil {
			return err
		}
	}
	return nil
}

// checkParent refuses a zone inside a zone of another project with 403, also if that zone is shared with this project,
// as Designate does.
func checkParent(v store.View, z zone.Zone) error {
	if parent, found := parentZone(v, z.Name); found && parent.Project != z.Project {
		return illegalChild("Unable to create subzone in another tenants zone")
	}
	return nil
}

// parentZone returns the closest zone above a name. Overlays do not count: no project owns them.
func parentZone(v store.View, n dnsname.Name) (zone.Zone, bool) {
	for n = n.Parent(); !n.IsZero(); n = n.Parent() {
		if z, err := v.ZoneByName(n); err == nil && z.Kind != zone.Overlay {
			return z, true
		}
	}
	return zone.Zone{}, false
}

func illegalChild(message string) *fault {
	return &fault{status: http.StatusForbidden, kind: "illegal_child", message: message}
}

// maxBelow bounds the zones below a new zone: checkChildren reads all of them while other changes wait.
const maxBelow = 1000

// checkChildren refuses a zone above a zone of another project, as Designate does. Records of a parent zone that the
// new zone hides stay in the store. They are served again when the new zone is deleted: the most specific zone answers.
func checkChildren(v store.View, z zone.Zone) error {
	below := 0
	return v.ZonesBelow(z.Name, func(o zone.Zone) (bool, error) {
		if below++; below > maxBelow {
			return false, &fault{status: http.StatusRequestEntityTooLarge, kind: "over_quota",
				message: fmt.Sprintf("More than %d zones are below %s; create a zone before the zones below it",
					maxBelow, z.Name)}
		}
		if o.Project != z.Project && o.Name != z.Name && o.Kind != zone.Overlay {
			return false, &fault{status: http.StatusForbidden, kind: "illegal_parent",
				message: "Unable to create zone because another tenant owns a subzone of the zone"}
		}
		return true, nil
	})
}

// checkDelete refuses to delete a zone that has zones of the same project below it or is shared. The types of both
// errors are Designate's. X-Designate-Delete-Shares lifts the second.
func (c *call) checkDelete(v store.View, z zone.Zone, shared bool) error {
	err := v.ZonesOf(z.Project, z.Name, func(o zone.Zone) (bool, error) {
		if o.ID == z.ID {
			return true, nil
		}
		return false, refuse("zone_has_sub_zone", "Please delete any subzones before deleting this zone")
	})
	if err == nil && shared && !c.scope.deleteShares {
		err = refuse("zone_is_shared", "This zone is shared with other projects, please remove these shares before "+
			"deletion or use the delete-shares modifier to override this warning.")
	}
	return err
}

// childZone returns the zone below z that a name belongs to, if there is one. Overlays do not count.
func childZone(v store.View, z zone.Zone, n dnsname.Name) (zone.Zone, bool) {
	for ; n != z.Name && !n.IsZero(); n = n.Parent() {
		if child, err := v.ZoneByName(n); err == nil && child.Kind != zone.Overlay {
			return child, true
		}
	}
	return zone.Zone{}, false
}

package designate

import (
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

var recordsetCreateKeys = []string{"name", "type", "ttl", "description", "records"}

// recordsetUpdateKeys contains status, action and alias, but their values are not read. Clients send back the whole
// object, and the state of other servers or of an ALIAS may have changed since they read it.
var recordsetUpdateKeys = []string{"ttl", "description", "records", "status", "action", "alias"}

// newRecordSet reads the body of a create request. It stops at an unknown type: the records cannot be parsed without
// one. The path of this problem begins with "recordset", as in Designate.
func newRecordSet(in *input) (zone.RecordSet, error) {
	in.require("name", "type")
	var s zone.RecordSet
	s.Name, s.Spelling = in.hostname("name", true)
	if text := in.text("type", 32); text != nil {
		t, ok := parseType(*text)
		if !ok {
			in.problems = append(in.problems, problem{[]any{"recordset", "type"},
				fmt.Sprintf("'%s' is not a supported record type", *text), "value", []string{*text}})
			return s, in.err()
		}
		s.Type = t
	}
	checkName(in, s.Type, s.Name)
	readValues(in, s.Type).apply(&s)
	return s, in.err()
}

// checkName records a problem when the type does not allow the owner name.
func checkName(in *input, t rr.Type, n dnsname.Name) {
	if t == 0 || n.IsZero() {
		return
	}
	if reason := checkOwner(t, n); reason != "" {
		in.note("name", fmt.Sprintf("'%s' is not a valid name: %s", n, reason), "format", "hostname")
	}
}

// values holds the fields of a record set that an owner may change, as the body has them.
type values struct {
	ttl, description, records bool // the body has this field
	set                       zone.RecordSet
}

// readValues reads the fields of a record set of type t that an owner may change.
func readValues(in *input, t rr.Type) values {
	v := values{ttl: in.has("ttl"), description: in.has("description"), records: in.has("records")}
	if n := in.number("ttl", 0, rr.MaxTTL); n != nil {
		ttl := uint32(*n)
		v.set.TTL = &ttl
	}
	v.set.Description = in.text("description", maxDescription)
	if v.records {
		v.set.Data, v.set.Sent = readRecords(in, t)
	}
	return v
}

// apply writes the values into s. Fields that are not in the body keep their values.
func (v values) apply(s *zone.RecordSet) {
	if v.ttl {
		s.TTL = v.set.TTL
	}
	if v.description {
		s.Description = v.set.Description
	}
	if v.records {
		s.Data, s.Sent = v.set.Data, v.set.Sent
	}
}

// readRecords returns the records in canonical order, and as they were sent. The second list is never nil: the records
// of the request replace the texts of earlier requests, even where both are canonical.
func readRecords(in *input, t rr.Type) (data []string, sent []zone.Sent) {
	texts := in.texts("records")
	if len(texts) == 0 || t == 0 {
		return nil, []zone.Sent{}
	}
	data, sent = make([]string, 0, len(texts)), make([]zone.Sent, 0, len(texts))
	for i, text := range texts {
		d, err := parseRecord(t, text)
		if err != nil {
			in.noteItem("records", i, err.Error(), "format", []string{t.String()})
			continue
		}
		data = append(data, d)
		if text == rr.DataText(t, d) {
			text = ""
		}
		sent = append(sent, zone.Sent{Data: d, Text: text})
	}
	return rr.Normal(t, data), sent
}

// checkOwner returns why a record set of type t cannot have the name n, or "". SRV names follow RFC 2782, TLSA names
// RFC 6698 §3, and NS at a wildcard is what RFC 4592 §4.2 advises against.
func checkOwner(t rr.Type, n dnsname.Name) string {
	first, second := n.Label(), n.Parent().Label()
	under := strings.HasPrefix(first, "_") && strings.HasPrefix(second, "_")
	switch t.String() {
	case "NS":
		if n.IsWildcard() {
			return "a wildcard cannot have NS records"
		}
	case "SRV":
		if !under || len(first) < 2 || len(second) < 2 {
			return "the name of SRV records begins with _service._protocol"
		}
	case "TLSA":
		if !under || len(second) < 2 || !isUint16(first[1:]) {
			return "the name of TLSA records begins with _port._protocol"
		}
	}
	return ""
}

// checkAdd checks whether the caller may create a record set at its name. The commit checks the set against the other
// sets of the name.
//
// SOA and apex NS sets are managed: the server writes them itself, as Designate does. NS at the apex gets 400 here only
// when the set is missing; when it exists, CreateSet returns 409.
func (c *call) checkAdd(v store.View, z zone.Zone, s zone.RecordSet) error {
	if s.Type == rr.TypeSOA {
		return badRequest("Creating a SOA recordset is not allowed")
	}
	if s.Type == rr.TypeNS && s.Name == z.Name && !c.scope.editManaged {
		if _, err := v.RecordSet(z.ID, s.Name, s.Type); err != nil {
			return badRequest("Creating NS records at the apex needs X-Designate-Edit-Managed-Records")
		}
	}
	if err := checkLocation(v, z, s.Name, s.Type); err != nil {
		return err
	}
	return c.checkValues(s)
}

// checkLocation checks that a name belongs to the zone and not to a zone below it. NS and DS at the name of a child
// zone are its delegation and belong to the parent.
func checkLocation(v store.View, z zone.Zone, n dnsname.Name, t rr.Type) error {
	if !n.IsIn(z.Name) {
		return refuse("invalid_recordset_location", "RecordSet is not contained within it's parent zone")
	}
	child, found := childZone(v, z, n)
	if !found || n == child.Name && (t == rr.TypeNS || t == rr.TypeDS) {
		return nil
	}
	return refuse("invalid_recordset_location", "RecordSet belongs in a child zone: %s", child.Name)
}

// checkValues checks the values of a record set against rules that concern the set as a whole.
func (c *call) checkValues(s zone.RecordSet) error {
	if s.Type == rr.TypeCNAME && len(s.Data) > 1 {
		return badRequest("CNAME recordsets may not have more than 1 record")
	}
	if s.Type == rr.TypeALIAS && len(s.Data) != 1 {
		return badRequest("ALIAS recordsets have exactly 1 record")
	}
	if s.TTL != nil && *s.TTL < c.settings.MinTTL {
		return invalidTTL(c.settings)
	}
	return nil
}

// checkChange checks whether the caller may change or delete a record set. Designate refuses changes of managed records
// with 400, not 403, and so does this function.
func (c *call) checkChange(s zone.RecordSet) error {
	switch {
	case s.Type == rr.TypeSOA:
		return badRequest("Updating SOA recordsets is not allowed; change the zone's email or ttl instead")
	case s.Managed && !c.scope.editManaged:
		return badRequest("Managed records may not be updated")
	}
	return nil
}

package designate

import (
	"fmt"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

var recordsetCreateKeys = []string{"name", "type", "ttl", "description", "records"}
var recordsetUpdateKeys = []string{"ttl", "description", "records"}

// newRecordSet reads the body of a create.
func newRecordSet(in *input) (zone.RecordSet, error) {
	in.require("name", "type")
	s := zone.RecordSet{Name: in.hostname("name", true)}
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

// checkName notes an owner that the type does not allow.
func checkName(in *input, t rr.Type, n dnsname.Name) {
	if t == 0 || n.IsZero() {
		return
	}
	if reason := checkOwner(t, n); reason != "" {
		in.note("name", fmt.Sprintf("'%s' is not a valid name: %s", n, reason), "format", "hostname")
	}
}

// values are the fields of a record set that a body has.
type values struct {
	ttl, description, records bool // which of them
	set                       zone.RecordSet
}

// readValues reads what may be changed in a set of type t.
func readValues(in *input, t rr.Type) values {
	v := values{ttl: in.has("ttl"), description: in.has("description"), records: in.has("records")}
	if n := in.number("ttl", 0, rr.MaxTTL); n != nil {
		ttl := uint32(*n)
		v.set.TTL = &ttl
	}
	v.set.Description = in.text("description", maxDescription)
	if v.records {
		v.set.Data = readRecords(in, t)
	}
	return v
}

// apply writes the values into s; what the body did not have stays.
func (v values) apply(s *zone.RecordSet) {
	if v.ttl {
		s.TTL = v.set.TTL
	}
	if v.description {
		s.Description = v.set.Description
	}
	if v.records {
		s.Data = v.set.Data
	}
}

func readRecords(in *input, t rr.Type) []string {
	texts := in.texts("records")
	if len(texts) == 0 || t == 0 {
		return nil
	}
	data := make([]string, 0, len(texts))
	for i, text := range texts {
		d, err := parseRecord(t, text)
		if err != nil {
			in.noteItem("records", i, err.Error(), "format", []string{t.String()})
			continue
		}
		data = append(data, d)
	}
	return rr.Normal(t, data)
}

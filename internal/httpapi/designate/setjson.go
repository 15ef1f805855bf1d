package designate

import (
	"encoding/json"
	"strconv"
	"time"
)

// setOctets is about as long as a record set of one record is.
const setOctets = 640

// appendRecordSet writes a record set as encoding/json would, without looking at its type: every change has one in its reply
// and another under its entity tag, and a batch has thousands.
func appendRecordSet(b []byte, s *wireRecordSet) []byte {
	field := func(name, value string) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = appendText(b, value)
	}
	b = append(b, `{"id":`...)
	b = appendText(b, s.ID)
	field("zone_id", s.ZoneID)
	field("zone_name", s.ZoneName)
	field("project_id", s.ProjectID)
	field("name", s.Name)
	field("type", s.Type)
	b = appendTexts(append(b, `,"records":`...), s.Records)
	b = append(b, `,"ttl":`...)
	if s.TTL == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendUint(b, uint64(*s.TTL), 10)
	}
	if s.Description == nil {
		b = append(b, `,"description":null`...)
	} else {
		field("description", *s.Description)
	}
	field("status", s.Status)
	field("action", s.Action)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(s.Version), 10)
	b = s.CreatedAt.append(append(b, `,"created_at":`...))
	b = s.UpdatedAt.append(append(b, `,"updated_at":`...))
	if s.Alias != nil {
		text, _ := marshalAny(s.Alias) // strings and numbers can always be written
		b = append(append(b, `,"alias":`...), text[:len(text)-1]...)
	}
	if s.Links != nil {
		b = appendLinks(b, s.Links.Self)
	}
	return append(b, '}')
}

// appendLinks is the last field of a record set. Its other links are those of lists.
func appendLinks(b []byte, self string) []byte {
	b = appendText(append(b, `,"links":{"self":`...), self)
	return append(b, '}')
}

func appendTexts(b []byte, list []string) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, s)
	}
	return append(b, ']')
}

// appendText writes a string. What is not plain is left to encoding/json.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, _ := marshalAny(s) // a string can always be written
			return append(b, text[:len(text)-1]...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// append writes t.
func (t timestamp) append(b []byte) []byte {
	if time.Time(t).IsZero() {
		return append(b, "null"...)
	}
	return time.Time(t).UTC().AppendFormat(b, timeForm)
}

// marshal writes a reply, with a line's end behind it.
func marshal(v any) ([]byte, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return v, nil
	case wireRecordSet:
		return append(appendRecordSet(make([]byte, 0, setOctets), &v), '\n'), nil
	case changesReply:
		return v.marshal()
	}
	return marshalAny(v)
}

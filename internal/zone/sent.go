package zone

import (
	"cmp"
	"slices"

	"github.com/nameplane/nameplane/internal/rr"
)

// Sent is a record as its owner sent it. Clients such as Terraform compare the records that they read with those that
// they sent, as text and in order. DNS needs neither, so only rows have this form, and only when it differs from the
// canonical one.
type Sent struct {
	Data string // the record in wire form
	Text string // its text; "" when that is rr.DataText
}

// Spelled returns the name as the creator of the record set wrote it.
func (s RecordSet) Spelled() string { return cmp.Or(s.Spelling, s.Name.String()) }

// Texts returns the records as their owner sent them.
func (s RecordSet) Texts() []string {
	out := make([]string, 0, len(s.Data))
	if s.Sent == nil {
		for _, d := range s.Data {
			out = append(out, rr.DataText(s.Type, d))
		}
		return out
	}
	for _, r := range s.Sent {
		out = append(out, cmp.Or(r.Text, rr.DataText(s.Type, r.Data)))
	}
	return out
}

// Weight returns the bytes of the records, and of the texts and the spelling that are stored with them.
func (s RecordSet) Weight() int {
	n := len(s.Spelling)
	for _, d := range s.Data {
		n += len(d)
	}
	for _, r := range s.Sent {
		n += len(r.Text)
	}
	return n
}

// MatchSent returns the Sent of a record set with this data. It leaves out the records of sent that are not in data,
// and adds those that are only in data at the end: a dynamic update adds and removes records without their texts.
func MatchSent(data []string, sent []Sent) []Sent {
	if len(sent) == 0 {
		return nil
	}
	missing := make(map[string]bool, len(data))
	for _, d := range data {
		missing[d] = true
	}
	out := make([]Sent, 0, len(data))
	canonical := true
	for _, r := range sent {
		if missing[r.Data] {
			delete(missing, r.Data)
			canonical = canonical && r.Text == "" && r.Data == data[len(out)]
			out = append(out, r)
		}
	}
	for i, d := range data {
		if missing[d] {
			canonical = canonical && i == len(out)
			out = append(out, Sent{Data: d})
		}
	}
	if canonical {
		return nil
	}
	return slices.Clip(out)
}

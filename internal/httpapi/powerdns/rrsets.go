package powerdns

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// wireRRset is a record set in replies.
type wireRRset struct {
	Comments []wireComment `json:"comments"`
	Name     string        `json:"name"`
	Records  []wireRecord  `json:"records"`
	TTL      uint32        `json:"ttl"`
	Type     string        `json:"type"`
}

type wireRecord struct {
	Content  string `json:"content"`
	Disabled bool   `json:"disabled"`
}

type wireComment struct {
	Account    string `json:"account"`
	Content    string `json:"content"`
	ModifiedAt int64  `json:"modified_at"`
}

// rrsetOf returns the JSON form of a record set. Its description is its only comment.
func rrsetOf(z zone.Zone, s zone.RecordSet) wireRRset {
	w := wireRRset{Comments: []wireComment{}, Name: s.Name.String(), Records: make([]wireRecord, len(s.Data)),
		TTL: ttlOf(z, s), Type: s.Type.String()}
	for i, d := range s.Data {
		w.Records[i].Content = contentText(s.Type, d)
	}
	// PowerDNS has a time per comment. The set has only one time, which is the latest possible.
	if s.Description != nil {
		at := s.Created
		if !s.Updated.IsZero() {
			at = s.Updated
		}
		w.Comments = append(w.Comments, wireComment{Content: *s.Description, ModifiedAt: at.Unix()})
	}
	return w
}

func ttlOf(z zone.Zone, s zone.RecordSet) uint32 {
	if s.TTL != nil {
		return *s.TTL
	}
	return z.TTL
}

// isShown reports whether the API lists a record set. It leaves out address sets that were derived from an ALIAS, sets
// without records, and the records of DNSSEC that a signer derives: some clients fail at types that they do not know.
func isShown(s zone.RecordSet) bool {
	switch s.Type.String() {
	case "RRSIG", "NSEC", "NSEC3":
		return false
	}
	return !s.Hidden && len(s.Data) > 0
}

// change is one record set of a request.
type change struct {
	action string // the changetype of a PATCH in upper case
	name   dnsname.Name
	text   string // the name as the client wrote it
	typ    rr.Type
	ttl    uint32
	data   []string

	records, comments bool // the request has the member
	comment           *string
}

// refuse begins the message with the set, as PowerDNS does. The name comes from the client and may contain a percent
// sign.
func (ch change) refuse(format string, a ...any) error {
	return refuse("RRset "+strings.ReplaceAll(ch.text, "%", "%%")+" IN "+ch.typ.String()+format, a...)
}

// readOwner reads the name and the type of a record set.
func readOwner(o object) (ch change, err error) {
	if ch.text, err = o.text("name"); err != nil {
		return ch, err
	}
	if ch.name, err = parseOwner(ch.text); err != nil {
		return ch, err
	}
	t, err := o.text("type")
	if err != nil {
		return ch, err
	}
	if ch.typ, err = rr.ParseType(t); err != nil {
		return ch, refuse("RRset %s IN %s: unknown type given", ch.text, t)
	}
	return ch, nil
}

// readRecords reads the records of a record set, if it has the member. ttl says whether they need a TTL.
func (c *call) readRecords(o object, ch *change, ttl bool) (err error) {
	if _, ch.records = o.list("records"); !ch.records {
		return nil
	}
	if _, has := o["ttl"]; ttl || has {
		if ch.ttl, err = o.number("ttl"); err != nil {
			return err
		}
		if err := c.rules.CheckTTL(ch.ttl); err != nil {
			return err
		}
	}
	return ch.readContents(o)
}

func (ch *change) readContents(o object) error {
	if !ch.typ.IsData() {
		return ch.refuse(": invalid type given")
	}
	list, _ := o.list("records")
	ch.data = make([]string, 0, len(list))
	for _, v := range list {
		record := asObject(v)
		text, err := record.text("content")
		if err != nil {
			return err
		}
		switch off := record["disabled"].(type) {
		case nil:
		case bool:
			// The store has no disabled records. Served instead, a record would come back that an operator had switched off.
			if off {
				return ch.refuseRecord(text, errors.New("disabled records are not supported"))
			}
		default:
			return refuse("Key 'disabled' not present or not a Bool")
		}
		data, err := parseContent(ch.typ, text)
		if err != nil {
			return ch.refuseRecord(text, err)
		}
		ch.data = append(ch.data, data)
	}
	return nil
}

func (ch *change) refuseRecord(text string, err error) error {
	return refuse("Record %s/%s '%s': %s", ch.text, ch.typ, text, err)
}

// maxComment is the longest description that the zones API accepts.
const maxComment = 160

// readComment reads the comments of a set, if it has the member. The description of the set holds one comment without
// an account. More would be lost, so they are refused.
func (ch *change) readComment(o object) error {
	list, ok := o.list("comments")
	ch.comments = ok
	for i, v := range list {
		comment := asObject(v)
		text, err := comment.text("content")
		if err != nil {
			return err
		}
		account, err := comment.text("account")
		switch {
		case err != nil:
			return err
		case i > 0:
			return ch.refuse(": only one comment is supported")
		case account != "":
			return ch.refuse(": a comment with an account is not supported")
		case utf8.RuneCountInString(text) > maxComment:
			return ch.refuse(": a comment has at most %d characters", maxComment)
		}
		ch.comment = &text
	}
	return nil
}

// check checks a record set by itself, as PowerDNS does before it reads the zone.
func (ch *change) check(apex dnsname.Name) error {
	if !ch.name.IsIn(apex) {
		return ch.refuse(": Name is out of zone")
	}
	switch ch.typ {
	// RFC 2181 §10.1 for CNAME, RFC 6672 §2.4 for DNAME, RFC 1035 §5.2 for SOA.
	case rr.TypeCNAME, rr.TypeDNAME, rr.TypeSOA:
		if len(ch.data) > 1 {
			return ch.refuse(" has more than one record")
		}
	}
	seen := map[string]bool{}
	for _, d := range ch.data {
		key := rr.DataKey(ch.typ, d)
		if seen[key] {
			return refuse("Duplicate record in RRset %s IN %s with content \"%s\"", ch.text, ch.typ, contentText(ch.typ, d))
		}
		seen[key] = true
		if err := checkTarget(ch.typ, d); err != nil {
			return ch.refuse(" %s", err)
		}
	}
	if len(ch.data) == 0 {
		return nil
	}
	switch ch.typ.String() {
	case "SOA", "DNSKEY":
		if ch.name != apex {
			return refuse("Record %s IN %s is only allowed at apex", ch.text, ch.typ)
		}
	case "DS":
		if ch.name == apex {
			return refuse("Record %s IN %s is not allowed at apex", ch.text, ch.typ)
		}
	}
	return nil
}

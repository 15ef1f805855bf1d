package designate

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// v1Record is a record in the form of version 1 of the API, which had single records instead of record sets.
type v1Record struct {
	ID          string    `json:"id"`
	DomainID    string    `json:"domain_id"`
	Name        string    `json:"name"`
	Type        string    `json:"type"`
	TTL         *uint32   `json:"ttl"`
	Priority    *int      `json:"priority"`
	Data        string    `json:"data"`
	Description *string   `json:"description"`
	CreatedAt   timestamp `json:"created_at"`
	UpdatedAt   timestamp `json:"updated_at"`
}

// listV1Records serves the one operation of version 1 that remains, for clients that read nothing else. They see a TXT
// record instead of an ALIAS; its text says that the ALIAS exists and that version 2 can edit it.
func (c *call) listV1Records() (reply, error) {
	z, err := viewed(c, func(v store.View) (zone.Zone, error) {
		z, err := c.zone(v)
		return z, cmp.Or(err, c.need(streamMemory))
	})
	return reply{status: http.StatusOK, media: "application/json", stream: func(w io.Writer) error {
		return c.view(func(v store.View) error { return writeV1(w, v, z) })
	}}, err
}

// writeV1 writes the records while it reads them, because version 1 has no pages and a zone may be large.
func writeV1(w io.Writer, v store.View, z zone.Zone) error {
	out := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	_, _ = out.WriteString(`{"records":[`)
	comma := ""
	err := v.RecordSets(z.ID, func(s zone.RecordSet) (bool, error) {
		if s.Hidden {
			return true, nil
		}
		for _, d := range s.Data {
			_, _ = out.WriteString(comma) // Flush returns the error of any write before it
			comma = ","
			if err := enc.Encode(newV1Record(s, d)); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	_, _ = out.WriteString("]}\n")
	return out.Flush()
}

func newV1Record(s zone.RecordSet, data string) v1Record {
	r := v1Record{ID: uuid.NewSHA1(s.ID, []byte(data)).String(), DomainID: s.Zone.String(), Name: s.Name.String(),
		Type: s.Type.String(), TTL: s.TTL, Data: rr.DataText(s.Type, data), Description: s.Description,
		CreatedAt: timestamp(s.Created), UpdatedAt: timestamp(s.Updated)}
	switch s.Type {
	case rr.TypeALIAS:
		r.Type = rr.TypeTXT.String()
		r.Data = `"ALIAS ` + r.Data + ` (only editable via the V2 API)"`
	case rr.TypeMX, rr.TypeSRV:
		first, rest, _ := strings.Cut(r.Data, " ")
		if n, err := strconv.Atoi(first); err == nil {
			r.Priority, r.Data = &n, rest
		}
	}
	return r
}

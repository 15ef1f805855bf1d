package servermgmt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
)

// record is a record set on the wire.
type record struct {
	Zone        string   `json:"zone,omitempty"` // in replies with one record only
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Class       string   `json:"class"`
	TTL         *uint32  `json:"ttl,omitempty"`
	Data        []string `json:"rData"`
	LoadBalance bool     `json:"loadBalance,omitempty"` // ours: may stand beside other addresses of who says so too
}

// zoneRecords is a zone in a batch, and in lists, so that what was read can be put again.
type zoneRecords struct {
	Zone    string   `json:"zone"`
	Records []record `json:"rr"`
}

// recordInput is a record as clients write it.
type recordInput struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Class       string   `json:"class"`
	TTL         *int64   `json:"ttl"`
	Data        []string `json:"rData"`
	LoadBalance bool     `json:"loadBalance"`
}

func fromRecord(r mec.Record) record {
	w := record{Name: r.Name.String(), Type: r.Type.String(), Class: "IN", TTL: r.TTL, Data: []string{}, LoadBalance: r.LoadBalance}
	for _, a := range r.Addrs {
		w.Data = append(w.Data, a.String())
	}
	return w
}

// parse checks a record. A mepserver says 0 for the TTL of a rule that has none; the server that this one takes the
// place of refused that, and the rule with it. Here it stands for the default, as no TTL does.
func (in recordInput) parse(zone string) (mec.Record, error) {
	if in.TTL != nil && *in.TTL == 0 {
		in.TTL = nil
	}
	return mec.ParseRecord(mec.RecordDraft{Zone: zone, Name: in.Name, Type: in.Type, Class: in.Class, TTL: in.TTL, Data: in.Data,
		LoadBalance: in.LoadBalance})
}

// zone is the one that the query names. The zero Name is none: the one that is answered, or all.
func (c *call) zone() (dnsname.Name, error) {
	q := c.r.URL.Query()
	if !q.Has("zone") {
		return dnsname.Name{}, nil
	}
	return mec.ParseZone(q.Get("zone"))
}

// key is the record that the path and the query name.
func (c *call) key() (zone, name dnsname.Name, t rr.Type, err error) {
	if zone, err = c.zone(); err != nil {
		return zone, name, t, err
	}
	name, t, err = mec.ParseRecordKey(c.r.PathValue("fqdn"), c.r.PathValue("type"))
	return zone, name, t, err
}

// list answers with what a batch would put. Records are in order of their zones.
func (c *call) list() error {
	zone, err := c.zone()
	if err != nil {
		return err
	}
	list, err := c.Service.Records(zone)
	return c.tell(list, err)
}

func (c *call) listName() error {
	zone, err := c.zone()
	if err != nil {
		return err
	}
	name, _, err := mec.ParseRecordKey(c.r.PathValue("fqdn"), "A")
	if err != nil {
		return err
	}
	list, err := c.Service.RecordsAt(zone, name)
	return c.tell(list, err)
}

func (c *call) tell(list []mec.Record, err error) error {
	if err != nil {
		return err
	}
	out := []zoneRecords{}
	for i, r := range list {
		if i == 0 || r.Zone != list[i-1].Zone {
			out = append(out, zoneRecords{Zone: r.Zone.String()})
		}
		last := &out[len(out)-1]
		last.Records = append(last.Records, fromRecord(r))
	}
	httpapi.JSON(c.w, http.StatusOK, out)
	return nil
}

func (c *call) show() error {
	zone, name, t, err := c.key()
	if err != nil {
		return err
	}
	r, err := c.Service.Record(zone, name, t)
	if err != nil {
		return err
	}
	w := fromRecord(r)
	w.Zone = r.Zone.String()
	httpapi.JSON(c.w, http.StatusOK, w)
	return nil
}

// putBatch is the first generation: every record of every zone is made or replaced, or none is.
func (c *call) putBatch() error {
	b, err := c.read()
	if err != nil {
		return err
	}
	var zones []json.RawMessage
	if err := mechttp.Decode(b, &zones); err != nil {
		return err
	}
	if zones == nil {
		return &mec.FieldError{Field: mechttp.Whole, Msg: "must be an array"}
	}
	var all []mec.Record
	for i, raw := range zones {
		var z struct {
			Zone    string            `json:"zone"`
			Records []json.RawMessage `json:"rr"`
		}
		err := mechttp.Decode(raw, &z)
		if err == nil && z.Records == nil { // misspelt, it would be a success that changes nothing
			err = &mec.FieldError{Field: "rr", Msg: "is missing"}
		}
		for j := 0; err == nil && j < len(z.Records); j++ {
			var r mec.Record
			if r, err = parseRecord(z.Zone, z.Records[j]); err != nil {
				err = mechttp.Within(fmt.Sprintf("rr[%d]", j), err)
			}
			all = append(all, r)
		}
		if err != nil {
			return mechttp.Within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return c.done(c.Service.PutRecords(c.r.Context(), c.actor(), all))
}

func parseRecord(zone string, raw []byte) (mec.Record, error) {
	var in recordInput
	if err := mechttp.Decode(raw, &in); err != nil {
		return mec.Record{}, err
	}
	return in.parse(zone)
}

// create is the second generation: one record, or several, as its manual has it and its code had not.
func (c *call) create() error {
	b, err := c.read()
	if err != nil {
		return err
	}
	zone := c.r.URL.Query().Get("zone")
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '[' {
		r, err := parseRecord(zone, b)
		if err != nil {
			return err
		}
		return c.done(c.Service.CreateRecords(c.r.Context(), c.actor(), []mec.Record{r}))
	}
	var items []json.RawMessage
	if err := mechttp.Decode(b, &items); err != nil {
		return err
	}
	list := make([]mec.Record, len(items))
	for i, raw := range items {
		if list[i], err = parseRecord(zone, raw); err != nil {
			return mechttp.Within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return c.done(c.Service.CreateRecords(c.r.Context(), c.actor(), list))
}

// replace changes a record. Without a zone it is the one that is answered.
func (c *call) replace() error {
	zone, name, t, err := c.key()
	if err != nil {
		return err
	}
	b, err := c.read()
	if err != nil {
		return err
	}
	if zone == (dnsname.Name{}) {
		old, err := c.Service.Record(zone, name, t)
		if err != nil {
			return err
		}
		zone = old.Zone
	}
	r, err := parseRecord(zone.String(), b)
	switch {
	case err != nil:
		return err
	case r.Name != name:
		return &mec.FieldError{Field: "name", Msg: "is not the one of the path"}
	case r.Type != t:
		return &mec.FieldError{Field: "type", Msg: "is not the one of the path"}
	}
	return c.done(c.Service.ReplaceRecord(c.r.Context(), c.actor(), r))
}

// remove deletes a record. A body, which EdgeGallery's client sends, says nothing.
func (c *call) remove() error {
	zone, name, t, err := c.key()
	if err != nil {
		return err
	}
	return c.done(c.Service.DeleteRecord(c.r.Context(), c.actor(), zone, name, t))
}

// zoneEntry is a zone in the list of zones.
type zoneEntry struct {
	Zone    string `json:"zone"`
	Records int    `json:"records"`
}

func (c *call) listZones() error {
	zones, err := c.Service.Zones()
	if err != nil {
		return err
	}
	out := []zoneEntry{}
	for _, z := range zones {
		out = append(out, zoneEntry{z.Name.String(), z.Records})
	}
	httpapi.JSON(c.w, http.StatusOK, out)
	return nil
}

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
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// record is a record set in replies.
type record struct {
	Zone  string   `json:"zone,omitempty"` // only in replies with one record
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Class string   `json:"class"`
	TTL   *uint32  `json:"ttl,omitempty"`
	Data  []string `json:"rData"`
	// LoadBalance, which is not in EdgeGallery, allows addresses of other owners that set it too.
	LoadBalance bool `json:"loadBalance,omitempty"`
}

// zoneRecords is a zone in batches and in lists. The form is the same, so that a client can write back what it has
// read.
type zoneRecords struct {
	Zone    string   `json:"zone"`
	Records []record `json:"rr"`
}

// recordInput is a record in a request.
type recordInput struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Class       string   `json:"class"`
	TTL         *int64   `json:"ttl"`
	Data        []string `json:"rData"`
	LoadBalance bool     `json:"loadBalance"`
}

func fromRecord(r mec.Record) record {
	w := record{Name: r.Name.String(), Type: r.Type.String(), Class: "IN", TTL: r.TTL, Data: []string{},
		LoadBalance: r.LoadBalance}
	for _, a := range r.Addrs {
		w.Data = append(w.Data, a.String())
	}
	return w
}

// parse checks a record. A TTL of 0 means the default, like no TTL: a mepserver sends 0 for a rule without one.
// EdgeGallery's own DNS server refused 0, and the rule with it.
func (in recordInput) parse(zone string, special specialaddr.Table) (mec.Record, error) {
	if in.TTL != nil && *in.TTL == 0 {
		in.TTL = nil
	}
	return mec.ParseRecord(mec.RecordDraft{Zone: zone, Name: in.Name, Type: in.Type, Class: in.Class, TTL: in.TTL,
		Data:        in.Data,
		LoadBalance: in.LoadBalance}, special)
}

// zone returns the zone in the query. The zero Name means that there is none: the operation then uses the zone that
// answers for the name, or all zones.
func (c *call) zone() (dnsname.Name, error) {
	q := c.r.URL.Query()
	if !q.Has("zone") {
		return dnsname.Name{}, nil
	}
	return mec.ParseZone(q.Get("zone"))
}

// key returns the zone, name and type of the record in the path and query.
func (c *call) key() (zone, name dnsname.Name, t rr.Type, err error) {
	if zone, err = c.zone(); err != nil {
		return zone, name, t, err
	}
	name, t, err = mec.ParseRecordKey(c.r.PathValue("fqdn"), c.r.PathValue("type"))
	return zone, name, t, err
}

// list returns all records in the form of a batch, in the order of their zones.
func (c *call) list() error {
	zone, err := c.zone()
	if err != nil {
		return err
	}
	var list []mec.Record
	memory := int64(0)
	err = c.withMemory(func() { list, memory = nil, 0 }, func(need func(int64) error) error {
		return c.Service.EachRecord(zone, func(r mec.Record) error {
			list = append(list, r)
			memory += recordMemory + int64(len(r.Addrs))*addressMemory
			return need(memory)
		})
	})
	return c.writeList(list, err)
}

// These are the bytes of memory that a record or a zone, and each address of a record, take from the store to the JSON
// of a reply, with the longest name.
const (
	recordMemory  = 4 << 10
	addressMemory = 256
)

// withMemory runs a function that reads the data of a reply, with the memory that it needs: see httpapi.Need. After an
// error it calls drop, because a request that waits for memory must hold no data.
func (c *call) withMemory(drop func(), read func(need func(int64) error) error) error {
	ctx := c.r.Context()
	return httpapi.WithMemory(ctx, func() error {
		err := read(func(n int64) error { return httpapi.Need(ctx, n) })
		if err != nil {
			drop()
		}
		return err
	})
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
	return c.writeList(list, err)
}

// writeList writes records in the form of a batch.
func (c *call) writeList(list []mec.Record, err error) error {
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

// putBatch is the call of EdgeGallery's first generation. It creates or replaces every record of every zone, or none.
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
		if err == nil && z.Records == nil { // otherwise a misspelt key would be a success that changes nothing
			err = &mec.FieldError{Field: "rr", Msg: "is missing"}
		}
		for j := 0; err == nil && j < len(z.Records); j++ {
			var r mec.Record
			if r, err = c.parseRecord(z.Zone, z.Records[j]); err != nil {
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

func (c *call) parseRecord(zone string, raw []byte) (mec.Record, error) {
	var in recordInput
	if err := mechttp.Decode(raw, &in); err != nil {
		return mec.Record{}, err
	}
	return in.parse(zone, c.Service.Special())
}

// create is the call of EdgeGallery's second generation. It takes one record, or a list as in EdgeGallery's manual:
// EdgeGallery's code did not accept a list.
func (c *call) create() error {
	b, err := c.read()
	if err != nil {
		return err
	}
	zone := c.r.URL.Query().Get("zone")
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '[' {
		r, err := c.parseRecord(zone, b)
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
		if list[i], err = c.parseRecord(zone, raw); err != nil {
			return mechttp.Within(fmt.Sprintf("[%d]", i), err)
		}
	}
	return c.done(c.Service.CreateRecords(c.r.Context(), c.actor(), list))
}

// replace changes a record. Without a zone in the query it changes the record that is served.
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
	r, err := c.parseRecord(zone.String(), b)
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

// remove deletes a record. It ignores the body that EdgeGallery's client sends.
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
	out := []zoneEntry{}
	err := c.withMemory(func() { out = []zoneEntry{} }, func(need func(int64) error) error {
		return c.Service.EachZone(func(z mec.ZoneRecords) error {
			out = append(out, zoneEntry{z.Name.String(), z.Records})
			return need(int64(len(out)) * recordMemory)
		})
	})
	if err != nil {
		return err
	}
	httpapi.JSON(c.w, http.StatusOK, out)
	return nil
}

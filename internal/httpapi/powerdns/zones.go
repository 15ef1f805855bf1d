package powerdns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// zoneInfo is a zone in a list.
type zoneInfo struct {
	Account        string   `json:"account"`
	Catalog        string   `json:"catalog"`
	DNSSEC         *bool    `json:"dnssec,omitempty"`
	EditedSerial   *uint32  `json:"edited_serial,omitempty"`
	ID             string   `json:"id"`
	Kind           string   `json:"kind"`
	LastCheck      int64    `json:"last_check"`
	Masters        []string `json:"masters"`
	Name           string   `json:"name"`
	NotifiedSerial uint32   `json:"notified_serial"`
	Serial         uint32   `json:"serial"`
	URL            string   `json:"url"`
}

// zoneDetail is a zone by itself, without its record sets.
type zoneDetail struct {
	zoneInfo
	APIRectify  bool     `json:"api_rectify"`
	MasterKeys  []string `json:"master_tsig_key_ids"`
	NSEC3Narrow bool     `json:"nsec3narrow"`
	NSEC3Param  string   `json:"nsec3param"`
	SlaveKeys   []string `json:"slave_tsig_key_ids"`
	SOAEdit     string   `json:"soa_edit"`
	SOAEditAPI  string   `json:"soa_edit_api"`
}

// info returns the JSON form of a zone. A zone of kind Master is notified with every commit.
func (c *call) info(z zone.Zone, s settings, dnssec bool) zoneInfo {
	id := idOfName(z.Name)
	w := zoneInfo{Account: s.Account, ID: id, Kind: kindOf(z, s), Masters: []string{}, Name: z.Name.String(),
		Serial: z.Serial, URL: zones + "/" + id}
	if dnssec {
		// PowerDNS leaves both out with dnssec=false, because its list is then much faster. Clients check whether they exist.
		w.DNSSEC, w.EditedSerial = new(false), &z.Serial
	}
	if s.Master {
		w.NotifiedSerial = z.Serial
	}
	for _, m := range z.Masters {
		// PowerDNS does not show the default port. With it, a client that compares its own list would always see a
		// difference.
		w.Masters = append(w.Masters, strings.TrimSuffix(m, ":53"))
	}
	// Only secondaries are checked against a primary. 0 means never, as in PowerDNS.
	if z.Kind == zone.Secondary {
		if at := c.api.Zones.Peers.Copy(z.ID).Checked; !at.IsZero() {
			w.LastCheck = at.Unix()
		}
	}
	return w
}

func (c *call) detail(v store.View, z zone.Zone) (zoneDetail, error) {
	s, err := settingsOf(v, z.ID)
	return zoneDetail{zoneInfo: c.info(z, s, true), APIRectify: s.first(metaRectify) == "1",
		MasterKeys: []string{}, SlaveKeys: []string{}, SOAEdit: s.first(metaSOAEdit),
		SOAEditAPI: s.first(metaSOAEditAPI)}, err
}

// zoneMemory is the memory of a zone in a list.
const zoneMemory = 2 << 10

// listZones has no pages, as in PowerDNS: clients expect all zones in one reply. So memory is reserved first.
func (c *call) listZones() (reply, error) {
	q := c.r.URL.Query()
	out := []zoneInfo{}
	err := c.view(func(v store.View) error {
		list, err := c.selectZones(v, q["zone"])
		if err != nil {
			return err
		}
		if err := httpapi.Need(c.r.Context(), int64(len(list))*zoneMemory); err != nil {
			return err
		}
		out = make([]zoneInfo, 0, len(list))
		for _, z := range list {
			s, err := settingsOf(v, z.ID)
			if err != nil {
				return err
			}
			out = append(out, c.info(z, s, q.Get("dnssec") != "false"))
		}
		return nil
	})
	return ok(out), err
}

// selectZones returns the zones that the caller sees, or the one with the name of the query.
func (c *call) selectZones(v store.View, query []string) ([]zone.Zone, error) {
	if len(query) == 0 {
		return c.rules.Zones(v)
	}
	// PowerDNS refuses such names before it searches for the zone, and clients show its message.
	if strings.Trim(query[0], plainNames) != "" {
		return nil, refuse("Name '%s' contains unsupported characters", query[0])
	}
	n, err := parseCanonical(query[0])
	if err != nil {
		return nil, err
	}
	z, err := c.rules.Zone(v, n)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return []zone.Zone{z}, err
}

func (c *call) showZone() (reply, error) {
	z, err := c.viewZone(c.zone)
	if err != nil {
		return reply{}, err
	}
	return c.zoneReply(http.StatusOK, z)
}

// setFilter selects the record sets of a reply.
type setFilter struct {
	none bool
	name *dnsname.Name
	typ  *rr.Type
}

// readFilter reads the query of a zone. PowerDNS ignores rrset_type without rrset_name, and so does this function.
func (c *call) readFilter() (f setFilter, err error) {
	q := c.r.URL.Query()
	switch q.Get("rrsets") {
	case "false":
		f.none = true
	case "true":
	default:
		if q.Has("rrsets") {
			return f, refuse("'rrsets' request parameter value '%s' is not supported", q.Get("rrsets"))
		}
	}
	if q.Has("rrset_name") {
		n, err := dnsname.Parse(q.Get("rrset_name"))
		if err != nil {
			return f, refuse("Unable to parse DNS Name '%s'", q.Get("rrset_name"))
		}
		f.name = &n
		if q.Has("rrset_type") {
			t, _ := rr.ParseType(q.Get("rrset_type")) // no set has the type 0 of an unknown word
			f.typ = &t
		}
	}
	return f, nil
}

// zoneReply returns a reply with a zone and its record sets.
func (c *call) zoneReply(code int, z zone.Zone) (reply, error) {
	f, err := c.readFilter()
	if err != nil {
		return reply{}, err
	}
	// The reply is written to a buffer or a file first, so that its ETag can be sent before the body.
	memory := httpapi.SetMemory(z.Sets, z.Bytes)
	if f.none {
		memory = zoneMemory
	}
	name := z.Name
	return reply{status: code, large: &large{media: "application/json", memory: memory,
		write: func(w io.Writer) (tag string, err error) {
			err = c.view(func(v store.View) error {
				z, err := c.rules.Zone(v, name)
				if err != nil {
					return err
				}
				// Body and tag come from one view of the store. A tag of another moment would break If-Match.
				if tag, err = c.rules.Tag(v, z); err != nil {
					return err
				}
				return c.writeZone(v, z, f, w)
			})
			return tag, err
		}}}, nil
}

// writeZone writes a zone with its record sets, one after the other.
func (c *call) writeZone(v store.View, z zone.Zone, f setFilter, w io.Writer) error {
	d, err := c.detail(v, z)
	if err != nil {
		return err
	}
	b, err := marshal(d)
	if err != nil {
		return err
	}
	if f.none {
		_, err := w.Write(b)
		return err
	}
	// The sets are not collected in a slice: a zone with a million of them would need its size twice.
	if _, err := fmt.Fprintf(w, `%s,"rrsets":[`, b[:len(b)-1]); err != nil {
		return err
	}
	comma := ""
	err = eachSet(v, z, f, func(s zone.RecordSet) error {
		b, err := marshal(rrsetOf(z, s))
		if err == nil {
			_, err = io.WriteString(w, comma+string(b))
		}
		comma = ","
		return err
	})
	if err == nil {
		_, err = io.WriteString(w, "]}")
	}
	return err
}

// eachSet calls fn for the record sets of a zone that the API shows and the filter selects.
func eachSet(v store.View, z zone.Zone, f setFilter, fn func(zone.RecordSet) error) error {
	// A filter by name reads only the rows of that name. Clients use it for zones that they would not read as a whole.
	if f.name != nil {
		sets, err := v.RecordSetsAt(z.ID, *f.name)
		for _, s := range sets {
			if err == nil && isShown(s) && (f.typ == nil || *f.typ == s.Type) {
				err = fn(s)
			}
		}
		return err
	}
	return v.RecordSets(z.ID, func(s zone.RecordSet) (bool, error) {
		if !isShown(s) {
			return true, nil
		}
		return true, fn(s)
	})
}

// deleteZone deletes a zone. It reads the zone before too, because the number of its sets decides how it is committed.
func (c *call) deleteZone() (reply, error) {
	z, err := c.viewZone(c.ownZone)
	if err != nil {
		return reply{}, err
	}
	return noContent, c.commitSized(z.Sets, func(tx *publish.Tx) error {
		z, err := c.ownZone(tx.View)
		if err != nil {
			return err
		}
		if err := c.ifMatch(tx.View, z); err != nil {
			return err
		}
		return c.rules.RemoveZone(tx, z)
	})
}

// notifyZone replies before the secondaries have answered, as PowerDNS does: retries can take minutes (RFC 1996 §3.6).
func (c *call) notifyZone() (reply, error) {
	z, err := c.viewZone(c.zone)
	if err != nil {
		return reply{}, err
	}
	c.api.Notify(z)
	return ok(result{"Notification queued"}), nil
}

// rectifyZone does nothing: the order of names and the empty non-terminals of a zone are always right here.
func (c *call) rectifyZone() (reply, error) {
	_, err := c.viewZone(c.zone)
	return ok(result{"Rectified"}), err
}

// retrieveZone starts a transfer of a zone from its masters, even if its serial is the newest.
func (c *call) retrieveZone() (reply, error) {
	z, err := c.viewZone(c.ownZone)
	if err != nil {
		return reply{}, err
	}
	if len(z.Masters) == 0 {
		return reply{}, refuse("Domain '%s' is not a slave domain (or has no master defined)", z.Name)
	}
	c.api.Zones.Peers.Refresh(z.ID, true)
	return ok(result{fmt.Sprintf("Added retrieval request for '%s' from master %s", z.Name, z.Masters[0])}), nil
}

// exportZone sends the records of a zone, one in a line, or a JSON object with this text.
func (c *call) exportZone() (reply, error) {
	z, err := c.viewZone(c.zone)
	if err != nil {
		return reply{}, err
	}
	// PowerDNS sends the text as JSON only to a client that asks for JSON.
	asJSON := strings.Contains(c.r.Header.Get("Accept"), "application/json")
	l := &large{media: "text/plain; charset=us-ascii", memory: httpapi.SetMemory(z.Sets, z.Bytes)}
	before, after := "", ""
	if asJSON {
		l.media, before, after = "application/json", `{"zone":"`, `"}`
	}
	name := z.Name
	l.write = func(w io.Writer) (tag string, err error) {
		err = c.view(func(v store.View) error {
			z, err := c.rules.Zone(v, name)
			if err == nil {
				tag, err = c.rules.Tag(v, z)
			}
			if err == nil {
				_, err = io.WriteString(w, before)
			}
			if err != nil {
				return err
			}
			err = eachSet(v, z, setFilter{}, func(s zone.RecordSet) error { return writeLines(w, z, s, asJSON) })
			if err == nil {
				_, err = io.WriteString(w, after)
			}
			return err
		})
		return tag, err
	}
	return reply{status: http.StatusOK, large: l}, nil
}

func writeLines(w io.Writer, z zone.Zone, s zone.RecordSet, asJSON bool) error {
	for _, d := range s.Data {
		line := fmt.Sprintf("%s\t%d\tIN\t%s\t%s\n", s.Name, ttlOf(z, s), s.Type, contentText(s.Type, d))
		if asJSON {
			b, err := json.Marshal(line)
			if err != nil {
				return err
			}
			// The quotes around the whole text are written once, by the caller.
			line = string(b[1 : len(b)-1])
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// Key is a TSIG key (RFC 8945) from the tsigkeys API.
type Key struct {
	wire.TSIGKey

	zone, pool uuid.UUID   // scope of the key; exactly one is set
	zones      []uuid.UUID // the only zones of the pool that the key is for; empty: all
	names      []NamePattern
	types      []rr.Type
}

// keyRow has the fields of store.KindTSIGKey that this package needs. The tsigkeys API writes these rows.
type keyRow struct {
	Name      string      `json:"name"`
	Algorithm string      `json:"algorithm"`
	Secret    string      `json:"secret"`
	Scope     string      `json:"scope"`
	Resource  uuid.UUID   `json:"resource_id"`
	Zones     []uuid.UUID `json:"zones"`
	Names     []string    `json:"names"`
	Types     []string    `json:"types"`
}

// readKeys returns the usable keys. The API also stores keys with weaker algorithms, for clients that need them back;
// DNS messages cannot use those.
func readKeys(v store.View) ([]Key, error) {
	rows, err := store.ObjectsOf[keyRow](v, store.KindTSIGKey)
	if err != nil {
		return nil, err
	}
	var out []Key
	for _, r := range rows {
		if k, err := r.key(); err == nil && k.Usable() {
			out = append(out, k)
		}
	}
	return out, nil
}

// key parses a row. A limit that cannot be parsed is an error: without it, the key could do more.
func (r keyRow) key() (k Key, err error) {
	var errs [3]error
	k.Name, errs[0] = dnsname.Parse(strings.TrimSuffix(r.Name, ".") + ".")
	k.Algorithm, errs[1] = dnsname.Parse(r.Algorithm + ".")
	k.Secret, errs[2] = base64.StdEncoding.DecodeString(r.Secret)
	if err := errors.Join(errs[:]...); err != nil {
		return k, err
	}
	if r.Scope == "ZONE" {
		k.zone = r.Resource
	} else {
		k.pool, k.zones = r.Resource, r.Zones
	}
	for _, s := range r.Names {
		p, err := ParseNamePattern(s)
		if err != nil {
			return k, err
		}
		k.names = append(k.names, p)
	}
	for _, s := range r.Types {
		t, err := rr.ParseType(s)
		if err != nil {
			return k, err
		}
		k.types = append(k.types, t)
	}
	return k, nil
}

// For reports whether the key may be used for a zone.
func (k Key) For(z zone.Zone) bool {
	if len(k.zones) > 0 {
		return slices.Contains(k.zones, z.ID)
	}
	return k.zone != uuid.Nil && k.zone == z.ID || k.pool != uuid.Nil && k.pool == z.Pool
}

// limited reports whether the key may change only some records of its zones.
func (k Key) limited() bool { return len(k.names) > 0 || len(k.types) > 0 }

// MayTransfer reports whether the key may transfer a zone and send NOTIFY for it. A key that may change only some
// records may do neither: its holder has no need of the other records.
func (k Key) MayTransfer(z zone.Zone) bool { return k.For(z) && !k.limited() }

// MayChange reports whether the key may change the records of a name and type, in the zones that it is for. As in
// BIND's update-policy, a key that is limited to names needs to list the types NS and SOA to change these.
func (k Key) MayChange(n dnsname.Name, t rr.Type) bool {
	if len(k.names) > 0 && !slices.ContainsFunc(k.names, func(p NamePattern) bool { return p.Matches(n) }) {
		return false
	}
	if len(k.types) > 0 {
		return slices.Contains(k.types, t)
	}
	return !k.limited() || t != rr.TypeNS && t != rr.TypeSOA
}

// NamePattern is a pattern of owner names.
type NamePattern struct {
	before, after string // labels around the asterisk, in wire form
	exact         bool   // there is no asterisk: before is the whole name
}

// ParseNamePattern parses a full name, in which one label may be an asterisk. It stands for one label or more:
// _acme-challenge.* matches _acme-challenge.www.example.org, and *.lan.example.org all names below lan.example.org.
func ParseNamePattern(s string) (NamePattern, error) {
	n, err := dnsname.Parse(s)
	if err != nil {
		return NamePattern{}, err
	}
	p := NamePattern{before: n.Wire(), exact: true}
	for rest := n; !rest.IsRoot(); rest = rest.Parent() {
		if !rest.IsWildcard() {
			continue
		}
		if !p.exact {
			return p, errors.New("a pattern has at most one label *")
		}
		p = NamePattern{before: n.In(rest), after: rest.Parent().Wire()}
	}
	return p, nil
}

// Matches reports whether a name matches the pattern.
func (p NamePattern) Matches(n dnsname.Name) bool {
	w := n.Wire()
	if p.exact || !strings.HasPrefix(w, p.before) {
		return w == p.before
	}
	for at := len(p.before); w[at] != 0; {
		at += 1 + int(w[at])
		if w[at:] == p.after {
			return true
		}
	}
	return false
}

// DropKeysOf deletes the keys of a zone that is being deleted. A key for several zones is deleted with the last of
// them.
func DropKeysOf(tx *publish.Tx, zoneID uuid.UUID) error {
	type change struct {
		id  string
		row map[string]any // nil: delete the key
	}
	var changes []change
	err := tx.EachObject(store.KindTSIGKey, func(id string, value []byte) (bool, error) {
		if !bytes.Contains(bytes.ToLower(value), []byte(zoneID.String())) {
			return true, nil // most keys are for other zones, and there may be very many
		}
		var r keyRow
		row := map[string]any{}
		if err := errors.Join(json.Unmarshal(value, &r), json.Unmarshal(value, &row)); err != nil {
			return false, err
		}
		left := slices.DeleteFunc(slices.Clone(r.Zones), func(z uuid.UUID) bool { return z == zoneID })
		switch {
		case r.Scope == "ZONE" && r.Resource == zoneID, len(left) == 0 && len(r.Zones) > 0:
			changes = append(changes, change{id: id})
		case len(left) < len(r.Zones):
			row["zones"] = left
			changes = append(changes, change{id, row})
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.row == nil {
			err = tx.DeleteObject(store.KindTSIGKey, c.id)
		} else {
			err = tx.PutObject(store.KindTSIGKey, c.id, c.row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

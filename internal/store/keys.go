package store

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Keys of Meta.
var (
	KeyFormat = []byte("format") // one byte: Format
	keySecret = []byte("secret") // random bytes from which record set IDs are computed
	KeyCommit = []byte("commit") // number of the last commit
	KeySetNum = []byte("setnum") // number of the last record set created
	keyOwners = []byte("owners") // present when the rows of owner.go are complete
)

// Format is the version of the row format. Since version 2, rows have checksums. Init refuses a store of a later
// version.
const Format = 2

// zoneKey returns the key of a zone in Names. Keys sort in canonical order of names. The key of the root would be
// empty, which no store accepts, so it is 0x00: no key of another name begins with that byte.
func zoneKey(name dnsname.Name) []byte {
	if name.IsRoot() {
		return []byte{0}
	}
	return name.AppendKey(nil)
}

// SetKey returns the key of a record set in Sets. Within a zone, keys sort in canonical order of names, then by type.
func SetKey(zone uuid.UUID, name dnsname.Name, t rr.Type) []byte {
	return binary.BigEndian.AppendUint16(nameKey(zone, name), uint16(t))
}

// nameKey returns the prefix of the keys of all record sets of a name, and of no other sets. It ends in 0x00, with
// which the key of no label begins. So names below this name sort after the prefix and never match it.
func nameKey(zone uuid.UUID, name dnsname.Name) []byte {
	k := make([]byte, 0, 16+len(name.Wire())+3)
	k = append(k, zone[:]...)
	k = name.AppendKey(k)
	return append(k, 0)
}

// parseSetKey parses the output of SetKey.
func parseSetKey(k []byte) (zone uuid.UUID, name dnsname.Name, t rr.Type, ok bool) {
	if len(k) < 16+3 {
		return zone, name, 0, false
	}
	copy(zone[:], k)
	t = rr.Type(binary.BigEndian.Uint16(k[len(k)-2:]))
	name, ok = dnsname.FromKey(k[16 : len(k)-3])
	return zone, name, t, ok
}

// number returns a number as a key: big-endian, so that keys sort like the numbers.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// JournalKey returns the key of a change in Journal.
func JournalKey(zone uuid.UUID, commit uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(nil), zone[:]...), commit)
}

// ObjectKey returns the key of an object in Objects.
func ObjectKey(kind Kind, id string) []byte {
	return append(append([]byte(kind), 0), id...)
}

// KeyText describes a row for people. The key may be damaged.
func KeyText(t Table, key []byte) string {
	switch zone, name, typ, ok := parseSetKey(key); {
	case t == Sets && ok:
		return fmt.Sprintf("record set %s %s of zone %s", name, typ, zone)
	case t == Zones && len(key) == 16:
		return "zone " + uuid.UUID(key).String()
	case t == Journal && len(key) == 24:
		return fmt.Sprintf("change %d of zone %s", binary.BigEndian.Uint64(key[16:]), uuid.UUID(key[:16]))
	}
	return fmt.Sprintf("row %q of table %s", key, t)
}

// setID computes the ID of the record set with a number. The number comes first, so that IDs sort by creation and lead
// back to their row without an index in memory. The rest cannot be guessed without the secret of the store. The form is
// version 8 of RFC 9562. Secret and number have fixed lengths, so a plain hash of both is as good as an HMAC and takes
// an eighth of the time: every row that is read needs its ID.
func setID(secret []byte, n uint64) uuid.UUID {
	var in [40]byte
	copy(in[:32], secret)
	binary.BigEndian.PutUint64(in[32:], n)
	sum := sha256.Sum256(in[:])
	id := uuid.UUID(sum[:16])
	copy(id[:6], in[34:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// setNumber returns the number in a record set's ID.
func setNumber(id uuid.UUID) uint64 {
	var b [8]byte
	copy(b[2:], id[:6])
	return binary.BigEndian.Uint64(b[:])
}

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
	KeyFormat = []byte("format") // one octet: Format
	keySecret = []byte("secret") // random octets that record set ids are made with
	KeyCommit = []byte("commit") // number of the last commit
	KeySetNum = []byte("setnum") // number of the last record set made
	keyOwners = []byte("owners") // present when the rows of owner.go are complete
)

// Format is the version of the rows: 2 since they have checksums. A store of a later format is refused.
const Format = 2

// zoneKey is the key of a zone in Names: in canonical order. The root's own key would be empty, which no store takes; no
// other name's begins with 0x00.
func zoneKey(name dnsname.Name) []byte {
	if name.IsRoot() {
		return []byte{0}
	}
	return name.AppendKey(nil)
}

// SetKey is the key of a record set in Sets. Within a zone, keys are in canonical order of names, then of types.
func SetKey(zone uuid.UUID, name dnsname.Name, t rr.Type) []byte {
	return binary.BigEndian.AppendUint16(nameKey(zone, name), uint16(t))
}

// nameKey is the prefix of the keys of all record sets of a name, and of nothing else: the 0x00 at its end is no
// beginning of a label's key, so names below sort after it and never match it.
func nameKey(zone uuid.UUID, name dnsname.Name) []byte {
	k := make([]byte, 0, 16+len(name.Wire())+3)
	k = append(k, zone[:]...)
	k = name.AppendKey(k)
	return append(k, 0)
}

// parseSetKey reads what SetKey wrote.
func parseSetKey(k []byte) (zone uuid.UUID, name dnsname.Name, t rr.Type, ok bool) {
	if len(k) < 16+3 {
		return zone, name, 0, false
	}
	copy(zone[:], k)
	t = rr.Type(binary.BigEndian.Uint16(k[len(k)-2:]))
	name, ok = dnsname.FromKey(k[16 : len(k)-3])
	return zone, name, t, ok
}

// number is a key made of a count: big-endian, so that keys sort as the counts do.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// JournalKey is the key of a change in Journal.
func JournalKey(zone uuid.UUID, commit uint64) []byte {
	return binary.BigEndian.AppendUint64(append([]byte(nil), zone[:]...), commit)
}

// ObjectKey is the key of an object in Objects.
func ObjectKey(kind Kind, id string) []byte {
	return append(append([]byte(kind), 0), id...)
}

// KeyText names a row for a person. The key may be damaged.
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

// setID makes the id of the record set with a number: the number in front, so that ids sort by creation and lead
// back to their row without an index in memory, then a part that nobody without the store's secret can make up.
// The form is RFC 9562's version 8. Secret and number have fixed lengths, so a plain hash of both is as good as an HMAC,
// at an eighth of its time: every row that is read needs its id.
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

// setNumber is the number in a record set's id.
func setNumber(id uuid.UUID) uint64 {
	var b [8]byte
	copy(b[2:], id[:6])
	return binary.BigEndian.Uint64(b[:])
}

package boltstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/nameplane/nameplane/internal/store"
)

// bbolt protects only its meta pages, so the store protects its rows:
//
//   - The value of each row is followed by four bytes: the CRC-32C of table, key and value. They are verified whenever
//     the row is read. CRC-32C detects every damage of up to 32 adjacent bits, and processors compute it in hardware.
//   - Each table has a sum over its rows, which detects rows that are missing or out of date: the sum of
//     2^32 + checksum. A commit updates it for the rows that it writes. It is stored in the sequence number of the
//     bucket. bbolt keeps that number beside the bucket's root, which every commit to the bucket writes anyway, so no
//     additional page is written.
//
// Open and Scrub verify both (check.go). Stores of older versions have neither; upgrade.go adds both.

// sumSize is the size of a row's checksum in bytes.
const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seedOf returns the initial value for the checksums of a table.
func seedOf(t store.Table) uint32 { return crc32.Checksum([]byte(t), castagnoli) }

// checksum returns the checksum of a row. The initial value includes the length of the key, so a byte that moves from
// the key to the value changes the checksum.
func checksum(seed uint32, key, value []byte) uint32 {
	return crc32.Update(crc32.Update(seed^uint32(len(key)), castagnoli, key), castagnoli, value)
}

// seal returns a value with its checksum, as it is stored in the file, in a new slice.
func seal(seed uint32, key, value []byte) []byte {
	row := append(make([]byte, 0, len(value)+sumSize), value...)
	return binary.LittleEndian.AppendUint32(row, checksum(seed, key, value))
}

// unseal returns the value of a stored row, and whether its checksum is correct.
func unseal(seed uint32, key, row []byte) (value []byte, ok bool) {
	n := len(row) - sumSize
	if n < 0 || binary.LittleEndian.Uint32(row[n:]) != checksum(seed, key, row[:n]) {
		return nil, false
	}
	return row[:n:n], true
}

// share returns what a row adds to the sum of its table. It does not verify the checksum.
func share(row []byte) uint64 {
	return 1<<32 + uint64(binary.LittleEndian.Uint32(row[len(row)-sumSize:]))
}

// badRow returns the error for a row whose checksum is wrong.
func badRow(t store.Table, key []byte) error {
	return fmt.Errorf("the checksum of %s is wrong", store.KeyText(t, key))
}

// damagedRow returns and records the error for a row whose checksum is wrong.
func (b *table) damagedRow(key []byte) *store.DamagedError {
	d := &store.DamagedError{Path: b.s.path, Err: badRow(b.name, key)}
	b.s.noteDamage(d)
	return d
}

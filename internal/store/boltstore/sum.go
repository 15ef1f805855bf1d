package boltstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/nameplane/nameplane/internal/store"
)

// bbolt protects its meta pages and nothing else, so the store protects its rows.
//
//   - Behind the value of each row stand four bytes: the CRC-32C of table, key and value. They are verified whenever
//     the row is read. CRC-32C finds every damage of up to 32 adjacent bits, and processors compute it.
//   - Each table has a sum over its rows, which finds rows that are missing or out of date: the sum of 2^32 + checksum.
//     A commit updates it by the rows that it writes. It is in the bucket's sequence number, which bbolt keeps beside
//     the bucket's root and which every commit to the bucket writes anyway: no page is written for it.
//
// Open and Scrub verify both (check.go). Stores of earlier builds have neither; upgrade.go gives them both.

// sumSize is the size of a row's checksum.
const sumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seedOf returns the start value for the checksums of a table.
func seedOf(t store.Table) uint32 { return crc32.Checksum([]byte(t), castagnoli) }

// checksum returns the checksum of a row. The length of the key is in the start value: a byte that moves from the key to
// the value changes the checksum.
func checksum(seed uint32, key, value []byte) uint32 {
	return crc32.Update(crc32.Update(seed^uint32(len(key)), castagnoli, key), castagnoli, value)
}

// seal returns the bytes that stand in the file for a value, in a new slice.
func seal(seed uint32, key, value []byte) []byte {
	row := append(make([]byte, 0, len(value)+sumSize), value...)
	return binary.LittleEndian.AppendUint32(row, checksum(seed, key, value))
}

// unseal returns the value in the bytes of a row, and whether they have the right checksum.
func unseal(seed uint32, key, row []byte) (value []byte, ok bool) {
	n := len(row) - sumSize
	if n < 0 || binary.LittleEndian.Uint32(row[n:]) != checksum(seed, key, row[:n]) {
		return nil, false
	}
	return row[:n:n], true
}

// share returns what a row adds to the sum of its table. It reads the checksum and does not verify it.
func share(row []byte) uint64 {
	return 1<<32 + uint64(binary.LittleEndian.Uint32(row[len(row)-sumSize:]))
}

// badRow says that a row does not have its checksum.
func badRow(t store.Table, key []byte) error {
	return fmt.Errorf("the checksum of %s is wrong", store.KeyText(t, key))
}

// damagedRow returns and notes the error for a row that does not have its checksum.
func (b *table) damagedRow(key []byte) *store.DamagedError {
	d := &store.DamagedError{Path: b.s.path, Err: badRow(b.name, key)}
	b.s.noteDamage(d)
	return d
}

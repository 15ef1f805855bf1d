package boltstore

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/store"
)

// rowOf returns key and value of a typical record set: 45 and 35 bytes.
func rowOf(i int) (key, value []byte) {
	return fmt.Appendf(nil, "%08x/org.example.%024x", 7, i), fmt.Appendf(nil, "%035d", i)
}

// benchStore returns a store of the given number of record sets, written in order of their keys like an import.
func benchStore(b *testing.B, rows int) *Store {
	b.Helper()
	s := open(b, filepath.Join(b.TempDir(), "store.db"))
	b.Cleanup(func() { _ = s.Close() })
	const chunk = 100_000
	for n := 0; n < rows; n += chunk {
		mustUpdate(b, s, func(w store.Writer) error {
			for i := n; i < min(n+chunk, rows); i++ {
				key, value := rowOf(i)
				if err := w.Put(store.Sets, key, value); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return s
}

// BenchmarkUpdate measures one commit of a number of changes to random record sets, with one entry in the journal.
func BenchmarkUpdate(b *testing.B) {
	for _, puts := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("puts=%d", puts), func(b *testing.B) {
			s := benchStore(b, 100_000)
			rnd := rand.New(rand.NewPCG(1, 2))
			journal := make([]byte, 24)
			var n uint64
			b.ReportAllocs()
			for b.Loop() {
				n++
				mustUpdate(b, s, func(w store.Writer) error {
					for range puts {
						key, _ := rowOf(rnd.IntN(100_000))
						if err := w.Put(store.Sets, key, fmt.Appendf(nil, "%035d", n)); err != nil {
							return err
						}
					}
					binary.BigEndian.PutUint64(journal[16:], n)
					return w.Put(store.Journal, journal, make([]byte, 60+80*puts))
				})
			}
			b.ReportMetric(float64(s.Size())/1e6, "MB")
		})
	}
}

// BenchmarkSync measures the lower bound of a commit: the least that it writes, and its two syncs.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for i := range int64(2) {
			if _, err := f.WriteAt(page, i*4096); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkOpen measures Open, mainly the check, of a store of about 200 MB.
func BenchmarkOpen(b *testing.B) {
	s := benchStore(b, 1_000_000)
	path := s.path
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s := open(b, path)
		b.ReportMetric(float64(s.Size())/1e6, "MB")
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan reads a million rows, like the start of serve.
func BenchmarkScan(b *testing.B) {
	s := benchStore(b, 1_000_000)
	for b.Loop() {
		n := 0
		err := s.View(func(r store.Reader) error {
			r.Scan(store.Sets, nil, nil, func(_, _ []byte) bool { n++; return true })
			return nil
		})
		if err != nil || n != 1_000_000 {
			b.Fatal(n, err)
		}
	}
}

package publish_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// BenchmarkCommit changes one address of a zone of 100,000 names, with one writer and with many. TMPDIR should be on a
// disk. The journal is at its limit most of the time.
func BenchmarkCommit(b *testing.B) {
	const names = 100_000
	dir, err := os.MkdirTemp(os.Getenv("TMPDIR"), "commit")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	st, err := boltstore.Open(filepath.Join(dir, "db"), boltstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	p, err := publish.Open(st, publish.Options{JournalLimit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	defer func() { cancel(); <-ended; st.Close() }()
	name := func(i int) dnsname.Name { return dnsname.MustParse(fmt.Sprintf("host-%06d.example.org.", i)) }
	data := func(t rr.Type, text string) []string {
		d, err := rr.ParseData(t, text)
		if err != nil {
			b.Fatal(err)
		}
		return []string{d}
	}
	apex := dnsname.MustParse("example.org.")
	sets := []zone.RecordSet{{Name: apex, Type: rr.TypeSOA,
		Data: data(rr.TypeSOA, "ns.example.org. h.example.org. 1 1 1 1 1")},
		{Name: apex, Type: rr.TypeNS, Data: data(rr.TypeNS, "ns.example.org.")}}
	var z zone.Zone
	err = p.CommitAlone(ctx, actor, func(tx *publish.Tx) (err error) {
		if z, err = tx.CreateZone(zone.Zone{Name: apex, Kind: zone.Primary, TTL: 300}, sets...); err != nil {
			return err
		}
		for i := range names {
			sets = append(sets, zone.RecordSet{Name: name(i), Type: rr.TypeA, Data: []string{"\xc0\x00\x02\x01"}})
		}
		return tx.ReplaceSets(z.ID, sets)
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			var next atomic.Int64
			before := written(b)
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for {
						i := int(next.Add(1))
						if i > b.N {
							return
						}
						s := zone.RecordSet{Zone: z.ID, Name: name(i * 7919 % names), Type: rr.TypeA,
							Data: []string{string([]byte{byte(writers), byte(i >> 16), byte(i >> 8), byte(i)})}}
						if err := p.Commit(ctx, actor, func(tx *publish.Tx) error { _, err := tx.UpdateSet(s); return err }); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(written(b)-before)/1024/float64(b.N), "KiB/op")
		})
	}
}

// written returns how many bytes this process has passed to write system calls.
func written(b *testing.B) (n int) {
	b.Helper()
	stat, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0 // not Linux
	}
	if _, err := fmt.Sscanf(string(stat), "rchar: %d\nwchar: %d", new(int), &n); err != nil {
		b.Fatal(err)
	}
	return n
}

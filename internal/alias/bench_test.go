package alias_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// benchPublisher creates a zone of n aliases on one target in another zone; change changes the target. If flattened is
// not nil, it receives the number of aliases that each commit flattened.
func benchPublisher(b *testing.B, n int, flattened chan<- int) (change func(i int)) {
	b.Helper()
	st, err := boltstore.Open(filepath.Join(b.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s := alias.New(alias.Options{})
	pub, err := publish.Open(st, publish.Options{Derive: s.Derive, Committed: func(changes []store.Change) {
		for _, c := range changes {
			if flattened != nil && len(c.Sets) > 0 && c.Sets[0].After != nil && c.Sets[0].After.Hidden {
				flattened <- len(c.Sets) - 1 // without the SOA
			}
		}
	}})
	if err == nil {
		err = s.Open(pub)
	}
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var all sync.WaitGroup
		all.Go(func() { pub.Run(ctx) })
		all.Go(func() { s.Run(ctx) })
		all.Wait()
	}()
	b.Cleanup(func() { stop(); <-ended; st.Close() })
	commit := func(fn func(*publish.Tx) error) {
		b.Helper()
		if err := pub.Commit(ctx, actor, fn); err != nil {
			b.Fatal(err)
		}
	}
	var target zone.Zone
	commit(func(tx *publish.Tx) (err error) {
		target, err = tx.CreateZone(zone.Zone{Name: name("example.net."), Kind: zone.Primary, TTL: 60},
			apex("example.net.")...)
		if err != nil {
			return err
		}
		_, err = tx.CreateSet(address(target, 0))
		return err
	})
	commit(func(tx *publish.Tx) error {
		z, err := tx.CreateZone(zone.Zone{Name: name("example.org."), Kind: zone.Primary, TTL: 60}, apex("example.org.")...)
		for i := 0; i < n && err == nil; i++ {
			_, err = tx.CreateSet(zone.RecordSet{Zone: z.ID, Name: name(fmt.Sprintf("a%d.example.org.", i)), Type: rr.TypeALIAS,
				Data: []string{name("www.example.net.").Wire()}})
		}
		return err
	})
	return func(i int) {
		commit(func(tx *publish.Tx) error {
			_, err := tx.UpdateSet(address(target, i))
			return err
		})
	}
}

func apex(of string) []zone.RecordSet {
	n := dnsname.MustParse(of)
	soa := zone.SOA{MName: n, RName: n, Refresh: 1, Retry: 1, Expire: 1, Minimum: 1}
	return []zone.RecordSet{{Name: n, Type: rr.TypeSOA, Data: []string{soa.Data()}},
		{Name: n, Type: rr.TypeNS, Data: []string{n.Wire()}}}
}

func address(z zone.Zone, i int) zone.RecordSet {
	return zone.RecordSet{Zone: z.ID, Name: name("www.example.net."), Type: rr.TypeA,
		Data: []string{string([]byte{192, 0, byte(i >> 8), byte(i)})}}
}

// BenchmarkFollow measures one change of an address until all n aliases in one zone have it.
func BenchmarkFollow(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			flattened := make(chan int, 1000)
			change := benchPublisher(b, n, flattened)
			for len(flattened) > 0 {
				<-flattened
			}
			for i := 1; b.Loop(); i++ {
				change(i)
				for left := n; left > 0; {
					left -= <-flattened
				}
			}
		})
	}
}

// BenchmarkDerive measures one change of an address with n aliases in one zone, until the change is durable and served.
func BenchmarkDerive(b *testing.B) {
	for _, n := range []int{0, 1, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			change := benchPublisher(b, n, nil)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				change(i)
			}
		})
	}
}

package zone_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestWalk walks zones that were built set by set and at once, with sizes on both sides of every split.
func TestWalk(t *testing.T) {
	apex := dnsname.MustParse("example.org.")
	for _, size := range []int{0, 1, 7, 192, 193, 3000} {
		b := zone.NewNodes(uuid.New(), apex).Edit()
		for i := range size {
			n := dnsname.MustParse(fmt.Sprintf("h%d.ent%d.example.org.", i, i%7))
			b.Put(rr.NewSet(n, rr.TypeA, 60, string([]byte{192, 0, 2, byte(i)}), string([]byte{192, 0, 3, byte(i)})))
			b.Put(rr.NewSet(n, rr.TypeTXT, 60, "\x01x"))
		}
		seen := map[string]int{}
		last, closed := "", map[string]bool{}
		z := b.Done()
		z.Walk(func(labels string, r zone.Records) bool {
			seen[fmt.Sprint(labels, r.Type)] += r.Count
			if labels != last {
				closed[last] = true
				if closed[labels] {
					t.Fatalf("%d names: the sets of one do not stand together", size)
				}
				last = labels
			}
			return true
		})
		if len(seen) != 2*size {
			t.Fatalf("%d names: %d sets were seen", size, len(seen))
		}
		for i := range size {
			n := dnsname.MustParse(fmt.Sprintf("h%d.ent%d.example.org.", i, i%7)).In(apex)
			if seen[fmt.Sprint(n, rr.TypeA)] != 2 || seen[fmt.Sprint(n, rr.TypeTXT)] != 1 {
				t.Fatalf("%d names: h%d was seen with %d and %d records", size, i, seen[fmt.Sprint(n, rr.TypeA)],
					seen[fmt.Sprint(n, rr.TypeTXT)])
			}
		}
		calls := 0
		if done := z.Walk(func(string, zone.Records) bool { calls++; return calls < 3 }); done != (size < 2) || calls > 3 {
			t.Errorf("%d names: stopped after %d calls, at the end %v", size, calls, done)
		}
	}
}

// TestWalkWhileGrowing walks a zone after each step of its growth.
func TestWalkWhileGrowing(t *testing.T) {
	apex := dnsname.MustParse("example.org.")
	z := zone.NewNodes(uuid.New(), apex)
	const step, most = 500, 24_000
	for size := 0; size < most; size += step {
		b := z.Edit()
		for i := size; i < size+step; i++ {
			b.Put(rr.NewSet(dnsname.MustParse(fmt.Sprintf("h%d.example.org.", i)), rr.TypeA, 60, "abcd"))
		}
		z = b.Done()
		count := 0
		z.Walk(func(string, zone.Records) bool { count++; return true })
		if count != size+step {
			t.Fatalf("%d sets were seen of %d", count, size+step)
		}
	}
}

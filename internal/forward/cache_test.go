package forward_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/rr"
)

// TestCacheBound floods the cache with names that are used once. It stays within its size, and names that are used
// again and again stay in it.
func TestCacheBound(t *testing.T) {
	const size = 64 << 10
	f, n := start(t, forward.Config{CacheSize: size}, replies(t, 0, "--\n"+soa))
	popular := []string{"a.example.org.", "b.example.org.", "c.example.org."}
	for i := range 1000 {
		ask(t, f, fmt.Sprintf("n%d.example.org.", i), dns.TypeA)
		for _, name := range popular {
			ask(t, f, name, dns.TypeA)
		}
	}
	if got := gather(t, f, "cache_bytes", ""); got > size || got < size/2 {
		t.Errorf("cache has %v bytes, want up to %d", got, size)
	}
	if got := gather(t, f, "cache_evictions_total", ""); got < 800 {
		t.Errorf("%v evictions", got)
	}
	asked := map[string]int{}
	for _, a := range n.history() {
		asked[a]++
	}
	for _, name := range popular {
		if got := asked["192.0.2.1 "+name+" A"]; got != 1 {
			t.Errorf("%s was asked for %d times, want 1", name, got)
		}
	}
}

// TestTruncation gives replies little room.
func TestTruncation(t *testing.T) {
	f, _ := start(t, forward.Config{}, replies(t, 0, address))
	for _, name := range []string{"www.example.org.", "localhost."} {
		q := forward.Question{Name: wireName(t, name), Type: rr.TypeA}
		need := len(message(q, 100)) + 16
		for room := need - 16; room <= need; room++ {
			msg := message(q, room)
			got := read(t, msg, f.Exchange(t.Context(), q, msg))
			if got.Truncated != (room < need) || len(got.Answer) != 1 && !got.Truncated || got.Rcode != "NOERROR" {
				t.Errorf("%s in %d bytes of %d: %+v", name, room, need, got)
			}
		}
	}
}

// TestSpelling appends an answer to the question of a client with its own spelling of the name.
func TestSpelling(t *testing.T) {
	f, _ := start(t, forward.Config{}, replies(t, 0, "www.example.org. 300 IN CNAME Mail.Example.org.\n"+
		"mail.example.org. 300 IN A 192.0.2.1"))
	ask(t, f, "www.example.org.", dns.TypeA)
	q := forward.Question{Name: wireName(t, "www.example.org."), Type: rr.TypeA}
	msg := message(q, 512)
	copy(msg[12:], "\x03wWw\x07eXample\x03orG\x00")
	r, ok := f.Cached(q, time.Now(), msg)
	if !ok {
		t.Fatal("not in the cache")
	}
	got := read(t, msg, r).Answer
	// The end of the other name is a pointer into the question.
	want := []string{"wWw.eXample.orG. 300 IN CNAME Mail.Example.orG.", "Mail.Example.orG. 300 IN A 192.0.2.1"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoAllocations checks that cache hits do not allocate: they run in the loop that answers queries, which must not
// wait for the garbage collector.
func TestNoAllocations(t *testing.T) {
	f, q := cached(t)
	msg := message(q, 1232)
	now := time.Now()
	for _, name := range []string{"www.example.org.", "localhost.", "x.onion.", "1.0.0.10.in-addr.arpa.",
		"unknown.example.org."} {
		q.Name = wireName(t, name)
		q.Type = rr.TypeA
		want := name != "unknown.example.org."
		got := testing.AllocsPerRun(100, func() {
			if _, ok := f.Cached(q, now, msg); ok != want {
				t.Fatalf("Cached(%s) = %v", name, ok)
			}
		})
		if got != 0 {
			t.Errorf("Cached(%s) allocates %v times", name, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { f.Allowed(server(1).Addr.Addr()) }); n != 0 {
		t.Errorf("Allowed allocates %v times", n)
	}
}

func cached(t testing.TB) (*forward.Forwarder, forward.Question) {
	f, _ := start(t, forward.Config{}, replies(t, 0, address))
	q := forward.Question{Name: wireName(t, "www.example.org."), Type: rr.TypeA}
	askFor(t, f, q)
	return f, q
}

func BenchmarkCached(b *testing.B) {
	f, q := cached(b)
	for _, name := range []string{"hit", "miss", "local"} {
		b.Run(name, func(b *testing.B) {
			q := q
			switch name {
			case "miss":
				q.Name = wireName(b, "www.example.net.")
			case "local":
				q.Name = wireName(b, "www.example.onion.")
			}
			msg, now := message(q, 1232), time.Now().Add(time.Second)
			b.ReportAllocs()
			for b.Loop() {
				f.Cached(q, now, msg)
			}
		})
	}
}

func BenchmarkExchange(b *testing.B) {
	f, _ := start(b, forward.Config{}, replies(b, 0, "www.example.org. 0 IN A 192.0.2.1"))
	q := forward.Question{Name: wireName(b, "www.example.org."), Type: rr.TypeA}
	msg := message(q, 1232)
	b.ReportAllocs()
	for b.Loop() {
		if r := f.Exchange(b.Context(), q, msg); r.Answers != 1 {
			b.Fatal(r)
		}
	}
}

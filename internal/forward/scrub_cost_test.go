package forward_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
)

// TestScrubLongChain checks that thousands of records after a long chain are not scanned again for each of its steps. A
// scan would show in the allocations for lower-case names.
func TestScrubLongChain(t *testing.T) {
	const records = 1000
	cost := func(steps int) float64 {
		m := new(dns.Msg)
		owner := "www.example.org."
		for i := range steps {
			next := fmt.Sprintf("Step%d.example.org.", i)
			m.Answer = append(m.Answer, record(t, owner+" 0 IN CNAME "+next))
			owner = next
		}
		for i := range records {
			m.Answer = append(m.Answer, record(t, fmt.Sprintf("%s 0 IN A 192.0.%d.%d", owner, i/256, i%256)))
		}
		f, _ := start(t, forward.Config{}, func(_ context.Context, q *dns.Msg) (*dns.Msg, error) {
			r := m.Copy()
			return r.SetReply(q), nil
		})
		q := forward.Question{Name: wireName(t, "www.example.org."), Type: 1}
		return testing.AllocsPerRun(5, func() {
			if r := f.Exchange(t.Context(), q, message(q, 65535)); r.Answers != steps+records {
				t.Fatalf("%d answers, want %d", r.Answers, steps+records)
			}
		})
	}
	if short, long := cost(1), cost(12); long > short+records {
		t.Errorf("%v allocations for a chain of 12, %v for one of 1", long, short)
	}
}

package safeat_test

import (
	"fmt"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// The address of www changed at noon, and had a TTL of one hour before. The result is one hour later, plus two seconds
// for an answer in flight and for caches that count whole seconds.
func ExampleCompute() {
	noon := time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)
	report := safeat.Compute(safeat.Facts{Now: noon, Links: []safeat.Link{{
		Owner: dnsname.MustParse("www.example.org"), Type: rr.TypeA, Role: safeat.Data, TTL: safeat.Seconds(300),
		Seen: noon, Since: noon, Before: []safeat.Version{{Until: noon, TTL: safeat.Seconds(3600)}},
	}}})
	fmt.Println(report.At.Format(time.TimeOnly))
	// Output: 13:00:02
}

package gather_test

import (
	"context"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/simnet"
)

// clocked is a registry that reports its time.
type clocked struct{ ahead time.Duration }

func (c clocked) Lookup(_ context.Context, domain dnsname.Name) (registry.Registration, error) {
	now := time.Now()
	return registry.Registration{Domain: domain.String(), State: registry.Registered, Asked: []registry.Attempt{{At: now,
		Took: 100 * time.Millisecond, Clock: now.Add(-c.ahead).Truncate(time.Second)}}}, nil
}

func TestSkew(t *testing.T) {
	for _, ahead := range []time.Duration{0, 90 * time.Second, -time.Hour} {
		run(t, nil, func(t *testing.T, _ *simnet.Net, g *gather.Gatherer) {
			g.Registry = clocked{ahead}
			f, err := g.Scan(t.Context(), "example.test")
			if err != nil {
				t.Fatal(err)
			}
			if d := f.Vantage.Skew - ahead; !f.Vantage.SkewKnown || d.Abs() > time.Second {
				t.Errorf("%v ahead: skew %v, known %v", ahead, f.Vantage.Skew, f.Vantage.SkewKnown)
			}
		})
	}
	run(t, nil, func(t *testing.T, _ *simnet.Net, g *gather.Gatherer) {
		if f, err := g.Scan(t.Context(), "example.test"); err != nil || f.Vantage.SkewKnown {
			t.Errorf("without a registry: %+v, %v", f.Vantage, err)
		}
	})
}

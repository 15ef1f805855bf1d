package gather_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/simnet"
)

// TestClaims is an alias to a service whose page says that nobody has the name, that somebody has, or nothing.
func TestClaims(t *testing.T) {
	more := map[string]string{
		"192.0.2.1": "github.io. 60 NS ns.other.test.", "192.0.2.2": "github.io. 60 NS ns.other.test.",
		"192.0.2.21": "shop.example.test. 60 CNAME shop.github.io.", "192.0.2.22": "shop.example.test. 60 CNAME shop.github.io.",
		"192.0.2.31": "zone github.io.\ngithub.io. 60 NS ns.other.test.\nshop.github.io. 60 A 203.0.113.9",
	}
	for _, tt := range []struct {
		page string
		err  error
		want explain.Fact
	}{
		{"<h1>404</h1> There isn't a GitHub Pages site here.", nil, explain.Yes},
		{"<h1>Welcome</h1>", nil, explain.No},
		{"", errors.New("refused"), explain.Unknown},
	} {
		run(t, more, func(t *testing.T, _ *simnet.Net, g *gather.Gatherer) {
			asked := 0
			g.Fetch = func(_ context.Context, name dnsname.Name, at netip.Addr) (int, string, error) {
				asked++
				if name.String() != "shop.example.test." || at.String() != "203.0.113.9" {
					t.Errorf("asked for %s at %s", name, at)
				}
				return 404, tt.page, tt.err
			}
			f, err := g.Analyze(t.Context(), "shop.example.test", nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Claims) != 1 || f.Claims[0].Free != tt.want || f.Claims[0].Service != "GitHub Pages" || asked != 1 {
				t.Errorf("%q: claims %+v, asked %d times", tt.page, f.Claims, asked)
			}
			if f, err = g.Analyze(t.Context(), "www.example.test", nil); err != nil || len(f.Claims) != 0 || asked != 1 {
				t.Errorf("without an alias to a service: %+v, asked %d times, %v", f.Claims, asked, err)
			}
		})
	}
}

func TestOverHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "elsewhere.test" {
			http.Redirect(w, r, "http://other.test/", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("host " + r.Host))
	}))
	defer server.Close()
	dialed := []string{}
	fetch := gather.OverHTTP(func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed = append(dialed, address)
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	})
	at := netip.MustParseAddr("203.0.113.9")
	if status, body, err := fetch(t.Context(), dnsname.MustParse("www.example.test"), at); status != 404 || body != "host www.example.test" || err != nil {
		t.Errorf("%d %q %v", status, body, err)
	}
	if status, _, err := fetch(t.Context(), dnsname.MustParse("elsewhere.test"), at); status != http.StatusFound || err != nil {
		t.Errorf("a redirect: %d %v", status, err)
	}
	for _, d := range dialed {
		if d != "203.0.113.9:80" {
			t.Errorf("went to %s", d)
		}
	}
}

// clocked is a registry that says what time it is.
type clocked struct{ ahead time.Duration }

func (c clocked) Lookup(_ context.Context, domain dnsname.Name) (registry.Registration, error) {
	now := time.Now()
	return registry.Registration{Domain: domain.String(), State: registry.Registered, Asked: []registry.Attempt{{At: now, Took: 100 * time.Millisecond, Clock: now.Add(-c.ahead).Truncate(time.Second)}}}, nil
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

package resolvers_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain/resolvers"
)

func TestLoad(t *testing.T) {
	l := resolvers.Load()
	if l.Date == "" || !strings.Contains(l.String(), l.Date) {
		t.Errorf("the date is not shown: %s", l)
	}
	if len(l.Resolvers) < 28 {
		t.Errorf("%s", l)
	}
	seen := map[netip.Addr]string{}
	voters, regions := 0, map[string]int{}
	for _, r := range l.Resolvers {
		for _, a := range slices.Concat(r.V4, r.V6) {
			if before, twice := seen[a]; twice {
				t.Errorf("%v is of %s and of %s", a, before, r.ID)
			}
			seen[a] = r.ID
			if !a.IsGlobalUnicast() || a.IsPrivate() || slices.Contains(r.V4, a) != a.Is4() {
				t.Errorf("%s: %v", r.ID, a)
			}
		}
		if r.Operator == "" || r.Region == "" || !strings.HasPrefix(r.Checked, "confirmed") && r.Checked != "memory" {
			t.Errorf("%s lacks something: %+v", r.ID, r)
		}
		if r.Country == "CN" && (r.Vote || r.Reason == "") || r.Filter && r.Vote {
			t.Errorf("%s votes", r.ID)
		}
		if r.Vote {
			voters++
			regions[r.Region]++
		}
	}
	if voters < 20 || len(regions) < 4 {
		t.Errorf("%d vote, of %v", voters, regions)
	}
}

func TestFind(t *testing.T) {
	l := resolvers.Load()
	for _, what := range []string{"google", "8.8.4.4", "2001:4860:4860:0::8888"} {
		if r, ok := l.Find(what); !ok || r.ID != "google" {
			t.Errorf("Find(%q) = %+v, %t", what, r, ok)
		}
	}
	if r, ok := l.Find("192.0.2.1"); ok {
		t.Errorf("found %+v", r)
	}
}

func TestServers(t *testing.T) {
	l := resolvers.Load()
	tests := []struct{ id, want string }{
		{"quad101", "101.101.101.101:53 101.102.103.104:53 [2001:de4::101]:53 [2001:de4::102]:53"},
		{"mullvad", "tls://194.242.2.2:853#dns.mullvad.net tls://[2a07:e340::2]:853#dns.mullvad.net"},
		{"iij", ""},
	}
	for _, tt := range tests {
		r, _ := l.Find(tt.id)
		var got []string
		for _, s := range r.Servers() {
			got = append(got, s.String())
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.id, got, tt.want)
		}
	}
}

func TestLoadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.txt")
	if err := os.WriteFile(path,
		[]byte("# ours\nresolver office\n v4 192.0.2.53\n max-ttl 600\n max-negative-ttl 60\n\nresolver guest\n\tv6 "+
			"2001:db8::53\n\tfilters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := resolvers.LoadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	office, guest := l.Resolvers[0], l.Resolvers[1]
	if office.ID != "office" || !office.Vote || office.MaxTTL != 600 || office.MaxNegativeTTL != 60 || guest.Vote ||
		!guest.Filter || l.Date != "" {
		t.Errorf("%+v", l)
	}
	if got, want := l.String(), "2 resolvers ("+path+", undated)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := resolvers.LoadFile(path + "x"); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("err = %v", err)
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "f: the list has no resolver"},
		{"date today", `f:1: "today" is not a date`},
		{"v4 192.0.2.1", `f:1: "v4" must come after`},
		{"resolver A", `f:1: "A" is not an ID`},
		{"resolver", `f:1: "" is not an ID`},
		{"resolver a\nv4 192.0.2.1\nresolver a", "f:3: a is a duplicate of line 1"},
		{"resolver a\nv4 192.0.2.1\n\nresolver b\nv4 192.0.2.2 192.0.2.1", "f:5: 192.0.2.1 is a duplicate of line 2"},
		{"resolver a\nv4 192.0.2.256", `f:2: "192.0.2.256" is not an IP address`},
		{"resolver a\nv4 2001:db8::1", "f:2: 2001:db8::1 has the wrong family"},
		{"resolver a\nv4", "f:2: v4 and v6 need at least one address"},
		{"resolver a\nresolver b", "f:2: resolver a has no address"},
		{"resolver a", "f:1: resolver a has no address"},
		{"resolver a\nv4 192.0.2.1\nencrypted", "f:3: resolver a is encrypted"},
		{"resolver a\ncolour red", `f:2: "colour" is not a setting; use date`},
		{"resolver a\necs yes", `f:2: "ecs" takes no value`},
		{"resolver a\noperator", `f:2: "operator" needs a value`},
		{"resolver a\ncountry Germany", `f:2: "Germany" is not a country code`},
		{"resolver a\ndoh http://x", `f:2: "http://x" is not a URL`},
		{"resolver a\ndot tls://x", `f:2: "tls://x" is not a server name`},
		{"resolver a\nmax-ttl 1h", `f:2: "1h" is not a number`},
	}
	for _, tt := range tests {
		if _, err := resolvers.Parse("f", tt.text); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Parse(%q): %v, want %s", tt.text, err, tt.want)
		}
	}
}

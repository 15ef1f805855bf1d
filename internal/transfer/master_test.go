package transfer

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestLaterNAT64 names masters before the operator sets a NAT64 prefix. Masters that the namer must not choose are not
// queried any more.
func TestLaterNAT64(t *testing.T) {
	for _, tt := range []struct {
		master  string
		by      zone.Namer
		queried bool
	}{
		{"2a0f:64::9.9.9.9", zone.Tenant, true},
		{"2a0f:64::192.0.2.1", zone.Tenant, true},
		{"2a0f:64::10.1.2.3", zone.Tenant, false},
		{"2a0f:64::169.254.169.254", zone.Tenant, false},
		{"10.1.2.3", zone.Administrator, true},
		{"2a0f:64::169.254.169.254", zone.Administrator, true},
		{"2a0f:64::10.1.2.3", zone.UnknownNamer, true}, // rows of older versions
		{"2a0f:64::169.254.169.254", zone.UnknownNamer, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &master{}
			m.set(7, a("www", "192.0.2.1"))
			g := newTestEnv(t, m)
			time.Sleep(time.Second)
			before, _ := m.seen()
			g.opts.Special = specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}
			g.zone.Masters, g.zone.MastersBy = []string{tt.master}, tt.by
			err := g.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
				_, err := tx.UpdateZone(g.zone)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			g.Refresh(g.zone.ID, false)
			time.Sleep(time.Second)
			after, _ := m.seen()
			reason := g.State(g.zone.ID).Reason
			if (after > before) != tt.queried || strings.Contains(reason, "only an administrator may name it") == tt.queried {
				t.Errorf("master %s of namer %d: %d queries; %q", tt.master, tt.by, after-before, reason)
			}
		})
	}
}

func TestParseMaster(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1":                            "192.0.2.1:53",
		"[2001:db8::1]":                        "[2001:db8::1]:53",
		"192.0.2.1:5353":                       "192.0.2.1:5353",
		"::ffff:192.0.2.1":                     "192.0.2.1:53",
		"tls://192.0.2.1":                      "tls://192.0.2.1:853",
		"tls://192.0.2.1#ns1.example.org":      "tls://192.0.2.1:853#ns1.example.org",
		"tls://192.0.2.1:8853#ns1.example.org": "tls://192.0.2.1:8853#ns1.example.org",
		"tls://[2001:db8::1]#ns1.example.org":  "tls://[2001:db8::1]:853#ns1.example.org",
		"tls://ns1.example.org":                "",
		"tls://192.0.2.1:0":                    "",
		"tls://192.0.2.1#":                     "",
		"tcp://192.0.2.1":                      "",
		"ns1.example.org":                      "",
		"192.0.2.1#ns1.example.org":            "",
	} {
		got, err := ParseMaster(text)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%s: %v, %v; want %s", text, got, err, want)
		}
	}
}

package lab_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/registry"
)

// registrations are the expected results of lookups in one line: state, source, kinds of queries, statuses and name
// servers.
var registrations = []struct{ domain, want string }{
	{"example.com", "registered rdap bootstrap+rdap clientTransferProhibited,clientDeleteProhibited " +
		"ns1.dnshost.net.,ns2.dnshost.net."},
	{"example.org", "registered whois whois clientTransferProhibited ns1.dnshost.net.,ns2.dnshost.net."},
	{"signed.test", "registered rdap rdap clientTransferProhibited ns1.signed.test.,ns2.signed.test. signed"},
	{"hold.com", "registered rdap rdap clientHold,clientTransferProhibited ns1.dnshost.net.,ns2.dnshost.net."},
	{"unlocked.org", "registered whois whois ok ns1.dnshost.net.,ns2.dnshost.net."},
	{"undelegated.test", "registered rdap rdap clientTransferProhibited,inactive "},
	{"unregistered.com", "free rdap rdap  "},
	{"hesitant.com", "registered rdap rdap clientTransferProhibited ns1.dnshost.net.,ns2.dnshost.net."},
	{"busy.com", "registered whois rdap+whois clientTransferProhibited ns1.dnshost.net.,ns2.dnshost.net."},
}

func describe(r registry.Registration) string {
	var asked, statuses, ns []string
	for _, a := range r.Asked {
		if !slices.Contains(asked, a.Kind) {
			asked = append(asked, a.Kind)
		}
	}
	for _, s := range r.Statuses {
		statuses = append(statuses, s.Code)
	}
	for _, n := range r.Nameservers {
		ns = append(ns, fmt.Sprint(n.Name))
	}
	out := fmt.Sprint(r.State, " ", r.Source, " ", strings.Join(asked, "+"), " ", strings.Join(statuses, ","), " ",
		strings.Join(ns, ","))
	if r.DNSSEC.Signed {
		out += " signed"
	}
	return out
}

func TestRegistries(t *testing.T) {
	check := func(t *testing.T, l *lab.Lab) {
		t.Helper()
		c := &registry.Client{Dial: l.Dial, Roots: l.Roots}
		for _, tt := range registrations {
			r, err := c.Lookup(t.Context(), dnsname.MustParse(tt.domain))
			if got := describe(r); got != tt.want || err != nil {
				t.Errorf("%s: %s, %v\nwant %s", tt.domain, got, err, tt.want)
			}
		}
	}
	t.Run("sockets", func(t *testing.T) { check(t, start(t, lab.Options{})) })
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			l, err := lab.Start(ctx, lab.Options{Memory: true})
			if err != nil {
				t.Fatal(err)
			}
			check(t, l)
			cancel()
			if err := l.Wait(); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Minute) // until idle connections are closed
		})
	})
}

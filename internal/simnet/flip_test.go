package simnet_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

func TestFlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := tree("", "")
		www := dnsname.MustParse("www.a.test.")
		flip := func(name dnsname.Name, data ...string) int {
			t.Helper()
			n, err := net.Flip(name, rr.TypeA, data)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		if n := flip(www, "203.0.113.50", "203.0.113.51"); n != 3 {
			t.Errorf("changed at %d servers, want 3", n)
		}
		want := "NOERROR+aa, www.a.test. 1000000 A 203.0.113.50, www.a.test. 1000000 A 203.0.113.51"
		for _, server := range []string{"192.0.2.21", "192.0.2.22"} {
			if got := askWith(t, net, server, queryOptions{}, "www.a.test.", "A"); got != want {
				t.Errorf("%s: got %s, want %s", server, got, want)
			}
			if got := askWith(t, net, server, queryOptions{}, "a.test.", "SOA"); !strings.HasSuffix(got, "SOA 2") {
				t.Errorf("%s: got %s, want serial 2", server, got)
			}
		}
		flip(www)
		if got := askWith(t, net, "192.0.2.21", queryOptions{}, "www.a.test.", "A"); !strings.HasPrefix(got, "NXDOMAIN") {
			t.Errorf("got %s", got)
		}
		if n := flip(dnsname.MustParse("new.test."), "203.0.113.1"); n != 1 {
			t.Errorf("changed at %d servers of test., want 1", n)
		}
		if _, err := net.Flip(www, rr.TypeA, []string{"not an address"}); err == nil {
			t.Error("an invalid address was accepted")
		}
		alias := dnsname.MustParse("alias.a.test.")
		if _, err := net.Flip(alias, rr.TypeCNAME, []string{"www.a.test."}); err != nil {
			t.Error(err)
		}
		if _, err := net.Flip(alias, rr.TypeA, []string{"203.0.113.1"}); err == nil {
			t.Error("an address for a name with a CNAME was accepted")
		}
		if _, err := net.Flip(dnsname.MustParse("a.lost.test."), rr.TypeA, nil); err == nil {
			t.Error("a name below a delegation without servers was accepted")
		}
	})
}

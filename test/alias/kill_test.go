package alias

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// TestKill kills servers while aliases are flattened, created and deleted. After a restart each ALIAS has all of its
// flattened record sets, and nothing is left of deleted ones.
func TestKill(t *testing.T) {
	t.Parallel()
	const cycles, aliases = 12, 40
	rnd := rand.New(rand.NewPCG(1, 1))
	a := newAuthority(t)
	s := startServer(t, a.addr)
	z := s.CreateZone("example.org.")
	address := 0
	nextAddress := func() {
		address++
		a.set(fmt.Sprintf("cdn.example.net. 1 IN A 203.0.%d.%d", address/250, address%250+1),
			fmt.Sprintf("cdn.example.net. 1 IN AAAA 2001:db8::%d", address))
	}
	nextAddress()
	for i := range aliases {
		s.alias(z, fmt.Sprintf("a%d.example.org.", i), "cdn.example.net.")
	}
	flattened := 0
	for range cycles {
		server.Eventually(t, "flattened aliases", func() bool { return s.answer("a0.example.org.", dns.TypeA) != "" })
		var others sync.WaitGroup
		others.Go(func() { churn(s, z) })
		for began, d := time.Now(), 500*time.Millisecond+time.Duration(rnd.IntN(int(time.Second))); time.Since(
			began) < d; time.Sleep(50 * time.Millisecond) {
			nextAddress()
		}
		s.End(syscall.SIGKILL)
		others.Wait()
		s.Restart()
		flattened += checkZone(t, s, z)
	}
	if flattened < cycles*aliases {
		t.Errorf("only %d aliases were seen flattened", flattened)
	}
}

// churn creates and deletes an ALIAS until the server is gone.
func churn(s *node, zone string) {
	for i := 0; ; i++ {
		code, out, err := s.do("POST", zone+"/recordsets",
			fmt.Sprintf(`{"name":"c%d.example.org.","type":"ALIAS","records":["cdn.example.net."]}`, i%5))
		if err != nil {
			return
		}
		if code/100 != 2 {
			continue
		}
		if _, _, err := s.do("DELETE", zone+"/recordsets/"+out["id"].(string), ""); err != nil {
			return
		}
	}
}

// checkZone compares a zone transfer with the aliases that the API lists, and returns how many have addresses. The
// aliases of the zone are flattened in the same commits, so all must have the same addresses, of both families.
func checkZone(t *testing.T, s *node, zone string) int {
	t.Helper()
	// Lookups begin when the server starts. They change the whole zone at once, so one transfer is one state.
	records := s.transfer("example.org.")
	have := map[string][]string{}
	for _, rec := range records {
		switch r := rec.(type) {
		case *dns.A:
			have[r.Hdr.Name] = append(have[r.Hdr.Name], r.A.String())
		case *dns.AAAA:
			have[r.Hdr.Name] = append(have[r.Hdr.Name], r.AAAA.String())
		}
	}
	listed := map[string]bool{}
	for _, item := range s.must("GET", zone+"/recordsets?type=ALIAS&limit=1000", "")["recordsets"].([]any) {
		listed[item.(map[string]any)["name"].(string)] = true
	}
	one := ""
	for name, addrs := range have {
		text := strings.Join(addrs, " ")
		// flattened with the addresses known at creation; the others may get them one commit later
		if strings.HasPrefix(name, "c") {
			text = one
		}
		if one == "" {
			one = text
		}
		if !listed[name] || len(addrs) != 2 || text != one {
			t.Errorf("%s has %v, listed %v, others have %s", name, addrs, listed[name], one)
		}
	}
	for name := range listed {
		if strings.HasPrefix(name, "a") && len(have[name]) == 0 {
			t.Errorf("%s has lost its addresses", name)
		}
	}
	return len(have)
}

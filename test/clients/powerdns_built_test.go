//go:build built

package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// The clients of this file are built from source. That takes longer than all tests of the package, so that only
// `make test-all` builds them and runs these tests.

// TestExternalDNS creates, changes and deletes names with the provider of external-dns, beside its TXT records.
func TestExternalDNS(t *testing.T) {
	program := must[string](t)(filepath.Abs("../../.cache/bin/external-dns"))
	s := start(t)
	s.CreateZone("example.org.")
	apply := func(plan string, want ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = environment("PDNS_SERVER="+s.HTTP, "PDNS_API_KEY="+s.Token, "DOMAIN=example.org")
		cmd.Stdin = strings.NewReader(plan)
		var log strings.Builder
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", plan, err, log.String())
		}
		var found []struct {
			DNSName string   `json:"dnsName"`
			Targets []string `json:"targets"`
			Type    string   `json:"recordType"`
		}
		if err := json.Unmarshal(out, &found); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		var got []string
		for _, e := range found {
			if e.DNSName != "example.org" {
				got = append(got, e.DNSName+" "+e.Type+" "+strings.Join(slices.Sorted(slices.Values(e.Targets)), " "))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: the provider finds %q, want %q", plan, got, want)
		}
	}
	const (
		owner = `{"dnsName":"a-www.example.org","recordType":"TXT","targets":["\"heritage=external-dns\""]}`
		first = `{"dnsName":"www.example.org","recordType":"A","recordTTL":60,"targets":["192.0.2.1"]}`
		next  = `{"dnsName":"www.example.org","recordType":"A","recordTTL":60,"targets":["192.0.2.2","192.0.2.3"]}`
		mark  = `a-www.example.org TXT "heritage=external-dns"`
	)
	apply(`{"create":[`+first+`,`+owner+`]}`, mark, "www.example.org A 192.0.2.1")
	apply(`{"updateOld":[`+first+`],"updateNew":[`+next+`]}`, mark, "www.example.org A 192.0.2.2 192.0.2.3")
	if r := s.Ask("www.example.org.", dns.TypeA); len(r.Answer) != 2 {
		t.Errorf("DNS has %v", r.Answer)
	}
	apply(`{"delete":[` + next + `,` + owner + `]}`)
}

// TestDNSControl brings a zone to the state of a configuration with dnscontrol. A second run has nothing to change.
func TestDNSControl(t *testing.T) {
	program := must[string](t)(filepath.Abs("../../.cache/bin/dnscontrol"))
	s, dir := start(t), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	creds := write("creds.json", fmt.Sprintf(`{"none": {"TYPE": "NONE"},
		"np": {"TYPE": "POWERDNS", "apiUrl": %q, "apiKey": %q, "serverName": "localhost"}}`, s.HTTP, s.Token))
	config := write("dnsconfig.js", `
var REG = NewRegistrar("none");
var NP = NewDnsProvider("np", {"default_ns": ["ns1.example.net."], "dnssec_on_create": false, "zone_kind": "Native"});
D("example.org", REG, DnsProvider(NP), DefaultTTL(300),
  SOA("@", "ns1.example.net.", "hostmaster.example.org.", 3600, 600, 86400, 300),
  A("www", "192.0.2.1"), AAAA("www", "2001:db8::1"), MX("@", 10, "mail.example.org."), TXT("@", "v=spf1 mx -all"),
  CAA("@", "issue", "ca.test"), SRV("_sip._udp", 0, 5, 5060, "sip.example.org."), ALIAS("apex", "www.example.org."));
`)
	push := func() string {
		return run(t, environment(), program, "push", "--creds", creds, "--config", config)
	}
	first := push()
	if r := s.Ask("www.example.org.", dns.TypeA); len(r.Answer) != 1 {
		t.Errorf("DNS has %v after\n%s", r.Answer, first)
	}
	if second := push(); !strings.Contains(second, "Done. 0 corrections.") {
		t.Errorf("the second run changes the zone again:\n%s", second)
	}
	write("dnsconfig.js", strings.Replace(string(must[[]byte](t)(os.ReadFile(config))), "192.0.2.1", "192.0.2.2", 1))
	push()
	if r := s.Ask("www.example.org.", dns.TypeA); !slices.ContainsFunc(r.Answer, func(rr dns.RR) bool {
		return strings.Contains(rr.String(), "192.0.2.2")
	}) {
		t.Errorf("after a change DNS has %v", r.Answer)
	}
}

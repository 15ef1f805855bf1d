package externaldns

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"sigs.k8s.io/external-dns/endpoint"
	settings "sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider"
	"sigs.k8s.io/external-dns/provider/rfc2136"
	"sigs.k8s.io/external-dns/provider/webhook"
	"sigs.k8s.io/external-dns/registry"
	"sigs.k8s.io/external-dns/registry/txt"

	"github.com/nameplane/nameplane/test/pages"
	"github.com/nameplane/nameplane/test/server"
)

const (
	page        = "docs/how-to/external-dns.md"
	defaultPool = "794ccc2c-d751-44fe-b57f-8894c9f5c842" // that of Designate
)

// TestPage uses the arguments of the how-to page with all of external-dns except its sources, which need a cluster:
// flags, provider, registry and planner. A name is created, gets another address, and is deleted.
func TestPage(t *testing.T) {
	s := server.Start(t, server.Options{Dir: server.Dir(t), Config: server.Listen +
		"externaldns: {listen: '127.0.0.1:0', token_file: data/admin.token}\n"})
	s.CreateZone("example.org.")
	const secret = "c2VjcmV0IGZvciB0aGlzIHRlc3QgYW5kIG5vdGhpbmcgZWxzZQ=="
	s.Must("POST", "/v2/tsigkeys", map[string]any{"name": "external-dns", "algorithm": "hmac-sha256", "secret": secret,
		"scope": "POOL", "resource_id": defaultPool, "zones": []string{filepath.Base(s.CreateZone("example.net.")),
			filepath.Base(s.CreateZone("example.com."))}}, nil)
	t.Setenv("EXTERNAL_DNS_RFC2136_TSIG_SECRET", secret)
	host, port, err := net.SplitHostPort(s.DNS[0])
	if err != nil {
		t.Fatal(err)
	}
	args := arguments(t)
	for _, tt := range []struct {
		provider string
		zones    []string
		open     func(context.Context, *settings.Config, *endpoint.DomainFilter) (provider.Provider, error)
		here     *strings.Replacer // replaces the addresses of the page with those of the server
	}{
		{"webhook", []string{"example.org"}, webhook.New, strings.NewReplacer("http://127.0.0.1:8888", s.ExternalDNS)},
		{"rfc2136", []string{"example.net", "example.com"}, rfc2136.New,
			strings.NewReplacer("host=127.0.0.1", "host="+host, "port=5300", "port="+port)},
	} {
		t.Run(tt.provider, func(t *testing.T) {
			cfg := settings.NewConfig()
			if err := cfg.ParseFlags(strings.Split(tt.here.Replace(strings.Join(args[tt.provider], "\n")), "\n")); err != nil {
				t.Fatal(err)
			}
			p, err := tt.open(t.Context(), cfg, endpoint.NewDomainFilter(cfg.DomainFilter))
			if err != nil {
				t.Fatal(err)
			}
			owned, err := txt.New(cfg, p)
			if err != nil {
				t.Fatal(err)
			}
			lifeOfNames(t, s, controller{cfg, owned}, tt.zones)
		})
	}
}

// arguments returns the arguments of the page for each provider.
func arguments(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, b := range pages.Blocks(t, "../../..", page) {
		var args []string
		for line := range strings.Lines(b.Text) {
			if arg, ok := strings.CutPrefix(strings.TrimSpace(line), "- --"); ok && b.Lang == "yaml" {
				args = append(args, "--"+arg)
				if name, ok := strings.CutPrefix(arg, "provider="); ok {
					out[name] = nil
				}
			}
		}
		for name := range out {
			if out[name] == nil {
				out[name] = args
			}
		}
	}
	return out
}

// controller does the loop of external-dns.
type controller struct {
	cfg      *settings.Config
	registry registry.Registry
}

// reconcile makes the zone have a set of endpoints, and reports whether it changed something.
func (c controller) reconcile(t *testing.T, desired ...*endpoint.Endpoint) bool {
	t.Helper()
	current, err := c.registry.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	adjusted, err := c.registry.AdjustEndpoints(desired)
	if err != nil {
		t.Fatal(err)
	}
	filter := endpoint.MatchAllDomainFilters{endpoint.NewDomainFilter(c.cfg.DomainFilter), c.registry.GetDomainFilter()}
	p := (&plan.Plan{Current: current, Desired: adjusted, OwnerID: c.registry.OwnerID(), DomainFilter: filter,
		Policies: []plan.Policy{plan.Policies[c.cfg.Policy]}, ManagedRecords: c.cfg.ManagedDNSRecordTypes}).Calculate()
	if !p.Changes.HasChanges() {
		return false
	}
	if err := c.registry.ApplyChanges(t.Context(), p.Changes); err != nil {
		t.Fatal(err)
	}
	return true
}

// lifeOfNames creates a name and an apex record in each zone, changes the addresses of the names, and deletes
// everything. After each step, another loop has nothing to do.
func lifeOfNames(t *testing.T, s *server.Server, c controller, zones []string) {
	t.Helper()
	for _, address := range []string{"192.0.2.10", "192.0.2.11"} {
		var want []*endpoint.Endpoint
		for _, zone := range zones {
			want = append(want, endpoint.NewEndpointWithTTL("web."+zone, "A", 60, address),
				endpoint.NewEndpoint(zone, "A", "192.0.2.1"))
		}
		if !c.reconcile(t, want...) {
			t.Errorf("the loop for %s changes nothing", address)
		}
		if c.reconcile(t, want...) {
			t.Errorf("a second loop for %s has changes", address)
		}
		for _, zone := range zones {
			reply := s.Ask("web."+zone+".", dns.TypeA)
			if len(reply.Answer) != 1 || reply.Answer[0].(*dns.A).A.String() != address ||
				reply.Answer[0].Header().Ttl != 60 {
				t.Errorf("web.%s A = %v, want %s with the TTL 60", zone, reply.Answer, address)
			}
			if owner := s.Ask("a-owner.web."+zone+".", dns.TypeTXT); len(owner.Answer) != 1 {
				t.Errorf("the ownership record: %v", owner)
			}
		}
	}
	c.reconcile(t)
	for _, zone := range zones {
		for _, name := range []string{"web." + zone + ".", "a-owner.web." + zone + ".", "a-owner." + zone + "."} {
			if reply := s.Ask(name, dns.TypeA); reply.Rcode != dns.RcodeNameError {
				t.Errorf("%s after the deletion: %v", name, reply)
			}
		}
	}
}

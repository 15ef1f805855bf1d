package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/quotas"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/recordsets"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/transfer/accept"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/transfer/request"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/tsigkeys"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/zones"
	"github.com/gophercloud/gophercloud/v2/pagination"
	"github.com/miekg/dns"
)

// gopher logs in by password and finds the DNS service in the catalog.
func (s *node) gopher(t *testing.T, user, password, project string) *gophercloud.ServiceClient {
	t.Helper()
	provider, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.HTTP + "/v3",
		Username: user, Password: password, DomainName: "Default", TenantName: project})
	if err != nil {
		t.Fatalf("log in as %s: %v", user, err)
	}
	c, err := openstack.NewDNSV2(provider, gophercloud.EndpointOpts{Region: "RegionOne"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must returns a function that fails the test on an error and returns the value otherwise.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func gone(t *testing.T, err error) {
	t.Helper()
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("after the delete: %v, want 404", err)
	}
}

func TestGophercloud(t *testing.T) {
	s := start(t)
	c := s.gopher(t, "admin", s.Token, "admin")
	t.Run("zones", func(t *testing.T) { gopherZones(t, s, c) })
	t.Run("recordsets", func(t *testing.T) { gopherRecordSets(t, s, c) })
	t.Run("sent", func(t *testing.T) { gopherSent(t, s, c) })
	t.Run("many", func(t *testing.T) { gopherMany(t, c) })
	t.Run("quotas", func(t *testing.T) { gopherQuotas(t, c) })
	t.Run("tsigkeys", func(t *testing.T) { gopherKeys(t, c) })
	t.Run("transfer", func(t *testing.T) { gopherTransfer(t, s, c) })
	t.Run("shares", func(t *testing.T) { gopherShares(t, c) })
}

func gopherZones(t *testing.T, s *node, c *gophercloud.ServiceClient) {
	z := must[*zones.Zone](t)(zones.Create(t.Context(), c,
		zones.CreateOpts{Name: "example.org.", Email: "admin@example.org",
			TTL: 7200, Description: "first"}).Extract())
	if z.Status != "PENDING" || z.Action != "CREATE" || z.Serial == 0 || z.TTL != 7200 || z.ProjectID == "" ||
		z.CreatedAt.IsZero() {
		t.Errorf("created %+v", z)
	}
	if soa := s.answer(t, "example.org.", dns.TypeSOA); soa == "" || soa == "REFUSED" {
		t.Errorf("the zone is created and not served: %q", soa)
	}
	_, err := zones.Create(t.Context(), c, zones.CreateOpts{Name: "example.org.", Email: "admin@example.org"}).Extract()
	if !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		t.Errorf("created twice: %v, want 409", err)
	}
	text := "second"
	z = must[*zones.Zone](t)(zones.Update(t.Context(), c, z.ID,
		zones.UpdateOpts{TTL: 600, Email: "new@example.org", Description: &text}).Extract())
	got := must[*zones.Zone](t)(zones.Get(t.Context(), c, z.ID).Extract())
	if got.TTL != 600 || got.Email != "new@example.org" || got.Description != "second" || got.UpdatedAt.IsZero() ||
		got.Status != "ACTIVE" || got.Action != "NONE" {
		t.Errorf("updated %+v", got)
	}
	if err := zones.Delete(t.Context(), c, z.ID).Err; err != nil {
		t.Fatal(err)
	}
	_, err = zones.Get(t.Context(), c, z.ID).Extract()
	gone(t, err)
	s.mustAnswer(t, "example.org.", dns.TypeSOA, "REFUSED")
}

func gopherRecordSets(t *testing.T, s *node, c *gophercloud.ServiceClient) {
	z := must[*zones.Zone](t)(zones.Create(t.Context(), c,
		zones.CreateOpts{Name: "example.net.", Email: "admin@example.net"}).Extract())
	r := must[*recordsets.RecordSet](t)(recordsets.Create(t.Context(), c, z.ID,
		recordsets.CreateOpts{Name: "www.example.net.",
			Type: "A", TTL: 60, Records: []string{"192.0.2.1"}}).Extract())
	s.mustAnswer(t, "www.example.net.", dns.TypeA, "192.0.2.1")
	ttl := 90
	must[*recordsets.RecordSet](t)(recordsets.Update(t.Context(), c, z.ID, r.ID,
		recordsets.UpdateOpts{TTL: &ttl, Records: []string{"192.0.2.2"}}).Extract())
	s.mustAnswer(t, "www.example.net.", dns.TypeA, "192.0.2.2")
	got := must[*recordsets.RecordSet](t)(recordsets.Get(t.Context(), c, z.ID, r.ID).Extract())
	if r.Status != "PENDING" || got.TTL != 90 || len(got.Records) != 1 || got.ZoneName != "example.net." ||
		got.Status != "ACTIVE" {
		t.Errorf("updated %+v", got)
	}
	if err := recordsets.Delete(t.Context(), c, z.ID, r.ID).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	_, err := recordsets.Get(t.Context(), c, z.ID, r.ID).Extract()
	gone(t, err)
	s.mustAnswer(t, "www.example.net.", dns.TypeA, "NXDOMAIN")
}

// gopherSent does what the Terraform provider does for a plan: it creates record sets, reads them, and compares their
// names and records with the configuration.
func gopherSent(t *testing.T, s *node, c *gophercloud.ServiceClient) {
	z := must[*zones.Zone](t)(zones.Create(t.Context(), c,
		zones.CreateOpts{Name: "Sent.Example.net.", Email: "admin@example.net"}).Extract())
	if z.Name != "Sent.Example.net." {
		t.Errorf("the zone has the name %q", z.Name)
	}
	for _, want := range []recordsets.CreateOpts{
		{Name: "WWW.sent.example.net.", Type: "A", Records: []string{"192.0.2.9", "192.0.2.1"}},
		{Name: "v6.sent.example.net.", Type: "AAAA", Records: []string{"2001:DB8:0:0::1"}},
		{Name: "ssh.sent.example.net.", Type: "SSHFP", Records: []string{"1 1 " + strings.Repeat("aB", 20)}},
		{Name: "caa.sent.example.net.", Type: "CAA", Records: []string{"0 issue ca.example.net"}},
		{Name: "txt.sent.example.net.", Type: "TXT", Records: []string{"é", `"b"  "a"`}},
		{Name: "naptr.sent.example.net.", Type: "NAPTR", Records: []string{"1 2 S SIP+D2U !^.*$!a! ."}},
	} {
		r := must[*recordsets.RecordSet](t)(recordsets.Create(t.Context(), c, z.ID, want).Extract())
		got := must[*recordsets.RecordSet](t)(recordsets.Get(t.Context(), c, z.ID, r.ID).Extract())
		if got.Name != want.Name || !slices.Equal(got.Records, want.Records) {
			t.Errorf("a second plan changes %s %q to %s %q", got.Name, got.Records, want.Name, want.Records)
		}
	}
	s.mustAnswer(t, "v6.sent.example.net.", dns.TypeAAAA, "2001:db8::1")
	if err := zones.Delete(t.Context(), c, z.ID).Err; err != nil {
		t.Fatal(err)
	}
}

// gopherMany lists more items than fit on a page: zones with the default size, and record sets with the largest.
func gopherMany(t *testing.T, c *gophercloud.ServiceClient) {
	seen := map[string]bool{}
	var last *zones.Zone
	for i := range 45 {
		last = must[*zones.Zone](t)(zones.Create(t.Context(), c,
			zones.CreateOpts{Name: fmt.Sprintf("z%d.test.", i), Email: "admin@example.org"}).Extract())
	}
	pages := must[[]zones.Zone](t)(
		zones.ExtractZones(must[pagination.Page](t)(zones.List(c, zones.ListOpts{Limit: 20}).AllPages(t.Context()))))
	for _, z := range pages {
		if seen[z.ID] {
			t.Errorf("zone %s is there twice", z.Name)
		}
		seen[z.ID] = true
	}
	if len(seen) != 46 { // 45 and example.net
		t.Errorf("%d zones, want 46", len(seen))
	}
	one := must[[]zones.Zone](t)(zones.ExtractZones(must[pagination.Page](t)(zones.List(c,
		zones.ListOpts{Name: "z7.test."}).AllPages(t.Context()))))
	if len(one) != 1 || one[0].Name != "z7.test." {
		t.Errorf("filtered by name: %v", one)
	}

	const many = 1100
	var changes []map[string]any
	for i := range many {
		changes = append(changes, map[string]any{"action": "create", "name": fmt.Sprintf("n%d.%s", i, last.Name), "type": "A",
			"records": []string{"192.0.2.1"}})
	}
	if _, err := c.Post(t.Context(), c.ServiceURL("zones", last.ID, "changes"), map[string]any{"changes": changes}, nil,
		&gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}}); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{0, 1000} {
		names := map[string]bool{}
		all := must[[]recordsets.RecordSet](t)(
			recordsets.ExtractRecordSets(must[pagination.Page](t)(recordsets.ListByZone(c, last.ID,
				recordsets.ListOpts{Limit: limit, Type: "A"}).AllPages(t.Context()))))
		for _, r := range all {
			names[r.Name] = true
		}
		if len(all) != many || len(names) != many {
			t.Errorf("limit %d: %d record sets with %d names, want %d", limit, len(all), len(names), many)
		}
	}
}

func gopherQuotas(t *testing.T, c *gophercloud.ServiceClient) {
	var catalog struct {
		Projects []struct{ ID string }
	}
	if _, err := c.Get(t.Context(), c.IdentityEndpoint+"auth/projects", &catalog, nil); err != nil ||
		len(catalog.Projects) == 0 {
		t.Fatalf("projects: %v", err)
	}
	id := catalog.Projects[0].ID
	n := 500
	must[*quotas.Quota](t)(quotas.Update(t.Context(), c, id, quotas.UpdateOpts{Zones: &n}).Extract())
	if q := must[*quotas.Quota](t)(quotas.Get(t.Context(), c, id).Extract()); q.Zones != 500 {
		t.Errorf("quotas %+v", q)
	}
}

func gopherKeys(t *testing.T, c *gophercloud.ServiceClient) {
	z := must[[]zones.Zone](t)(zones.ExtractZones(must[pagination.Page](t)(zones.List(c,
		zones.ListOpts{Name: "z1.test."}).AllPages(t.Context()))))[0]
	k := must[*tsigkeys.TSIGKey](t)(tsigkeys.Create(t.Context(), c,
		tsigkeys.CreateOpts{Name: "key.example.org", Algorithm: "hmac-sha256",
			Secret: "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", Scope: "ZONE", ResourceID: z.ID}).Extract())
	must[*tsigkeys.TSIGKey](t)(tsigkeys.Update(t.Context(), c, k.ID,
		tsigkeys.UpdateOpts{Name: "new.example.org"}).Extract())
	all := must[[]tsigkeys.TSIGKey](t)(
		tsigkeys.ExtractTSIGKeys(must[pagination.Page](t)(tsigkeys.List(c, tsigkeys.ListOpts{}).AllPages(t.Context()))))
	if len(all) != 1 || all[0].Name != "new.example.org" {
		t.Errorf("keys %+v", all)
	}
	if err := tsigkeys.Delete(t.Context(), c, k.ID).ExtractErr(); err != nil {
		t.Fatal(err)
	}
	_, err := tsigkeys.Get(t.Context(), c, k.ID).Extract()
	gone(t, err)
}

// gopherTransfer transfers a zone to another project, which is then its only owner.
func gopherTransfer(t *testing.T, s *node, c *gophercloud.ServiceClient) {
	s.Run("project", "create", "other")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(s.Run("token", "create", "robot", "--project", "other", "--role", "member", "-o",
		"json")), &made); err != nil {
		t.Fatal(err)
	}
	other := s.gopher(t, "robot", made.Token, "other")
	z := must[*zones.Zone](t)(zones.Create(t.Context(), c,
		zones.CreateOpts{Name: "moved.test.", Email: "admin@example.org"}).Extract())
	_, err := zones.Get(t.Context(), other, z.ID).Extract()
	gone(t, err)
	r := must[*request.TransferRequest](t)(request.Create(t.Context(), c, z.ID,
		request.CreateOpts{Description: "take it"}).Extract())
	if r.Key == "" {
		t.Fatalf("transfer request %+v", r)
	}
	must[*request.TransferRequest](t)(request.Update(t.Context(), c, r.ID,
		request.UpdateOpts{Description: "please"}).Extract())
	a := must[*accept.TransferAccept](t)(accept.Create(t.Context(), other,
		accept.CreateOpts{Key: r.Key, ZoneTransferRequestID: r.ID}).Extract())
	if a.Status != "COMPLETE" {
		t.Errorf("transfer accept %+v", a)
	}
	must[*accept.TransferAccept](t)(accept.Get(t.Context(), other, a.ID).Extract())
	must[*zones.Zone](t)(zones.Get(t.Context(), other, z.ID).Extract())
	_, err = zones.Get(t.Context(), c, z.ID).Extract()
	gone(t, err)
}

// gopherShares shares a zone, and deletes it with its shares by a header.
func gopherShares(t *testing.T, c *gophercloud.ServiceClient) {
	z := must[*zones.Zone](t)(zones.Create(t.Context(), c,
		zones.CreateOpts{Name: "shared.test.", Email: "admin@example.org"}).Extract())
	must[*zones.ZoneShare](t)(zones.Share(t.Context(), c, z.ID, zones.ShareZoneOpts{TargetProjectID: "p3"}).Extract())
	if err := zones.Delete(t.Context(), c, z.ID).Err; !gophercloud.ResponseCodeIs(err, http.StatusBadRequest) {
		t.Errorf("deleted with a share: %v, want 400", err)
	}
	c.MoreHeaders = map[string]string{"X-Designate-Delete-Shares": "true"}
	defer func() { c.MoreHeaders = nil }()
	z = must[*zones.Zone](t)(zones.Delete(t.Context(), c, z.ID).Extract())
	if z.Action != "DELETE" {
		t.Errorf("deleted zone %+v", z)
	}
	_, err := zones.Get(t.Context(), c, z.ID).Extract()
	gone(t, err)
}

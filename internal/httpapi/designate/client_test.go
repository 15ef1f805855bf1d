package designate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/quotas"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/recordsets"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/transfer/accept"
	transfer "github.com/gophercloud/gophercloud/v2/openstack/dns/v2/transfer/request"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/tsigkeys"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/zones"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// direct is a transport without a network.
type direct struct {
	handler http.Handler
	who     httpapi.Caller
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, r.WithContext(httpapi.WithCaller(r.Context(), d.who)))
	res := rec.Result()
	res.Request = r
	return res, nil
}

func (s *server) gophercloud(who httpapi.Caller) *gophercloud.ServiceClient {
	provider := &gophercloud.ProviderClient{TokenID: "x", HTTPClient: http.Client{Transport: direct{s.handler, who}}}
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: "http://dns.test/", ResourceBase: "http://dns.test/v2/"}
}

// The client library that Terraform, lego and others are made with, as it is.
func TestGophercloud(t *testing.T) {
	s := newServer(t, designate.Settings{})
	ctx, a, b := t.Context(), s.gophercloud(alice), s.gophercloud(bob)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	z, err := zones.Create(ctx, a, zones.CreateOpts{Name: "example.org.", Email: "a@example.org", TTL: 60}).Extract()
	must(err)
	text := "new"
	z, err = zones.Update(ctx, a, z.ID, zones.UpdateOpts{TTL: 70, Description: &text}).Extract()
	must(err)
	if z.TTL != 70 || z.Description != "new" || z.CreatedAt.IsZero() || z.UpdatedAt.IsZero() {
		t.Errorf("zone %+v", z)
	}
	for i := range 25 {
		_, err := recordsets.Create(ctx, a, z.ID, recordsets.CreateOpts{Name: fmt.Sprintf("n%d.example.org.", i), Type: "A",
			Records: []string{"192.0.2.1"}}).Extract()
		must(err)
	}
	pages, err := recordsets.ListByZone(a, z.ID, recordsets.ListOpts{Limit: 9}).AllPages(ctx)
	must(err)
	sets, err := recordsets.ExtractRecordSets(pages)
	must(err)
	if len(sets) != 27 {
		t.Fatalf("%d record sets in pages of 9, want 27", len(sets))
	}
	ttl := 5
	r, err := recordsets.Update(ctx, a, z.ID, sets[3].ID, recordsets.UpdateOpts{TTL: &ttl, Records: []string{"192.0.2.9"}}).Extract()
	must(err)
	if r.TTL != 5 || r.Records[0] != "192.0.2.9" {
		t.Errorf("record set %+v", r)
	}
	must(recordsets.Delete(ctx, a, z.ID, sets[3].ID).ExtractErr())
	_, err = zones.Share(ctx, a, z.ID, zones.ShareZoneOpts{TargetProjectID: "p3"}).Extract()
	must(err)
	q, err := quotas.Get(ctx, a, "p1").Extract()
	must(err)
	if q.RecordsetRecords != 20 || q.Zones != -1 {
		t.Errorf("quotas %+v", q)
	}
	_, err = tsigkeys.Create(ctx, s.gophercloud(admin), tsigkeys.CreateOpts{Name: "k", Algorithm: "hmac-sha256",
		Secret: "c2VjcmV0", Scope: "POOL", ResourceID: z.PoolID}).Extract()
	must(err)
	req, err := transfer.Create(ctx, a, z.ID, transfer.CreateOpts{}).Extract()
	must(err)
	_, err = accept.Create(ctx, b, accept.CreateOpts{Key: req.Key, ZoneTransferRequestID: req.ID}).Extract()
	must(err)
	b.MoreHeaders = map[string]string{"X-Designate-Delete-Shares": "true"}
	z, err = zones.Delete(ctx, b, z.ID).Extract()
	must(err)
	if z.Action != "DELETE" {
		t.Errorf("deleted zone %+v", z)
	}
	if _, err = zones.Get(ctx, b, z.ID).Extract(); !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("the deleted zone: %v", err)
	}
}

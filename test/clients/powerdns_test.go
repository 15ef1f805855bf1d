package clients

import (
	"strings"
	"testing"

	joeig "github.com/joeig/go-powerdns/v3"
	"github.com/miekg/dns"
	mittwald "github.com/mittwald/go-powerdns"
	"github.com/mittwald/go-powerdns/apis/search"
	"github.com/mittwald/go-powerdns/apis/zones"
	"github.com/mittwald/go-powerdns/pdnshttp"
)

// TestJoeig manages a zone with the library of external-dns.
func TestJoeig(t *testing.T) {
	s, ctx := start(t), t.Context()
	c := joeig.New(s.HTTP, "localhost", joeig.WithAPIKey(s.Token))
	must[[]joeig.Server](t)(c.Servers.List(ctx))
	z := must[*joeig.Zone](t)(c.Zones.AddMaster(ctx, "example.org", false, "", false, "", "DEFAULT", false,
		[]string{"ns1.example.net."}))
	if *z.Kind != joeig.MasterZoneKind || *z.Name != "example.org." {
		t.Errorf("created %v %v", *z.Kind, *z.Name)
	}
	if err := c.Records.Add(ctx, "example.org", "www.example.org", joeig.RRTypeA, 60, []string{"192.0.2.1"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Records.Change(ctx, "example.org", "www.example.org", joeig.RRTypeA, 60,
		[]string{"192.0.2.1", "192.0.2.2"}); err != nil {
		t.Fatal(err)
	}
	if r := s.Ask("www.example.org.", dns.TypeA); len(r.Answer) != 2 {
		t.Errorf("DNS has %v", r.Answer)
	}
	got := must[[]joeig.RRset](t)(c.Records.Get(ctx, "example.org", "www.example.org", joeig.RRTypePtr(joeig.RRTypeA)))
	if len(got) != 1 || len(got[0].Records) != 2 {
		t.Errorf("record sets %v", got)
	}
	if err := c.Records.Delete(ctx, "example.org", "www.example.org", joeig.RRTypeA); err != nil {
		t.Fatal(err)
	}
	must[*joeig.NotifyResult](t)(c.Zones.Notify(ctx, "example.org"))
	if text := must[joeig.Export](t)(c.Zones.Export(ctx, "example.org")); !strings.Contains(string(text), "\tNS\t") {
		t.Errorf("export %q", text)
	}
	must[[]joeig.Cryptokey](t)(c.Cryptokeys.List(ctx, "example.org"))
	must[*joeig.TSIGKey](t)(c.TSIGKeys.Create(ctx, "transfer", "hmac-sha256", ""))
	must[*joeig.Metadata](t)(c.Metadata.Create(ctx, "example.org", "X-OWNER", []string{"web"}))
	must[[]joeig.Statistic](t)(c.Statistics.List(ctx))
	if err := c.Zones.Change(ctx, "example.org", &joeig.Zone{Account: joeig.String("mail")}); err != nil {
		t.Fatal(err)
	}
	if err := c.Zones.Delete(ctx, "example.org"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Zones.Get(ctx, "example.org"); err == nil || !strings.Contains(err.Error(), "Not Found") {
		t.Errorf("after the delete: %v", err)
	}
}

// TestMittwald manages a zone with the library of dnscontrol.
func TestMittwald(t *testing.T) {
	s, ctx := start(t), t.Context()
	c := must[mittwald.Client](t)(mittwald.New(mittwald.WithBaseURL(s.HTTP), mittwald.WithAPIKeyAuthentication(s.Token)))
	if err := c.Status(); err != nil {
		t.Fatal(err)
	}
	set := zones.ResourceRecordSet{Name: "mail.example.org.", Type: "MX", TTL: 60,
		Records: []zones.Record{{Content: "10 mx.example.org."}}}
	must[*zones.Zone](t)(c.Zones().CreateZone(ctx, "localhost", zones.Zone{
		Name: "example.org.", Kind: zones.ZoneKindNative,
		Nameservers: []string{"ns1.example.net."}, ResourceRecordSets: []zones.ResourceRecordSet{set}}))
	set.Name = "other.example.org."
	if err := c.Zones().AddRecordSetsToZone(ctx, "localhost", "example.org.", []zones.ResourceRecordSet{set}); err != nil {
		t.Fatal(err)
	}
	z := must[*zones.Zone](t)(c.Zones().GetZone(ctx, "localhost", "example.org."))
	if z.GetRecordSet("mail.example.org.", "MX") == nil || z.GetRecordSet("other.example.org.", "MX") == nil {
		t.Errorf("zone %+v", z)
	}
	if err := c.Zones().RemoveRecordSetsFromZone(ctx, "localhost", "example.org.", []zones.ResourceRecordSet{
		{Name: "other.example.org.", Type: "MX"}}); err != nil {
		t.Fatal(err)
	}
	found := must[search.ResultList](t)(c.Search().Search(ctx, "localhost", "mail*", 10, search.ObjectTypeRecord))
	if len(found) != 1 {
		t.Errorf("search: %v", found)
	}
	keys, err := c.Cryptokeys().ListCryptokeys(ctx, "localhost", "example.org.")
	if err != nil || len(keys) != 0 {
		t.Errorf("signing keys %v %v", keys, err)
	}
	if err := c.Zones().DeleteZone(ctx, "localhost", "example.org."); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Zones().GetZone(ctx, "localhost", "example.org."); !pdnshttp.IsNotFound(err) {
		t.Errorf("after the delete: %v", err)
	}
}

package clients

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/recordsets"
	"github.com/gophercloud/gophercloud/v2/openstack/dns/v2/zones"
	"github.com/gophercloud/gophercloud/v2/pagination"
	"github.com/miekg/dns"
)

// TestAlias creates, reads, lists, changes and deletes an ALIAS with both clients, which do not know this type. The
// target is in a zone of the same server, so the result of each step is visible at once.
func TestAlias(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := s.gopher(t, "admin", s.Token, "admin")
	z := must[*zones.Zone](t)(zones.Create(t.Context(), c,
		zones.CreateOpts{Name: "example.org.", Email: "admin@example.org"}).Extract())
	for i, name := range []string{"one.example.org.", "two.example.org."} {
		must[*recordsets.RecordSet](t)(recordsets.Create(t.Context(), c, z.ID,
			recordsets.CreateOpts{Name: name, Type: "A", TTL: 60,
				Records: []string{fmt.Sprintf("192.0.2.%d", i+1)}}).Extract())
	}
	t.Run("gophercloud", func(t *testing.T) {
		r := must[*recordsets.RecordSet](t)(recordsets.Create(t.Context(), c, z.ID,
			recordsets.CreateOpts{Name: "example.org.", Type: "ALIAS",
				TTL: 300, Records: []string{"one.example.org."}}).Extract())
		s.mustAnswer(t, "example.org.", dns.TypeA, "192.0.2.1")
		must[*recordsets.RecordSet](t)(recordsets.Update(t.Context(), c, z.ID, r.ID,
			recordsets.UpdateOpts{Records: []string{"two.example.org."}}).Extract())
		s.mustAnswer(t, "example.org.", dns.TypeA, "192.0.2.2")
		if got := must[*recordsets.RecordSet](t)(recordsets.Get(t.Context(), c, z.ID,
			r.ID).Extract()); got.Status != "ACTIVE" || got.Type != "ALIAS" {
			t.Errorf("read %+v", got)
		}
		all := must[[]recordsets.RecordSet](t)(
			recordsets.ExtractRecordSets(must[pagination.Page](t)(recordsets.ListByZone(c, z.ID, nil).AllPages(t.Context()))))
		var types []string
		for _, set := range all {
			types = append(types, set.Type)
		}
		if slices.Sort(types); !slices.Equal(types, []string{"A", "A", "ALIAS", "NS", "SOA"}) {
			t.Errorf("listed %v", types)
		}
		if err := recordsets.Delete(t.Context(), c, z.ID, r.ID).ExtractErr(); err != nil {
			t.Fatal(err)
		}
		_, err := recordsets.Get(t.Context(), c, z.ID, r.ID).Extract()
		gone(t, err)
		s.mustAnswer(t, "example.org.", dns.TypeA, "")
	})
	t.Run("openstack", func(t *testing.T) {
		env := s.passwordEnv()
		r := stack[row](t, env, "recordset", "create", "example.org.", "example.org.", "--type", "ALIAS", "--record",
			"one.example.org.", "--ttl", "300")
		if r["type"] != "ALIAS" || r["status"] != "PENDING" {
			t.Errorf("recordset create: %v", r)
		}
		s.mustAnswer(t, "example.org.", dns.TypeA, "192.0.2.1")
		id, _ := r["id"].(string)
		stack[row](t, env, "recordset", "set", "example.org.", id, "--record", "two.example.org.")
		s.mustAnswer(t, "example.org.", dns.TypeA, "192.0.2.2")
		if r := stack[row](t, env, "recordset", "show", "example.org.", id); r["records"] != "two.example.org." ||
			r["status"] != "ACTIVE" {
			t.Errorf("recordset show: %v", r)
		}
		if l := stack[[]row](t, env, "recordset", "list", "example.org.", "--type", "ALIAS"); len(l) != 1 {
			t.Errorf("recordset list: %v", l)
		}
		stack[row](t, env, "recordset", "delete", "example.org.", id)
		s.mustAnswer(t, "example.org.", dns.TypeA, "")
	})
}

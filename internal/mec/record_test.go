package mec_test

import (
	"fmt"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
)

func TestParseRecord(t *testing.T) {
	ttl := int64(30)
	good := mec.RecordDraft{Zone: ".", Name: "www.example.com.", Type: "A", Class: "IN", TTL: &ttl,
		Data: []string{"192.0.2.1"}}
	long := make([]string, 257)
	for i := range long {
		long[i] = fmt.Sprintf("198.51.%d.%d", i/256, i%256)
	}
	tests := []struct {
		name   string
		change func(*mec.RecordDraft)
		field  string
	}{
		{"plain", func(*mec.RecordDraft) {}, ""},
		{"no zone", func(d *mec.RecordDraft) { d.Zone = "" }, ""},
		{"its zone", func(d *mec.RecordDraft) { d.Zone = "Example.com" }, ""},
		{"no final dot", func(d *mec.RecordDraft) { d.Name = "www.example.com" }, ""},
		{"no class", func(d *mec.RecordDraft) { d.Class = "" }, ""},
		{"no ttl", func(d *mec.RecordDraft) { d.TTL = nil }, ""},
		{"AAAA", func(d *mec.RecordDraft) { d.Type, d.Data = "aaaa", []string{"2001:db8::1"} }, ""},
		{"other zone", func(d *mec.RecordDraft) { d.Zone = "example.org." }, "name"},
		{"half a label", func(d *mec.RecordDraft) { d.Zone = "ample.com." }, "name"},
		{"bad zone", func(d *mec.RecordDraft) { d.Zone = "a..b" }, "zone"},
		{"wildcard zone", func(d *mec.RecordDraft) { d.Zone = "*.com" }, "zone"},
		{"no name", func(d *mec.RecordDraft) { d.Name = "" }, "name"},
		{"no type", func(d *mec.RecordDraft) { d.Type = "" }, "type"},
		{"another type", func(d *mec.RecordDraft) { d.Type = "CNAME" }, "type"},
		{"another class", func(d *mec.RecordDraft) { d.Class = "CH" }, "class"},
		{"any class", func(d *mec.RecordDraft) { d.Class = "*" }, "class"},
		{"no data", func(d *mec.RecordDraft) { d.Data = nil }, "rData"},
		{"too much data", func(d *mec.RecordDraft) { d.Data = long }, "rData"},
		{"other family", func(d *mec.RecordDraft) { d.Data = []string{"192.0.2.1", "::1"} }, "rData[1]"},
		{"multicast", func(d *mec.RecordDraft) { d.Data = []string{"224.0.0.1"} }, "rData[0]"},
		{"no address", func(d *mec.RecordDraft) { d.Data = []string{"x"} }, "rData[0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := good
			tt.change(&d)
			_, err := mec.ParseRecord(d, specialaddr.Table{})
			if tt.field != "" {
				wantField(t, err, tt.field)
			} else if err != nil {
				t.Errorf("ParseRecord: %v", err)
			}
		})
	}
}

func zonesOf(g *rig) (out []mec.ZoneRecords, err error) {
	err = g.EachZone(func(z mec.ZoneRecords) error {
		out = append(out, z)
		return nil
	})
	return out, err
}

func recordsOf(g *rig, zone dnsname.Name) (out []mec.Record, err error) {
	err = g.EachRecord(zone, func(r mec.Record) error {
		out = append(out, r)
		return nil
	})
	return out, err
}

func TestRecords(t *testing.T) {
	g := start(t, mec.Options{})
	ctx := t.Context()
	www := dnsname.MustParse("www.example.com.")
	err := g.PutRecords(ctx, actor, []mec.Record{record(t, ". www.example.com. A 30 192.0.2.3 192.0.2.1"),
		record(t, ". w1.example.com. A 30 192.0.2.9"), record(t, ". www.example.com. AAAA 30 2001:db8::1"),
		record(t, "example.com www.example.com. A 40 192.0.2.5")})
	if err != nil {
		t.Fatal(err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "40 192.0.2.5") // from the most specific zone
	g.wantAnswer("www.example.com.", rr.TypeAAAA, "nodata")    // this zone has the name, so it answers for all types
	g.wantAnswer("w1.example.com.", rr.TypeA, "30 192.0.2.9")

	zones, err := zonesOf(g)
	if err != nil || len(zones) != 2 || zones[0].Records != 3 || zones[1].Name.String() != "example.com." {
		t.Errorf("Zones = %v, %v", zones, err)
	}
	if all, err := recordsOf(g, dnsname.Name{}); err != nil || len(all) != 4 {
		t.Errorf("Records = %v, %v", all, err)
	}
	if at, err := g.RecordsAt(dnsname.Name{}, www); err != nil || len(at) != 3 {
		t.Errorf("RecordsAt = %v, %v", at, err)
	}
	if one, err := g.Record(dnsname.Root, www, rr.TypeA); err != nil || one.Addrs[0].String() != "192.0.2.3" {
		t.Errorf("Record = %v, %v: not in the order it was given", one, err)
	}

	wantIs(t, g.CreateRecords(ctx, actor, []mec.Record{record(t, ". www.example.com A 30 192.0.2.3")}), store.ErrExists)
	wantIs(t, g.ReplaceRecord(ctx, actor, record(t, ". none.example.com A 30 192.0.2.3")), store.ErrNotFound)

	// Without a zone DeleteRecord deletes the record that is served, then the other.
	if err := g.DeleteRecord(ctx, actor, dnsname.Name{}, www, rr.TypeA); err != nil {
		t.Error(err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.1 192.0.2.3")
	if zones, err := zonesOf(g); err != nil || len(zones) != 1 {
		t.Errorf("Zones = %v, %v", zones, err)
	}
	if err := g.ReplaceRecord(ctx, actor, record(t, ". www.example.com A 50 192.0.2.8")); err != nil {
		t.Error(err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "50 192.0.2.8")
	wantIs(t, g.DeleteRecord(ctx, actor, dnsname.MustParse("example.com."), www, rr.TypeA), store.ErrNotFound)

	g = g.again(mec.Options{})
	g.wantAnswer("www.example.com.", rr.TypeA, "50 192.0.2.8")
	for _, r := range []string{"www.example.com. A", "www.example.com. AAAA", "w1.example.com. A"} {
		var name, typ string
		fmt.Sscan(r, &name, &typ)
		n, rt, err := mec.ParseRecordKey(name, typ)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.DeleteRecord(ctx, actor, dnsname.Root, n, rt); err != nil {
			t.Error(err)
		}
	}
	if left := g.rows(); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

func TestRecordBatch(t *testing.T) {
	g := start(t, mec.Options{})
	g.create("app1", "r taken.example.com 192.0.2.1")
	var batch []mec.Record
	for i := range 99 {
		batch = append(batch, record(t, fmt.Sprintf(". n%d.example.com A 30 192.0.2.1", i)))
	}
	err := g.PutRecords(t.Context(), actor, append(batch, record(t, ". taken.example.com A 30 192.0.2.2")))
	wantConflict(t, err)
	if all, _ := recordsOf(g, dnsname.Root); len(all) != 0 {
		t.Errorf("%d records of a refused batch are there", len(all))
	}
	g.wantAnswer("n0.example.com.", rr.TypeA, "refused")

	// The later of two records is kept, and writing the same again is no change.
	batch = []mec.Record{record(t, ". a.example.com A 30 192.0.2.1"), record(t, ". a.example.com A 30 192.0.2.2")}
	if err := g.PutRecords(t.Context(), actor, batch); err != nil {
		t.Fatal(err)
	}
	g.wantAnswer("a.example.com.", rr.TypeA, "30 192.0.2.2")
	before, commits := g.recordAt("a.example.com."), g.commits(".")
	if err := g.PutRecords(t.Context(), actor, batch[1:]); err != nil {
		t.Fatal(err)
	}
	if g.commits(".") != commits || !g.recordAt("a.example.com.").Updated.Equal(before.Updated) {
		t.Error("the same record again was a change")
	}
}

func (g *rig) recordAt(name string) mec.Record {
	g.t.Helper()
	r, err := g.Record(dnsname.Root, dnsname.MustParse(name), rr.TypeA)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

func TestRecordAndRule(t *testing.T) {
	g := start(t, mec.Options{})
	if err := g.CreateRecords(t.Context(), actor,
		[]mec.Record{record(t, ". www.example.com A 60 192.0.2.1")}); err != nil {
		t.Fatal(err)
	}
	err := g.tryCreate("app1", "r www.example.com 192.0.2.2")
	if c := wantConflict(t, err); c.OtherApp != "" {
		t.Errorf("conflict with %q, want the platform", c.OtherApp)
	}
	g.create("app1", "r www.example.com 192.0.2.1")
	g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.1")
	wantConflict(t, g.ReplaceRecord(t.Context(), actor, record(t, ". www.example.com A 60 192.0.2.2")))
	if err := g.DeleteRecord(t.Context(), actor, dnsname.Root, dnsname.MustParse("www.example.com."),
		rr.TypeA); err != nil {
		t.Fatal(err)
	}
	g.wantAnswer("www.example.com.", rr.TypeA, "30 192.0.2.1")
}

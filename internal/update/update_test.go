package update_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/update"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// testZone is a publisher with the zone example.org.
type testZone struct {
	t   *testing.T
	pub *publish.Publisher
	z   zone.Zone
}

const content = `example.org. 300 SOA ns.example.org. host.example.org. 1 3600 600 86400 60
example.org. 300 NS ns.example.org.
ns.example.org. 300 A 192.0.2.53
www.example.org. 300 A 192.0.2.1
www.example.org. 300 TXT "here"
mail.example.org. 300 MX 10 Mx.example.org.
c.example.org. 300 CNAME www.example.org.
alias.example.org. 300 ALIAS target.test.`

func newTestZone(t *testing.T) *testZone {
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- pub.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; st.Close() })
	w := &testZone{t: t, pub: pub}
	var sets []zone.RecordSet
	for _, line := range strings.Split(content, "\n") {
		r := w.record("IN " + line)
		sets = append(sets, zone.RecordSet{Name: r.Name, Type: r.Type, TTL: &r.TTL, Data: []string{r.Data},
			Managed: r.Type == rr.TypeSOA || r.Name.String() == "example.org."})
	}
	sets = append(sets, zone.RecordSet{Name: dnsname.MustParse("empty.example.org."), Type: rr.TypeCNAME})
	a := w.record("IN alias.example.org. 60 A 192.0.2.7")
	sets = append(sets, zone.RecordSet{Name: a.Name, Type: a.Type, TTL: &a.TTL, Data: []string{a.Data}, Managed: true,
		Hidden: true})
	err = pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) (err error) {
		w.z, err = tx.CreateZone(zone.Zone{Name: dnsname.MustParse("example.org."), Kind: zone.Primary, TTL: 300}, sets...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// record parses "CLASS NAME TTL TYPE DATA", where DATA may be missing.
func (w *testZone) record(line string) update.Record {
	w.t.Helper()
	f := strings.SplitN(line, " ", 5)
	ttl, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	typ, err := rr.ParseType(f[3])
	if err != nil {
		w.t.Fatalf("%s: %v", line, err)
	}
	r := update.Record{Name: dnsname.MustParse(f[1]), Type: typ, TTL: uint32(ttl),
		Class: map[string]uint16{"IN": wire.ClassIN, "NONE": wire.ClassNONE, "ANY": wire.ClassANY}[f[0]]}
	if len(f) == 5 {
		if r.Data, err = rr.ParseData(typ, f[4]); err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
	}
	return r
}

func (w *testZone) records(lines []string) (out []update.Record) {
	for _, l := range lines {
		out = append(out, w.record(l))
	}
	return out
}

// text returns the lines of the zone without its SOA.
func (w *testZone) text() []string {
	var out []string
	err := w.pub.View(func(v store.View) error {
		return v.RecordSets(w.z.ID, func(s zone.RecordSet) (bool, error) {
			for _, d := range s.Data {
				if s.Type != rr.TypeSOA {
					out = append(out, strings.Join([]string{s.Name.String(), strconv.Itoa(int(*s.TTL)), s.Type.String(),
						rr.DataText(s.Type, d)}, " "))
				}
			}
			return true, nil
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func TestApply(t *testing.T) {
	type list = []string
	for _, tt := range []struct {
		name         string
		pre, updates list
		rcode        int
		gone, come   list // lines that the update removes and adds
	}{
		{name: "add a set", updates: list{"IN new.example.org. 60 A 192.0.2.9"},
			come: list{"new.example.org. 60 A 192.0.2.9"}},
		{name: "add a record: the set has the new TTL", updates: list{"IN www.example.org. 60 A 192.0.2.2"},
			gone: list{"www.example.org. 300 A 192.0.2.1"},
			come: list{"www.example.org. 60 A 192.0.2.1", "www.example.org. 60 A 192.0.2.2"}},
		{name: "add what is there", updates: list{"IN www.example.org. 300 A 192.0.2.1"}},
		{name: "add beside a CNAME is ignored", updates: list{"IN c.example.org. 60 A 192.0.2.2"}},
		{name: "a CNAME beside data is ignored", updates: list{"IN www.example.org. 60 CNAME c.example.org."}},
		{name: "a CNAME replaces a CNAME", updates: list{"IN c.example.org. 60 CNAME ns.example.org."},
			gone: list{"c.example.org. 300 CNAME www.example.org."}, come: list{"c.example.org. 60 CNAME ns.example.org."}},
		{name: "a CNAME set without records does not conflict",
			updates: list{"IN empty.example.org. 60 CNAME ns.example.org."},
			come:    list{"empty.example.org. 60 CNAME ns.example.org."}},
		{name: "a SOA with an older serial is ignored",
			updates: list{"IN example.org. 60 SOA ns.example.org. h.example.org. 1 1 1 1 1"}},
		{name: "a SOA elsewhere is ignored",
			updates: list{"IN www.example.org. 60 SOA ns.example.org. h.example.org. 4000000000 1 1 1 1"}},
		{name: "add a NS of the apex", updates: list{"IN example.org. 300 NS ns2.example.org."},
			come: list{"example.org. 300 NS ns2.example.org."}},
		{name: "add the NS of the apex again", updates: list{"IN example.org. 300 NS NS.example.org.",
			"IN example.org. 300 NS ns.example.org."}},
		{name: "replace the NS of the apex", updates: list{"IN example.org. 300 NS ns2.example.org.",
			"NONE example.org. 0 NS ns.example.org.", "NONE example.org. 0 NS ns2.example.org."},
			gone: list{"example.org. 300 NS ns.example.org."}, come: list{"example.org. 300 NS ns2.example.org."}},
		{name: "delete a set", updates: list{"ANY www.example.org. 0 A"}, gone: list{"www.example.org. 300 A 192.0.2.1"}},
		{name: "delete a name", updates: list{"ANY www.example.org. 0 ANY"},
			gone: list{"www.example.org. 300 A 192.0.2.1", `www.example.org. 300 TXT "here"`}},
		{name: "delete a record, whatever the case of its name",
			updates: list{"NONE mail.example.org. 0 MX 10 mX.EXAMPLE.org."},
			gone:    list{"mail.example.org. 300 MX 10 Mx.example.org."}},
		{name: "delete what is not there", updates: list{"NONE www.example.org. 0 A 192.0.2.77", "ANY no.example.org. 0 A",
			"ANY no.example.org. 0 ANY"}},
		{name: "the apex keeps SOA and NS", updates: list{"ANY example.org. 0 ANY", "ANY example.org. 0 NS",
			"ANY example.org. 0 SOA",
			"NONE example.org. 0 NS ns.example.org."}},
		{name: "a batch that turns a CNAME into an A",
			updates: list{"ANY c.example.org. 0 CNAME", "IN c.example.org. 60 A 192.0.2.3"},
			gone:    list{"c.example.org. 300 CNAME www.example.org."}, come: list{"c.example.org. 60 A 192.0.2.3"}},
		{name: "in the order of the message", updates: list{"IN www.example.org. 60 A 192.0.2.2", "ANY www.example.org. 0 A",
			"IN www.example.org. 30 A 192.0.2.3",
			"IN www.example.org. 30 A 192.0.2.4", "NONE www.example.org. 0 A 192.0.2.3", "IN no.example.org. 60 A 192.0.2.9",
			"ANY no.example.org. 0 ANY",
			"IN c.example.org. 60 TXT \"ignored\"", "NONE c.example.org. 0 CNAME www.example.org.",
			"IN c.example.org. 60 TXT \"taken\""},
			gone: list{"c.example.org. 300 CNAME www.example.org.", "www.example.org. 300 A 192.0.2.1"},
			come: list{`c.example.org. 60 TXT "taken"`, "www.example.org. 30 A 192.0.2.4"}},
		{name: "of two spellings the newest", updates: list{"IN mail.example.org. 300 MX 10 MX.example.org."},
			gone: list{"mail.example.org. 300 MX 10 Mx.example.org."},
			come: list{"mail.example.org. 300 MX 10 MX.example.org."}},
		{name: "no TTL is longer than the longest", updates: list{"IN new.example.org. 4294967295 A 192.0.2.9"},
			come: list{"new.example.org. 2147483647 A 192.0.2.9"}},
		{name: "all or nothing", updates: list{"IN new.example.org. 60 A 192.0.2.9", "IN alias.example.org. 60 A 192.0.2.9"},
			rcode: wire.RcodeRefused},

		{name: "of an ALIAS: add", updates: list{"IN alias.example.org. 60 A 192.0.2.9"}, rcode: wire.RcodeRefused},
		{name: "of an ALIAS: the other family", updates: list{"IN alias.example.org. 60 AAAA 2001:db8::9"},
			rcode: wire.RcodeRefused},
		{name: "of an ALIAS: delete", updates: list{"ANY alias.example.org. 0 A"}, rcode: wire.RcodeRefused},
		{name: "of an ALIAS: delete the name", updates: list{"ANY alias.example.org. 0 ANY"}, rcode: wire.RcodeRefused},
		{name: "an ALIAS", updates: list{"IN new.example.org. 60 ALIAS target.test."}, rcode: wire.RcodeRefused},
		{name: "outside", updates: list{"IN www.example.net. 60 A 192.0.2.9"}, rcode: wire.RcodeNotZone},
		{name: "add ANY", updates: list{"IN www.example.org. 60 ANY"}, rcode: wire.RcodeFormErr},
		{name: "delete with a TTL", updates: list{"ANY www.example.org. 1 A"}, rcode: wire.RcodeFormErr},
		{name: "delete a set with data", updates: list{"ANY www.example.org. 0 A 192.0.2.1"}, rcode: wire.RcodeFormErr},
		{name: "add without data", updates: list{"IN www.example.org. 60 A"}, rcode: wire.RcodeFormErr},

		{name: "name in use", pre: list{"ANY www.example.org. 0 ANY"}},
		{name: "name not in use", pre: list{"ANY no.example.org. 0 ANY"}, rcode: wire.RcodeNXDomain},
		{name: "name must not be in use", pre: list{"NONE no.example.org. 0 ANY"}},
		{name: "name must not be in use, and is", pre: list{"NONE www.example.org. 0 ANY"}, rcode: wire.RcodeYXDomain},
		{name: "set exists", pre: list{"ANY www.example.org. 0 A"}},
		{name: "set does not exist", pre: list{"ANY www.example.org. 0 MX"}, rcode: wire.RcodeNXRRSet},
		{name: "an ALIAS is not on the wire", pre: list{"ANY alias.example.org. 0 ALIAS"}, rcode: wire.RcodeNXRRSet},
		{name: "but what it made is", pre: list{"ANY alias.example.org. 0 A"}},
		{name: "set must not exist", pre: list{"NONE www.example.org. 0 MX"}},
		{name: "set must not exist, and does", pre: list{"NONE www.example.org. 0 A"}, rcode: wire.RcodeYXRRSet},
		{name: "set is", pre: list{"IN www.example.org. 0 A 192.0.2.1", "IN mail.example.org. 0 MX 10 mx.example.org."}},
		{name: "set is more", pre: list{"IN www.example.org. 0 A 192.0.2.1", "IN www.example.org. 0 A 192.0.2.2"},
			rcode: wire.RcodeNXRRSet},
		{name: "set is another", pre: list{"IN www.example.org. 0 A 192.0.2.2"}, rcode: wire.RcodeNXRRSet},
		{name: "set is not", pre: list{"IN no.example.org. 0 A 192.0.2.2"}, rcode: wire.RcodeNXRRSet},
		{name: "prerequisite outside", pre: list{"ANY www.example.net. 0 A"}, rcode: wire.RcodeNotZone},
		{name: "prerequisite with a TTL", pre: list{"ANY www.example.org. 5 A"}, rcode: wire.RcodeFormErr},
		{name: "prerequisite with data", pre: list{"NONE www.example.org. 0 A 192.0.2.1"}, rcode: wire.RcodeFormErr},
		{name: "a failed prerequisite stops the update", pre: list{"ANY no.example.org. 0 ANY"},
			updates: list{"IN new.example.org. 60 A 192.0.2.9"}, rcode: wire.RcodeNXDomain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newTestZone(t)
			before := w.text()
			err := w.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
				return update.Apply(tx, w.z, update.Message{Prerequisites: w.records(tt.pre), Updates: w.records(tt.updates)})
			})
			var got int
			if e, ok := errors.AsType[*update.Error](err); ok {
				got = e.Rcode
			} else if placed, ok := errors.AsType[*zone.PlacementError](err); ok {
				got = wire.RcodeRefused
				t.Logf("%s", placed.Reason)
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tt.rcode {
				t.Fatalf("rcode %d (%v), want %d", got, err, tt.rcode)
			}
			gone, come := difference(before, w.text()), difference(w.text(), before)
			if diff := cmp.Diff([][]string{tt.gone, tt.come}, [][]string{gone, come}); diff != "" {
				t.Errorf("removed and added lines (-want +got)\n%s", diff)
			}
		})
	}
}

// TestSOA replaces the SOA: the zone has exactly the given values, and continues from the given serial.
func TestSOA(t *testing.T) {
	w := newTestZone(t)
	apply := func(lines ...string) {
		t.Helper()
		err := w.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
			z, err := tx.Zone(w.z.ID)
			if err != nil {
				return err
			}
			return update.Apply(tx, z, update.Message{Updates: w.records(lines)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	state := func() (text, email string) {
		t.Helper()
		err := w.pub.View(func(v store.View) error {
			s, err := v.RecordSet(w.z.ID, w.z.Name, rr.TypeSOA)
			if err != nil {
				return err
			}
			z, err := v.Zone(w.z.ID)
			email = z.Email
			text = strconv.Itoa(int(*s.TTL)) + " " + rr.DataText(s.Type, s.Data[0])
			if soa, _ := zone.ParseSOA(s.Data[0]); soa.Serial != z.Serial {
				t.Errorf("the zone has serial %d, its SOA %d", z.Serial, soa.Serial)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return text, email
	}
	next := w.z.Serial + 1_000_000
	soa := func(serial uint32, names string) string {
		return "IN example.org. 60 SOA " + names + strconv.Itoa(int(serial)) + " 1 2 3 4"
	}
	apply(soa(next, "ns2.example.org. ops.example.org. "), "IN new.example.org. 60 A 192.0.2.9")
	want := "60 ns2.example.org. ops.example.org. " + strconv.Itoa(int(next)) + " 1 2 3 4"
	if text, email := state(); text != want || email != "ops@example.org" {
		t.Errorf("SOA %s of %s, want %s", text, email, want)
	}
	apply(soa(next, "ns3.example.org. ops.example.org. "), "ANY example.org. 0 SOA",
		"NONE example.org. 0 SOA ns2.example.org. ops.example.org. "+strconv.Itoa(int(next))+" 1 2 3 4")
	if text, _ := state(); text != want {
		t.Errorf("after an equal serial and deletions SOA %s, want %s", text, want)
	}
	apply("IN other.example.org. 60 A 192.0.2.9")
	want = "60 ns2.example.org. ops.example.org. " + strconv.Itoa(int(next)+1) + " 1 2 3 4"
	if text, _ := state(); text != want {
		t.Errorf("after another change SOA %s, want %s", text, want)
	}
}

// TestMay checks that a client with limits changes only what it may.
func TestMay(t *testing.T) {
	may := func(n dnsname.Name, typ rr.Type) bool {
		return n.Label() == "www" && (typ == rr.TypeTXT || typ == rr.TypeMX)
	}
	for _, tt := range []struct {
		name    string
		updates []string
		denied  bool
	}{
		{"add", []string{`IN www.example.org. 60 TXT "b"`}, false},
		{"delete a record", []string{`NONE www.example.org. 0 TXT "here"`}, false},
		{"delete a set", []string{"ANY www.example.org. 0 TXT"}, false},
		{"another type", []string{"IN www.example.org. 60 AAAA 2001:db8::1"}, true},
		{"another name", []string{`IN ns.example.org. 60 TXT "b"`}, true},
		{"delete a set of another type", []string{"ANY www.example.org. 0 A"}, true},
		{"delete a record of another type", []string{"NONE www.example.org. 0 A 192.0.2.1"}, true},
		{"delete a name with another type", []string{"ANY www.example.org. 0 ANY"}, true},
		{"the first of two", []string{"ANY www.example.org. 0 TXT", "ANY www.example.org. 0 A"}, true},
	} {
		w := newTestZone(t)
		before := w.text()
		err := w.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
			return update.Apply(tx, w.z, update.Message{Updates: w.records(tt.updates), May: may})
		})
		e, ok := errors.AsType[*update.Error](err)
		if ok != tt.denied || ok && (!e.Denied || e.Rcode != wire.RcodeRefused) || !ok && err != nil {
			t.Errorf("%s: %v, want denied %v", tt.name, err, tt.denied)
		}
		if same := cmp.Equal(before, w.text()); same != tt.denied {
			t.Errorf("%s: the zone is unchanged: %v", tt.name, same)
		}
	}
}

// difference returns the lines of a that are not in b.
func difference(a, b []string) (out []string) {
	in := map[string]bool{}
	for _, l := range b {
		in[l] = true
	}
	for _, l := range a {
		if !in[l] {
			out = append(out, l)
		}
	}
	return out
}

func TestApplyToSecondary(t *testing.T) {
	w := newTestZone(t)
	z := w.z
	z.Kind = zone.Secondary
	err := w.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
		return update.Apply(tx, z, update.Message{Updates: w.records([]string{"IN new.example.org. 60 A 192.0.2.9"})})
	})
	if e, ok := errors.AsType[*update.Error](err); !ok || e.Rcode != wire.RcodeNotAuth {
		t.Errorf("%v", err)
	}
}

package transfer_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestKeyring checks that a key is valid from the commit that creates it to the one that deletes it, within its scope.
func TestKeyring(t *testing.T) {
	p := newPublisher(t, publish.Options{})
	one, two := zone.Zone{ID: uuid.New(), Pool: uuid.New()}, zone.Zone{ID: uuid.New(), Pool: uuid.New()}
	b := transfer.NewKeyring(p)
	var limits map[string]any
	put := func(id, name, algorithm, scope string, resource uuid.UUID) {
		t.Helper()
		commit(t, p, func(tx *publish.Tx) error {
			row := map[string]any{"name": name, "algorithm": algorithm, "secret": "c2VjcmV0", "scope": scope,
				"resource_id": resource}
			maps.Copy(row, limits)
			return tx.PutObject(store.KindTSIGKey, id, row)
		})
	}
	found := func(name string, want bool) transfer.Key {
		t.Helper()
		k, ok, err := b.Find(dnsname.MustParse(name))
		if err != nil || ok != want {
			t.Fatalf("%s is found: %v (%v)", name, ok, err)
		}
		return k
	}
	found("k1.", false)
	put("1", "k1", "hmac-sha256", "ZONE", one.ID)
	if k := found("K1.", true); k.Algorithm.String() != "hmac-sha256." || !k.For(one) || k.For(two) {
		t.Errorf("key %+v", k)
	}
	put("2", "k2.", "hmac-sha512", "POOL", two.Pool)
	if k := found("k2.", true); k.For(one) || !k.For(two) {
		t.Errorf("key %+v", k)
	}
	put("4", "nobody.", "hmac-sha256", "ZONE", uuid.Nil)
	if k := found("nobody.", true); k.For(zone.Zone{ID: one.ID}) { // a zone without a pool
		t.Errorf("key %+v is for a zone that it was not made for", k)
	}
	limits = map[string]any{"zones": []uuid.UUID{one.ID}}
	put("5", "zones.", "hmac-sha256", "POOL", two.Pool)
	if k := found("zones.", true); !k.For(one) || k.For(two) || !k.MayTransfer(one) {
		t.Errorf("key %+v", k)
	}
	limits = map[string]any{"names": []string{"a.test"}}
	put("6", "names.", "hmac-sha256", "POOL", two.Pool)
	if k := found("names.", true); !k.For(two) || k.MayTransfer(two) {
		t.Errorf("key %+v", k)
	}
	limits = map[string]any{"names": []string{"*.a.*"}}
	put("7", "broken.", "hmac-sha256", "POOL", two.Pool)
	found("broken.", false) // a limit that cannot be read is not dropped
	limits = nil
	put("3", "weak.", "hmac-md5", "POOL", two.Pool)
	found("weak.", false)
	commit(t, p, func(tx *publish.Tx) error { return tx.DeleteObject(store.KindTSIGKey, "1") })
	found("k1.", false)
	found("k2.", true)
}

// TestMayChange checks the names and types that a key may change.
func TestMayChange(t *testing.T) {
	p := newPublisher(t, publish.Options{})
	b := transfer.NewKeyring(p)
	type list = []string
	for _, tt := range []struct {
		names, types list
		name, typ    string
		want         bool
	}{
		{nil, nil, "example.org.", "NS", true},
		{nil, nil, "example.org.", "SOA", true},
		{list{"_acme-challenge.*"}, list{"TXT"}, "_acme-challenge.example.org.", "TXT", true},
		{list{"_acme-challenge.*"}, list{"TXT"}, "_ACME-challenge.www.example.org.", "TXT", true},
		{list{"_acme-challenge.*"}, list{"TXT"}, "_acme-challenge.example.org.", "A", false},
		{list{"_acme-challenge.*"}, list{"TXT"}, "www.example.org.", "TXT", false},
		{list{"_acme-challenge.*"}, list{"TXT"}, "www._acme-challenge.example.org.", "TXT", false},
		{list{"_acme-challenge.*"}, nil, "_acme-challenge.", "TXT", false},
		{list{"*.lan.example.org."}, nil, "a.lan.example.org.", "A", true},
		{list{"*.lan.example.org."}, nil, "a.b.lan.example.org.", "A", true},
		{list{"*.lan.example.org."}, nil, "lan.example.org.", "A", false},
		{list{"*.lan.example.org."}, nil, "xlan.example.org.", "A", false},
		{list{"*.lan.example.org."}, nil, "a\\.lan.example.org.", "A", false},
		{list{"a.*.example.org"}, nil, "a.b.example.org.", "A", true},
		{list{"a.*.example.org"}, nil, "a.example.org.", "A", false},
		{list{"www.example.org", "example.org"}, nil, "example.org.", "MX", true},
		{list{"www.example.org", "example.org"}, nil, "example.org.", "NS", false},
		{list{"www.example.org", "example.org"}, nil, "example.org.", "SOA", false},
		{list{"example.org"}, list{"NS"}, "example.org.", "NS", true},
		{nil, list{"A", "AAAA"}, "example.org.", "AAAA", true},
		{nil, list{"A", "AAAA"}, "example.org.", "NS", false},
		{list{"*"}, nil, "any.example.org.", "A", true},
	} {
		commit(t, p, func(tx *publish.Tx) error {
			return tx.PutObject(store.KindTSIGKey, "1", map[string]any{"name": "k", "algorithm": "hmac-sha256",
				"secret": "c2VjcmV0", "scope": "POOL", "resource_id": uuid.New(), "names": tt.names, "types": tt.types})
		})
		k, ok, err := b.Find(dnsname.MustParse("k."))
		if !ok || err != nil {
			t.Fatalf("no key with names %v and types %v (%v)", tt.names, tt.types, err)
		}
		typ, err := rr.ParseType(tt.typ)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.MayChange(dnsname.MustParse(tt.name), typ); got != tt.want {
			t.Errorf("names %v, types %v: MayChange(%s, %s) = %v", tt.names, tt.types, tt.name, tt.typ, got)
		}
	}
}

// FuzzNamePattern compares Matches with a regular expression over the text of the names.
func FuzzNamePattern(f *testing.F) {
	for _, s := range [][2]string{{"_acme-challenge.*", "_acme-challenge.example.org."}, {"*", "."}, {"*.a", "b.a."},
		{"a.*.b", "a.x.y.b."}, {`a\.b.*`, `a\.b.c.`}, {".", "."}, {"*.*", "a.b."}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := transfer.ParseNamePattern(pattern)
		n, err2 := dnsname.Parse(name)
		whole, err3 := dnsname.Parse(pattern)
		if err != nil || err2 != nil || err3 != nil || strings.Contains(whole.String(), `\`) {
			return // the expression would take an escaped dot for the end of a label
		}
		text := regexp.QuoteMeta("." + whole.String()) // each label begins with a dot
		text = strings.Replace(text, `\.\*\.`, `(\.([^.\\]|\\.)+)+\.`, 1)
		if whole.IsRoot() {
			text = `\.\.`
		}
		want := regexp.MustCompile(`(?s)^` + text + `$`).MatchString("." + n.String())
		if got := p.Matches(n); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}

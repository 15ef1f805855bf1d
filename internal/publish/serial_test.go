package publish_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestNewZoneKeepsItsSerial checks that a zone that is exported, imported and exported again is the same file.
func TestNewZoneKeepsItsSerial(t *testing.T) {
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	defer func() { stop(); <-ended }()

	apex := dnsname.MustParse("example.org.")
	ns := dnsname.MustParse("ns1.example.org.")
	for _, tt := range []struct {
		given uint32
		keeps bool
	}{{0, false}, {7, true}, {2026010101, true}} {
		soa := zone.SOA{MName: ns, RName: apex, Serial: 1}
		err := p.Commit(ctx, store.Actor{}, func(tx *publish.Tx) error {
			z, err := tx.CreateZone(zone.Zone{Name: apex, Kind: zone.Primary, Serial: tt.given},
				zone.RecordSet{Name: apex, Type: rr.TypeSOA, Data: []string{soa.Data()}},
				zone.RecordSet{Name: apex, Type: rr.TypeNS, Data: []string{ns.Wire()}})
			if err != nil {
				return err
			}
			if kept := z.Serial == tt.given; kept != tt.keeps || z.Serial == 0 {
				t.Errorf("zone made with serial %d has serial %d", tt.given, z.Serial)
			}
			return tx.DeleteZone(z.ID)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

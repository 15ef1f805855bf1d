package update_test

import (
	"errors"
	"testing"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/update"
)

// TestFullZone checks updates of a zone that has no room for another record set: one that only adds is refused at its
// first new set, before any record is written, and changes of what is there are made.
func TestFullZone(t *testing.T) {
	w := newTestZone(t)
	err := w.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
		z, err := tx.Zone(w.z.ID)
		if err != nil {
			return err
		}
		return tx.PutObject(store.KindQuota, z.Project, publish.Quotas{Aliases: -1, APIExportSize: -1,
			RecordsetRecords: -1, ZoneRecords: -1, ZoneRecordsets: z.Sets, Zones: -1})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what    string
		updates []string
		refused bool
	}{
		{"a new set", []string{"IN new.example.org. 60 A 192.0.2.1"}, true},
		{"another TTL", []string{"IN www.example.org. 60 A 192.0.2.1"}, false},
		{"a set for another", []string{"IN new.example.org. 60 A 192.0.2.1", "ANY www.example.org. 0 TXT"}, false},
	} {
		err := w.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
			z, err := tx.Zone(w.z.ID)
			if err != nil {
				return err
			}
			err = update.Apply(tx, z, update.Message{Updates: w.records(tt.updates)})
			var quota *publish.QuotaError
			if early := errors.As(err, &quota); early != tt.refused {
				t.Errorf("%s: Apply returns %v", tt.what, err)
			}
			return err
		})
		if (err != nil) != tt.refused {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestUnreadableRows wants a start with rows that nobody can read, in pages that are sound, to say which file that is
// and what to do.
func TestUnreadableRows(t *testing.T) {
	for _, tt := range []struct {
		table store.Table
		like  string // in the key
	}{{store.Zones, ""}, {store.Sets, ""}, {store.Objects, "token"}} {
		c := localConfig(t)
		start := func() error {
			d, err := Open(t.Context(), Options{Config: c, Log: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar)})
			if err != nil {
				return err
			}
			defer d.close()
			return d.publisher.Commit(t.Context(), store.Actor{Who: "test"}, func(tx *publish.Tx) error {
				name := dnsname.MustParse("example.org.")
				_, err := tx.CreateZone(zone.Zone{Name: name, Kind: zone.Primary},
					zone.RecordSet{Name: name, Type: rr.TypeSOA, Data: []string{zone.SOA{MName: name, RName: name}.Data()}},
					zone.RecordSet{Name: name, Type: rr.TypeNS, Data: []string{name.Wire()}})
				return err
			})
		}
		if err := start(); err != nil {
			t.Fatal(err)
		}
		spoil(t, c, tt.table, tt.like)
		err := start()
		path := filepath.Join(c.Data, storeFile)
		if damaged := new(store.DamagedError); !errors.As(err, &damaged) || damaged.Path != path {
			t.Errorf("a row of %s that cannot be read: %v", tt.table, err)
			continue
		}
		if said := err.Error(); !strings.Contains(said, path) || !strings.Contains(said, "restore a backup") {
			t.Errorf("a row of %s that cannot be read: %q", tt.table, said)
		}
	}
}

// TestEmptiedStore wants a file without an octet to be no new store where a server has been before.
func TestEmptiedStore(t *testing.T) {
	c := localConfig(t)
	start := func() error {
		d, err := Open(t.Context(), Options{Config: c, Log: slog.New(slog.DiscardHandler), Level: new(slog.LevelVar)})
		if err == nil {
			d.close()
		}
		return err
	}
	path := filepath.Join(c.Data, storeFile)
	if err := os.WriteFile(path, nil, 0o600); err != nil { // as a first start that was cut off may leave it
		t.Fatal(err)
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := start(); !errors.As(err, new(*store.DamagedError)) || !strings.Contains(err.Error(), path) {
		t.Errorf("start with an emptied store: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("the emptied store was written to: %v, %v", info, err)
	}
}

// spoil writes nonsense over the first row of a table with such a key.
func spoil(t *testing.T, c config.Config, table store.Table, like string) {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(c.Data, storeFile), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var key []byte
	err = st.Update(func(w store.Writer) error {
		w.Scan(table, nil, nil, func(k, _ []byte) bool {
			if bytes.Contains(k, []byte(like)) {
				key = bytes.Clone(k)
			}
			return key == nil
		})
		return w.Put(table, key, []byte{0xff, 0xff, 0xff})
	})
	if err := errors.Join(err, st.Close()); err != nil || key == nil {
		t.Fatalf("no row of %s was spoilt: %v", table, err)
	}
}

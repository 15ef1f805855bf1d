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

// TestUnreadableRows checks a start with unreadable rows in intact pages. The error must name the file and say what to
// do.
func TestUnreadableRows(t *testing.T) {
	for _, tt := range []struct {
		table store.Table
		like  string // part of the key
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

// TestEmptiedStore checks that an empty file does not become a new store in the data directory of an earlier server.
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
	if err := os.WriteFile(path, nil, 0o600); err != nil { // as an interrupted first start may leave it
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

// spoil overwrites the first row of a table whose key contains a text.
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
		t.Fatalf("no row of %s was overwritten: %v", table, err)
	}
}

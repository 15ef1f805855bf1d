package store

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// emptyReader is a Reader without rows.
type emptyReader struct{}

func (emptyReader) Get(Table, []byte) []byte                                     { return nil }
func (emptyReader) Scan(Table, []byte, []byte, func(key, value []byte) bool)     {}
func (emptyReader) Sizes(Table, []byte, func(key []byte, size int) bool)         {}
func (emptyReader) ScanBack(Table, []byte, []byte, func(key, value []byte) bool) {}

func TestAbsent(t *testing.T) {
	v, n := NewView(emptyReader{}), dnsname.MustParse("www.example.org.")
	id := uuid.MustParse("00000000-0000-4000-8000-000000000000")
	var out any
	first := func(_ any, err error) error { return err }
	tests := []struct {
		want string
		err  error
	}{
		{"zone " + id.String() + ": not found", first(v.Zone(id))},
		{"zone www.example.org.: not found", first(v.ZoneByName(n))},
		{"record set www.example.org. A: not found", first(v.RecordSet(id, n, rr.TypeA))},
		{"record set " + id.String() + ": not found", first(v.RecordSetByID(id))},
		{"quota p1: not found", v.Object("quota", "p1", &out)},
	}
	for _, tt := range tests {
		if tt.err == nil || tt.err.Error() != tt.want || !errors.Is(tt.err, ErrNotFound) {
			t.Errorf("error %q, want %q, and ErrNotFound", tt.err, tt.want)
		}
	}
}

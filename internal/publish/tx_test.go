package publish_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// TestTxWrites lists all writes that an API can make. None of them may write rows directly: that would leave serial,
// journal and snapshot unchanged.
func TestTxWrites(t *testing.T) {
	reads := methods(reflect.TypeFor[store.View]())
	own := slices.DeleteFunc(methods(reflect.TypeFor[*publish.Tx]()),
		func(m string) bool { return slices.Contains(reads, m) })
	want := []string{"Actor", "After", "CheckSize", "CreateSet", "CreateZone", "DeleteObject", "DeleteSet", "DeleteZone",
		"LiftQuotas", "LiftRecordQuotas", "Note", "Now", "OnDone", "Overlay", "PutObject", "RecordQuotasLifted",
		"ReplaceSets", "ReplaceSorted", "RoomForSets", "SetSecondary", "SetSerial", "UpdateSet", "UpdateZone"}
	if !slices.Equal(own, want) {
		t.Errorf("methods of Tx besides those that read: %v, want %v", own, want)
	}
	tx := reflect.TypeFor[publish.Tx]()
	for i := range tx.NumField() {
		if f := tx.Field(i); f.IsExported() && f.Type != reflect.TypeFor[store.View]() {
			t.Errorf("Tx exposes its field %s %s", f.Name, f.Type)
		}
	}
}

func methods(t reflect.Type) (out []string) {
	for i := range t.NumMethod() {
		out = append(out, t.Method(i).Name)
	}
	return out
}

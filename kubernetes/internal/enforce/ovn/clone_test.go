package ovn

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-kubernetes/libovsdb/model"
)

// fill sets every field of a row to a unique value. It returns the pointers that a copy must not share.
func fill(t *testing.T, row any) (pointers map[uintptr]string) {
	t.Helper()
	pointers = map[uintptr]string{}
	v := reflect.ValueOf(row).Elem()
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch f.Interface().(type) {
		case string:
			f.SetString("value of " + name)
		case int:
			f.SetInt(int64(i + 1))
		case bool:
			f.SetBool(true)
		case []string:
			f.Set(reflect.ValueOf([]string{"first of " + name, "second of " + name}))
		case map[string]string:
			f.Set(reflect.ValueOf(map[string]string{"key of " + name: "value"}))
		case *string:
			s := "text of " + name
			f.Set(reflect.ValueOf(&s))
		default:
			t.Fatalf("%T has a field of type %s: say here how it is filled", row, f.Type())
		}
		switch f.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			pointers[f.Pointer()] = name
		}
	}
	return pointers
}

// TestClone checks that a copy equals the row and shares no memory with it.
func TestClone(t *testing.T) {
	for _, row := range []model.CloneableModel{&globalRow{}, &setRow{}, &groupRow{}, &aclRow{}, &tierRow{}, &portRow{},
		&vswitchRow{}, &bridgeRow{}} {
		t.Run(fmt.Sprintf("%T", row), func(t *testing.T) {
			empty := row.CloneModel()
			if diff := cmp.Diff(row, empty, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("copy of an empty row (-row +copy):\n%s", diff)
			}
			pointers := fill(t, row)
			into := reflect.New(reflect.TypeOf(row).Elem()).Interface()
			row.CloneModelInto(into)
			for how, c := range map[string]any{"CloneModel": row.CloneModel(), "CloneModelInto": into} {
				if diff := cmp.Diff(row, c, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
					t.Errorf("%s (-row +copy):\n%s", how, diff)
				}
				v := reflect.ValueOf(c).Elem()
				for i := range v.NumField() {
					switch f := v.Field(i); f.Kind() {
					case reflect.Slice, reflect.Map, reflect.Pointer:
						if name, shared := pointers[f.Pointer()]; shared {
							t.Errorf("%s shares %s with the row", how, name)
						}
					}
				}
			}
		})
	}
}

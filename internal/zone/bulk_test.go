package zone_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestLoaderRefusesDisorder checks that a name out of order is refused, and that the loader can continue after it.
func TestLoaderRefusesDisorder(t *testing.T) {
	l := zone.NewLoader(uuid.New(), apex)
	steps := []struct {
		name string
		ok   bool
	}{
		{"example.org.", true}, {"b.example.org.", true}, {"b.example.org.", true}, {"a.example.org.", false},
		{"example.org.", false}, {"x.b.example.org.", true}, {"a.b.example.org.", false}, {"c.example.org.", true},
	}
	for i, s := range steps {
		err := l.Add(rr.NewSet(dnsname.MustParse(s.name), rr.TypeA, 60, "1234"))
		if (err == nil) != s.ok {
			t.Errorf("step %d, Add(%s): %v", i, s.name, err)
		}
	}
	if got := l.Done().Names(); got != 4 {
		t.Errorf("Names() = %d, want 4", got)
	}
}

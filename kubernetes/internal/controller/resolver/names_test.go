package resolver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// TestNamesShared checks that a name in two objects is followed once for each. It is queried at several pods while one
// of the objects has several addresses for it.
func TestNamesShared(t *testing.T) {
	followed := map[dnsname.Name]int{}
	s := newNames(func(n dnsname.Name) { followed[n]++ }, func(n dnsname.Name) { followed[n]-- })
	exact, wild := types.NamespacedName{Name: "exact"}, types.NamespacedName{Name: "wild"}
	www := dnsname.MustParse("www.example.net")
	const many, one = "www.example.net.=192.0.2.1@3,192.0.2.2@3", "www.example.net.=192.0.2.1@3"
	const two, three = "www.example.net.=192.0.2.1@3,2001:db8::1@3",
		"www.example.net.=192.0.2.1@3,2001:db8::1@3,2001:db8::2@3"
	steps := []struct {
		key             types.NamespacedName
		object          string
		followed, width int
	}{
		{exact, "www.example.net. " + many, 1, maxPods},
		{wild, "*.example.net. " + one, 2, maxPods},
		{wild, "*.example.net.", 1, maxPods},
		{wild, "*.example.net. " + many, 2, maxPods},
		{exact, "www.example.net. " + one, 2, maxPods},
		{exact, "", 1, maxPods},
		{wild, "*.example.net. " + one, 1, 1},
		{wild, "*.example.net. " + two, 1, 1},
		{wild, "*.example.net. " + three, 1, maxPods},
		{wild, "*.example.net. " + two, 1, 1},
		{wild, "", 0, 1},
	}
	for i, step := range steps {
		if step.object == "" {
			s.set(step.key, nil)
		} else {
			s.set(step.key, object(step.object))
		}
		if followed[www] != step.followed || s.width(www) != step.width {
			t.Errorf("step %d: followed %d times, asked for at %d pods; want %d and %d", i, followed[www], s.width(www),
				step.followed, step.width)
		}
	}
	if len(s.many) != 0 || len(s.of) != 0 || len(s.under) != 0 {
		t.Errorf("left: %v, %v, %v", s.many, s.of, s.under)
	}
}

// TestHomeOfWildcards checks that names of a wildcard have the home of the first object that has them, and other names
// have one each.
func TestHomeOfWildcards(t *testing.T) {
	s := newNames(func(dnsname.Name) {}, func(dnsname.Name) {})
	exact, wild, deep := types.NamespacedName{Name: "exact"}, types.NamespacedName{Name: "wild"},
		types.NamespacedName{Name: "deep"}
	const two = " www.example.net.=192.0.2.1@3 ftp.example.net.=192.0.2.2@3"
	steps := []struct {
		key      types.NamespacedName
		object   string
		www, ftp string
	}{
		{exact, "www.example.net. www.example.net.=192.0.2.1@3", "www.example.net.", "ftp.example.net."},
		{wild, "*.example.net." + two, "/wild", "/wild"},
		{deep, "**.net." + two, "/wild", "/wild"},
		{exact, "", "/wild", "/wild"},
		{wild, "*.example.net. www.example.net.=192.0.2.1@3", "/wild", "ftp.example.net."},
		{deep, "**.net." + two, "/wild", "/deep"},
		{wild, "", "www.example.net.", "/deep"},
		{deep, "", "www.example.net.", "ftp.example.net."},
	}
	for i, step := range steps {
		if step.object == "" {
			s.set(step.key, nil)
		} else {
			s.set(step.key, object(step.object))
		}
		www, ftp := s.home(dnsname.MustParse("www.example.net")), s.home(dnsname.MustParse("ftp.example.net"))
		if www != step.www || ftp != step.ftp {
			t.Errorf("step %d: homes are %s and %s, want %s and %s", i, www, ftp, step.www, step.ftp)
		}
	}
}

func BenchmarkNames(b *testing.B) {
	var line strings.Builder
	line.WriteString("*.example.net.")
	for i := range 2000 {
		fmt.Fprintf(&line, " n%d.example.net.=192.0.2.1@3", i)
	}
	obj := object(line.String())
	s := newNames(func(dnsname.Name) {}, func(dnsname.Name) {})
	now := time.Now()
	for b.Loop() {
		s.set(key, obj)
		expired(obj, now, true, nothing)
	}
}

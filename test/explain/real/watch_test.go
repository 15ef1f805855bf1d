package real_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/explain/real"
)

var watches = flag.Int("watches", 4, "number of changes to watch until they are safe")

// TestWatchUnseen changes records that resolvers outside of the list have cached, and watches each change until it is
// safe. Then none of these resolvers may have the older answer.
func TestWatchUnseen(t *testing.T) {
	env := internet(t)
	list := filepath.Join(t.TempDir(), "resolvers")
	if err := os.WriteFile(list, fmt.Appendf(nil, "date 2026-11-15\nresolver known\n  v4 %s\n", env.Recursors[0].Addr),
		0o600); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex // guards took and late
	var took []time.Duration
	late := 0
	for i := range *watches {
		f := newFlip(999 + 3*i + i%2) // changed, or created
		wait.Go(func() {
			d, old := watchUnseen(t, env, f, list)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, d)
			late += old
		})
	}
	wait.Wait()
	slices.Sort(took)
	t.Logf("watched until safe: %d changes, of which three resolvers outside of the list had the older answer; "+
		"it ended %.1f s after the change (median), %.1f s at most; older answers after that: %d",
		len(took), took[len(took)/2].Seconds(), took[len(took)-1].Seconds(), late)
}

// watchUnseen runs one flip. It returns how long it was watched, and how many resolvers had the older answer
// afterwards.
func watchUnseen(t *testing.T, env *real.Environment, f flip, list string) (took time.Duration, late int) {
	if f.before != "" {
		if err := env.Set(t.Context(), f.name, f.before); err != nil {
			t.Error(err)
			return 0, 0
		}
	}
	unseen := env.Recursors[1:]
	for _, r := range unseen {
		if m := ask(t, r, f.name); slices.Contains(real.Data(m, dns.TypeA), f.want) {
			t.Errorf("%s has %s before it is there", r.Name, f.name)
		}
	}
	if err := env.Set(t.Context(), f.name, f.after); err != nil {
		t.Error(err)
		return 0, 0
	}
	changed := time.Now()
	out, code := run(t, "watch", f.name, "A", "--expect", "A="+f.want, "--until", "safe", "--every", "5s", "--resolvers",
		list, "--no-registry")
	took = time.Since(changed)
	if code != 0 || !strings.Contains(out, strings.TrimSuffix(f.name, ".")+" is safe. ") {
		t.Errorf("it ended with %d:\n%s", code, out)
	}
	for _, r := range unseen {
		if m := ask(t, r, f.name); !slices.Contains(real.Data(m, dns.TypeA), f.want) {
			t.Errorf("%s: %s has an older answer %v after the change, when everyone should have the new one:\n%s", f.kind,
				r.Name, took, out)
			late++
		}
	}
	return took, late
}

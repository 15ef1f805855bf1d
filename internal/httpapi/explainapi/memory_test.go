package explainapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// stalled is a client that does not read the body of a reply until gate is closed.
type stalled struct {
	*httptest.ResponseRecorder
	gate, begun chan struct{}
}

func (s stalled) Write(b []byte) (int, error) {
	if s.Code == http.StatusOK {
		s.begun <- struct{}{}
		<-s.gate
	}
	return len(b), nil
}

// inUse returns the bytes of the heap that are in use.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryAttack sends many requests of one project for large facts, whose clients do not read the replies. The
// budget must refuse most of them, and requests of another project must still be answered.
func TestMemoryAttack(t *testing.T) {
	const limit, requests = 128 << 20, 60
	r := newRig(t, scans.Options{Budget: budget.New(limit), Patience: 100 * time.Millisecond, Share: time.Nanosecond})
	r.large = func(f *explain.Facts) {
		if f.Name.String() != "large.example." {
			return
		}
		for range 40 {
			f.Exchanges = append(f.Exchanges, iterate.Exchange{Zone: f.Name,
				Question: iterate.Question{Name: f.Name, Type: rr.TypeA}, Reply: make([]byte, 50_000)})
		}
	}
	close(r.gate)
	large := r.ended(t, r.Admin, "large.example")
	again := r.ended(t, r.Admin, "large.example")
	theirs, _ := r.Token(t, "theirs", r.Project(t, "other").ID, "member")
	small := r.ended(t, theirs, "small.example")

	for _, path := range []string{large + "/raw", again + "/diff?with=" + large[strings.LastIndex(large, "/")+1:]} {
		before := inUse()
		gate, begun := make(chan struct{}), make(chan struct{}, requests*100)
		codes := make(chan int, requests)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				w := stalled{httptest.NewRecorder(), gate, begun}
				req := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
				req.Header.Set("X-Auth-Token", r.Admin)
				r.server.Config.Handler.ServeHTTP(w, req)
				codes <- w.Code
			})
		}
		select {
		case <-begun:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: no request is answered; one got the status %d", path, <-codes)
		}
		for range requests * 9 / 10 {
			select {
			case code := <-codes:
				if code != http.StatusServiceUnavailable {
					t.Errorf("%s: %d", path, code)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: more than a tenth of %d large replies are in memory", path, requests)
			}
		}
		if n := inUse() - before; n > limit/4 {
			t.Errorf("%s: the attack holds %d MiB of memory", path, n>>20)
		}
		for _, p := range []string{small + "/raw", small + "/report", small} {
			if res := r.do(t, theirs, "GET", p, ""); res.StatusCode != http.StatusOK {
				t.Errorf("another project during the attack: %s: %d", p, res.StatusCode)
			}
		}
		close(gate)
		all.Wait()
		res := r.do(t, r.Admin, "GET", path, "")
		if body, err := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || err != nil {
			t.Errorf("%s after the attack: %d %.100s %v", path, res.StatusCode, body, err)
		}
	}
}

// ended runs a scan until it has ended, and returns its path.
func (r *rig) ended(t *testing.T, token, target string) string {
	t.Helper()
	path := r.startAs(t, token, target)
	_, _ = io.Copy(io.Discard, r.do(t, token, "GET", path+"/events", "").Body)
	return path
}

package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// worker is a handler whose requests for /work run until the test finishes them.
type worker struct {
	accesstest.Rig
	handler http.Handler
	running atomic.Int32
	finish  chan struct{} // each value ends one request
}

func newWorker(t *testing.T, limits httpapi.Limits) *worker {
	t.Helper()
	w := &worker{Rig: accesstest.Open(t, nil), finish: make(chan struct{})}
	w.handler = httpapi.Frame{Access: w.Access, Limits: limits}.Wrap(http.HandlerFunc(w.serve))
	return w
}

func (w *worker) serve(rw http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/stream":
		rw.WriteHeader(http.StatusOK)
		<-w.finish
	case "/parse":
		n, _ := strconv.Atoi(r.URL.Query().Get("bytes"))
		if err := httpapi.TakeTurnFor(r.Context(), n); err != nil {
			httpapi.Fail(rw, r, err)
			return
		}
		w.running.Add(1)
		<-w.finish
		w.running.Add(-1)
		httpapi.EndTurn(r.Context())
		<-w.finish // the commit
	case "/memory":
		n, _ := strconv.ParseInt(r.URL.Query().Get("bytes"), 10, 64)
		if err := httpapi.Reserve(r.Context(), n); err != nil {
			httpapi.Fail(rw, r, err)
			return
		}
		fallthrough
	case "/work":
		w.running.Add(1)
		<-w.finish
		w.running.Add(-1)
	}
	rw.WriteHeader(http.StatusNoContent)
}

// start sends n requests and returns a channel for their replies.
func (w *worker) start(n int, method, path, token string) chan *httptest.ResponseRecorder {
	out := make(chan *httptest.ResponseRecorder, n)
	for range n {
		go func() { out <- send(w.handler, method, path, token) }()
	}
	synctest.Wait()
	return out
}

func (w *worker) wantRunning(t *testing.T, n int) {
	t.Helper()
	synctest.Wait()
	if got := int(w.running.Load()); got != n {
		t.Errorf("%d requests run, want %d", got, n)
	}
}

// TestTurnsOfLargeBodies sends many changes with large bodies. Only some of them may be parsed at a time. Small bodies
// need no turn, and commits hold none.
func TestTurnsOfLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, httpapi.Limits{})
		large := w.start(perProject+1, "POST", "/parse?bytes=1000000", w.Admin)
		w.wantRunning(t, perProject)
		small := w.start(1, "POST", "/parse?bytes=1000", w.Admin)
		w.wantRunning(t, perProject+1)
		for range perProject + 1 { // all of these commit
			w.finish <- struct{}{}
		}
		w.wantRunning(t, 1) // the last one has a turn while the others commit
		for range 2*(perProject+2) - perProject - 1 {
			w.finish <- struct{}{}
		}
		for range perProject + 1 {
			if r := <-large; r.Code != http.StatusNoContent {
				t.Errorf("a large body: %d", r.Code)
			}
		}
		if r := <-small; r.Code != http.StatusNoContent {
			t.Errorf("a small body: %d", r.Code)
		}
	})
}

// perProject is the number of reads of one project that run at a time.
var perProject = max(1, runtime.GOMAXPROCS(0)/2)

// TestTurnsOfListeners sends reads of one project to two listeners. Together they have the turns of one.
func TestTurnsOfListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := httpapi.Limits{Turns: httpapi.NewTurns()}
		w := newWorker(t, limits)
		first := w.start(perProject, "GET", "/work", w.Admin)
		w.handler = httpapi.Frame{Access: w.Access, Limits: limits, Listener: "other"}.Wrap(http.HandlerFunc(w.serve))
		second := w.start(1, "GET", "/work", w.Admin)
		w.wantRunning(t, perProject)
		for range perProject + 1 {
			w.finish <- struct{}{}
		}
		for range perProject {
			<-first
		}
		if r := <-second; r.Code != http.StatusNoContent {
			t.Errorf("the read at the other listener: %d", r.Code)
		}
	})
}

// TestTurns sends many reads of one project that take long. Only some of them may run, the others wait for their turn
// and are refused in the end. Reads of another project and all changes run at once.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, httpapi.Limits{})
		theirs, _ := w.Token(t, "theirs", w.Project(t, "other").ID, "member")
		reads := w.start(perProject+3, "GET", "/work", w.Admin)
		w.wantRunning(t, perProject)
		for name, r := range map[string]*httptest.ResponseRecorder{
			"a read of another project": send(w.handler, "GET", "/other", theirs),
			"a change":                  send(w.handler, "POST", "/other", w.Admin),
			"a public path":             send(w.handler, "GET", "/healthz", w.Admin),
		} {
			if r.Code != http.StatusNoContent {
				t.Errorf("%s: %d", name, r.Code)
			}
		}
		w.finish <- struct{}{}
		w.wantRunning(t, perProject) // the next in line
		if r := <-reads; r.Code != http.StatusNoContent {
			t.Errorf("the first read: %d", r.Code)
		}
		time.Sleep(11 * time.Second)
		for range 2 {
			if r := <-reads; r.Code != http.StatusServiceUnavailable || r.Header().Get("Retry-After") == "" {
				t.Errorf("a read that waits too long: %d %v", r.Code, r.Header())
			}
		}
		for range perProject {
			w.finish <- struct{}{}
		}
		w.wantRunning(t, 0)
	})
}

// TestTurnEndsWithReply checks that replies which are being sent do not keep other reads waiting: a client may read
// slowly.
func TestTurnEndsWithReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(t, httpapi.Limits{})
		w.start(perProject+3, "GET", "/stream", w.Admin)
		if r := send(w.handler, "GET", "/other", w.Admin); r.Code != http.StatusNoContent {
			t.Errorf("a read beside open streams: %d", r.Code)
		}
		for range perProject + 3 {
			w.finish <- struct{}{}
		}
	})
}

// TestNoTurnWithoutMemory checks that reads which wait for memory do not keep other reads waiting.
func TestNoTurnWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(8 << 30)
		w := newWorker(t, httpapi.Limits{Budget: memory})
		release, err := memory.Take(t.Context(), "somebody", 5<<30) // all that large work can have, up to 0.25 GiB
		if err != nil {
			t.Fatal(err)
		}
		reads := w.start(perProject+3, "GET", "/memory?bytes=300000000", w.Admin)
		w.wantRunning(t, 0)
		if r := send(w.handler, "GET", "/other", w.Admin); r.Code != http.StatusNoContent {
			t.Errorf("a read beside those that wait for memory: %d", r.Code)
		}
		release()
		w.wantRunning(t, perProject)
		for range perProject + 3 {
			w.finish <- struct{}{}
			if r := <-reads; r.Code != http.StatusNoContent {
				t.Errorf("a read that waited for memory: %d %s", r.Code, r.Body)
			}
		}
	})
}

package explain_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/test/server"
)

// ask sends a request and returns the status; 0 if there is no response.
func ask(s *server.Server, method, path, body string, out any) int {
	r, err := s.Call(method, path, body)
	if err != nil || json.Unmarshal(r.Body, out) != nil {
		return 0
	}
	return r.Status
}

// accept starts scans from several clients, kills the server as soon as it has accepted most of them, and returns those
// that it has accepted. A client may have up to six scans of one domain in a minute.
func accept(s *server.Server, life, most int) (all []scans.Scan) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			for n := i; ; n += 3 {
				var x scans.Scan
				body := fmt.Sprintf(`{"kind": "analyze", "target": "www.example.com", "expect": ["TXT=%d-%d"]}`, life, n)
				if ask(s, "POST", "/explain/v1/scans", body, &x) != http.StatusAccepted {
					return
				}
				mu.Lock()
				if all = append(all, x); len(all) == most {
					_ = s.Signal(syscall.SIGKILL)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return all
}

// TestKilled kills a server repeatedly while clients start scans, and checks that every accepted scan runs.
func TestKilled(t *testing.T) {
	dir := server.Dir(t)
	labDir := filepath.Join(dir, "lab")
	up := &server.Process{Name: "the lab", Command: []string{server.Binary(t), "lab", "up", "--dir", labDir},
		LogFile: filepath.Join(dir, "log")}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Kill)
	server.Eventually(t, "a lab that can be found", func() bool { _, err := lab.Load(labDir); return err == nil })
	settings := fmt.Sprintf("explain: {lab: %q}\n", labDir)
	start := func() *server.Server {
		return server.Start(t, server.Options{Dir: dir, Config: server.Listen + settings})
	}
	var accepted []scans.Scan
	for life, most := range []int{3, 5, 1, 6} {
		s := start()
		accepted = append(accepted, accept(s, life, most)...)
		s.End(syscall.SIGKILL)
	}
	restarted := time.Now()
	last := start()
	judge(t, last, accepted, restarted)
	var asked struct {
		Name      string
		Resolvers []struct{ ID string }
	}
	if code := ask(last, "GET", "/explain/v1/resolvers", "", &asked); code != http.StatusOK || asked.Name != "lab" ||
		len(asked.Resolvers) == 0 {
		t.Errorf("the resolvers of the lab: %d, %+v", code, asked)
	}
	checkService(t, last)
}

// checkService checks a service through the API, and that mistakes in its request are refused.
func checkService(t *testing.T, s *server.Server) {
	t.Helper()
	for body, want := range map[string]int{
		`{"kind": "service", "target": "www.example.com"}`:                          http.StatusBadRequest,
		`{"kind": "service", "target": "www.example.com", "objects": "a: ["}`:       http.StatusBadRequest,
		`{"kind": "scan", "target": "www.example.com", "points_to": "192.0.2.1"}`:   http.StatusBadRequest,
		`{"kind": "service", "target": "www.example.com", "points_to": "a b..c"}`:   http.StatusBadRequest,
		`{"kind": "service", "target": "www.example.com", "expect": ["A=1.2.3.4"]}`: http.StatusBadRequest,
	} {
		if got := ask(s, "POST", "/explain/v1/scans", body, new(any)); got != want {
			t.Errorf("%s: %d, want %d", body, got, want)
		}
	}
	var x scans.Scan
	body := `{"kind": "service", "target": "www.example.net", "points_to": "93.184.10.77"}`
	if got := ask(s, "POST", "/explain/v1/scans", body, &x); got != http.StatusAccepted {
		t.Fatalf("a service: %d", got)
	}
	server.Eventually(t, "the service", func() bool {
		return ask(s, "GET", "/explain/v1/scans/"+x.ID, "", &x) == http.StatusOK && x.State == scans.Done
	})
	var r report.Report
	if got := ask(s, "GET", "/explain/v1/scans/"+x.ID+"/report", "", &r); got != http.StatusOK || len(r.Links) != 8 ||
		r.Verdict == report.Working {
		t.Errorf("the report of the service: %d, %s, %+v", got, r.Summary, r.Links)
	}
}

// judge checks that every accepted scan ended, and that some of them were left to the last server.
func judge(t *testing.T, s *server.Server, accepted []scans.Scan, restarted time.Time) {
	t.Helper()
	var late, interrupted int
	for _, x := range accepted {
		var got scans.Scan
		server.Eventually(t, "scan of "+x.Request.Target, func() bool {
			got = scans.Scan{}
			return ask(s, "GET", "/explain/v1/scans/"+x.ID, "", &got) != http.StatusOK || got.State == scans.Done ||
				got.State == scans.Failed
		})
		if got.ID != x.ID || !got.Created.Equal(x.Created) {
			t.Errorf("scan %s of %s was accepted and is lost: %+v", x.ID, x.Request.Target, got)
			continue
		}
		if got.State == scans.Failed && got.Interrupted < 2 {
			t.Errorf("scan %s of %s: %s", x.ID, x.Request.Target, got.Problem)
		}
		if got.Ended.After(restarted) {
			late++
		}
		interrupted += min(1, got.Interrupted)
	}
	t.Logf("%d scans accepted, %d of them made after the last crash, %d interrupted", len(accepted), late, interrupted)
	if late == 0 || interrupted == 0 {
		t.Error("no scan was waiting or running when the server was killed: nothing was tested")
	}
}

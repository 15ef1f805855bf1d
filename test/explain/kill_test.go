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

// accept starts scans from several clients until the server is gone, and returns those that it has accepted.
func accept(s *server.Server, life int) (all []scans.Scan) {
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			for n := i; ; n += 3 {
				var x scans.Scan
				body := fmt.Sprintf(`{"kind": "analyze", "target": "www.example.com", "expect": ["TXT=%d-%d"]}`, life, n)
				switch ask(s, "POST", "/explain/v1/scans", body, &x) {
				case http.StatusAccepted:
					mu.Lock()
					all = append(all, x)
					mu.Unlock()
				case http.StatusTooManyRequests:
					time.Sleep(20 * time.Millisecond)
				case 0:
					return
				}
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
	settings := fmt.Sprintf("explain: {lab: %q, per_client: 100000, per_target: 100000, keep: 1000}\n", labDir)
	start := func() *server.Server {
		return server.Start(t, server.Options{Dir: dir, Config: server.Listen + settings})
	}
	var accepted []scans.Scan
	for life, lasts := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 100 * time.Millisecond,
		time.Second} {
		s := start()
		time.AfterFunc(lasts, func() { _ = s.Signal(syscall.SIGKILL) })
		accepted = append(accepted, accept(s, life)...)
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

package explain_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/lab"
)

// patience is how long anything may take before it counts as hanging.
const patience = 60 * time.Second

// served is a nameplane that looks at names in a lab.
type served struct {
	cmd        *exec.Cmd
	url, token string
}

// background starts a program that ends with the test at the latest.
func background(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	return cmd
}

// end kills a program as no program can prepare for.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// until waits for something that happens in another process.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func serve(t *testing.T, binary, config, data string) served {
	t.Helper()
	file := filepath.Join(data, "addresses.json")
	_ = os.Remove(file) // what a killed server left there would be taken for the new one's
	s := served{cmd: background(t, binary, "serve", "--config", config, "--data", data, "--dns", "127.0.0.1:0", "--http", "127.0.0.1:0")}
	var at struct{ HTTP string }
	until(t, "start of the server", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(text, &at) == nil
	})
	token, err := os.ReadFile(filepath.Join(data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.token = at.HTTP, strings.TrimSpace(string(token))
	return s
}

// ask makes a request; its status is 0 if there is no reply.
func (s served) ask(t *testing.T, method, path, body string, out any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", s.token)
	res, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	if json.NewDecoder(res.Body).Decode(out) != nil {
		return 0
	}
	return res.StatusCode
}

// accept asks for scans from several clients until the server is gone, and returns those that it has accepted.
func (s served) accept(t *testing.T, life int) (all []scans.Scan) {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i := range 3 {
		clients.Go(func() {
			for n := i; ; n += 3 {
				var x scans.Scan
				body := fmt.Sprintf(`{"kind": "analyze", "target": "www.example.com", "expect": ["TXT=%d-%d"]}`, life, n)
				switch s.ask(t, "POST", "/explain/v1/scans", body, &x) {
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

// openDir is a folder that a server which gives up root can still enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "explain-kill-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestKilled kills a server again and again while clients ask for scans, and sees that each scan that was accepted is made.
func TestKilled(t *testing.T) {
	dir := openDir(t)
	binary, place, data, config := filepath.Join(dir, "nameplane"), filepath.Join(dir, "lab"), filepath.Join(dir, "data"), filepath.Join(dir, "config.yaml")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/nameplane").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	settings := fmt.Sprintf("explain: {lab: %q, per_client: 100000, per_target: 100000, keep: 1000}\n", place)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, binary, "lab", "up", "--dir", place)
	until(t, "start of the lab", func() bool { _, err := lab.Load(place); return err == nil })
	var accepted []scans.Scan
	for life, lasts := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		s := serve(t, binary, config, data)
		time.AfterFunc(lasts, func() { _ = s.cmd.Process.Kill() })
		accepted = append(accepted, s.accept(t, life)...)
		end(s.cmd)
	}
	restarted := time.Now()
	last := serve(t, binary, config, data)
	judge(t, last, accepted, restarted)
	var asked struct {
		Name      string
		Resolvers []struct{ ID string }
	}
	if code := last.ask(t, "GET", "/explain/v1/resolvers", "", &asked); code != http.StatusOK || asked.Name != "lab" || len(asked.Resolvers) == 0 {
		t.Errorf("the resolvers of the lab: %d, %+v", code, asked)
	}
}

// judge sees that all scans that were accepted are made, and that some were left for the last server to make.
func judge(t *testing.T, s served, accepted []scans.Scan, restarted time.Time) {
	t.Helper()
	var late, interrupted int
	for _, x := range accepted {
		var got scans.Scan
		until(t, "scan of "+x.Request.Target, func() bool {
			got = scans.Scan{}
			return s.ask(t, "GET", "/explain/v1/scans/"+x.ID, "", &got) != http.StatusOK || got.State == scans.Done || got.State == scans.Failed
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

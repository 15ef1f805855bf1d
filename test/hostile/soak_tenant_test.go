//go:build soak

package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/test/server"
)

// The other tenant works in a process of its own. In the process of the attacks, its requests would wait for a turn of
// that process, and this wait would be counted as the time of the server.

// tenantProcess is set in the environment of the process of the other tenant.
const tenantProcess = "NAMEPLANE_TEST_TENANT"

// tenantWork is what the other tenant does: each worker changes its own record sets until the end.
type tenantWork struct {
	HTTP, DNS, Token string
	End              time.Time
	Workers          [][]worked
}

// worked is a record set that one worker changes: its path and the last acknowledged value.
type worked struct{ Name, Path, Value string }

// tenantResult is the outcome of the work.
type tenantResult struct {
	Took     []time.Duration // of each change, sorted
	Lost     int             // acknowledged changes that were not served
	Problems []string
	Workers  [][]worked
}

// TestMain runs the tests, or the work of the other tenant.
func TestMain(m *testing.M) {
	if os.Getenv(tenantProcess) == "" {
		os.Exit(m.Run())
	}
	var w tenantWork
	if err := json.NewDecoder(os.Stdin).Decode(&w); err != nil {
		fmt.Fprintln(os.Stderr, "the work of the tenant:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(w.do()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work lets the other tenant make changes for some time. It returns how long each took, sorted, and how many
// acknowledged changes were not served. It stores the acknowledged values in names.
func (b *besieged) work(d time.Duration, names [][]worked) (took []time.Duration, lost int) {
	b.t.Helper()
	in, err := json.Marshal(tenantWork{b.HTTP, b.DNS[0], b.victim, time.Now().Add(d), names})
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), "nice", "-n", "-19", os.Args[0]) // undoes lowerPriority
	cmd.Env = append(os.Environ(), tenantProcess+"=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	var r tenantResult
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		b.t.Fatalf("the other tenant: %v", err)
	}
	for _, p := range r.Problems {
		b.t.Error(p)
	}
	copy(names, r.Workers)
	return r.Took, r.Lost
}

// do makes the changes.
func (w *tenantWork) do() (out tenantResult) {
	var mu sync.Mutex // guards out
	var all sync.WaitGroup
	client := &http.Client{Timeout: server.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: len(w.Workers)}}
	for _, list := range w.Workers {
		all.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for i := 0; time.Now().Before(w.End); i++ {
				<-tick.C
				set, value := &list[i%len(list)], fmt.Sprintf("change %d", i)
				start := time.Now()
				err := w.put(client, set.Path, value)
				spent := time.Since(start)
				if err != nil {
					mu.Lock()
					out.Problems = append(out.Problems, fmt.Sprintf("change %d of %s: %v", i, set.Name, err))
					mu.Unlock()
					return
				}
				set.Value = value
				got := text(w.DNS, set.Name)
				mu.Lock()
				if out.Took = append(out.Took, spent); got != value {
					out.Lost++
					out.Problems = append(out.Problems, fmt.Sprintf("change %d of %s is acknowledged, and the answer is %s",
						i, set.Name, got))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(out.Took)
	out.Workers = w.Workers
	return out
}

// put changes the text of a record set.
func (w *tenantWork) put(client *http.Client, path, value string) error {
	body := strings.NewReader(fmt.Sprintf(`{"records":["\"%s\""]}`, value))
	req, err := http.NewRequest(http.MethodPut, w.HTTP+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Auth-Token", w.Token)
	r, err := client.Do(req)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	var reply bytes.Buffer
	if _, err := reply.ReadFrom(r.Body); err != nil {
		return err
	}
	if r.StatusCode >= 300 {
		return fmt.Errorf("status %d: %s", r.StatusCode, reply.String())
	}
	return nil
}

// text returns the served TXT record of a name, or the reason why there is none.
func text(addr, name string) string {
	a, err := server.Ask(addr, name, dns.TypeTXT)
	if err != nil || len(a.Answer) != 1 {
		return fmt.Sprint(a, err)
	}
	return strings.Join(a.Answer[0].(*dns.TXT).Txt, "")
}

// lowerPriority gives this process the lowest priority until the test ends. Attackers have machines of their own, so
// what they compute must not delay the server.
func lowerPriority(t *testing.T) {
	t.Helper()
	setPriority(t, 19)
	t.Cleanup(func() { setPriority(t, 0) })
}

// setPriority sets the priority of all threads. A thread that starts later has that of the thread that starts it.
func setPriority(t *testing.T, nice int) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
		}
		if err != nil && err != unix.ESRCH {
			t.Fatal(err)
		}
	}
}

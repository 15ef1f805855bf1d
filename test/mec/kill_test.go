package mec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nameplane/nameplane/test/server"
)

// rulesPerList is the number of rules of every version. One call sends them, so none may be visible without the others.
const rulesPerList = 10

// version returns all rules of an application, with one address for each version.
func version(app string, n int) string {
	var list []string
	for i := range rulesPerList {
		list = append(list, rule(fmt.Sprint("r", i), fmt.Sprintf("n%d.%s.example.com", i, app), addrOf(n), ""))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func addrOf(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }

// platform writes versions until the server is killed.
type platform struct {
	app   string
	acked int    // the newest acknowledged version
	tried int    // the newest version that was sent
	task  string // the task that writes tried, if versions are written by tasks

	after int    // the number of acknowledgements before kill is called
	kill  func() // kills the server a moment later; may be nil
}

// ack records that the server has acknowledged the version that was tried last.
func (p *platform) ack() {
	p.acked = p.tried
	if p.after--; p.after == 0 && p.kill != nil {
		p.kill()
	}
}

// TestKill kills a server between calls of Mm5 and their replies. After each start there must be one whole version: the
// newest acknowledged one, or the one that was in flight.
func TestKill(t *testing.T) {
	const cycles = 40
	dir := server.Dir(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	lists, tasks := &platform{app: "lists"}, &platform{app: "tasks"}
	cut, wanted := 0, 0
	for n := 0; n < cycles && !t.Failed(); n++ {
		s := start(t, dir, settings)
		cut += lists.settle(s) + tasks.settle(s)
		by, other := lists, tasks
		if n%2 == 1 {
			by, other = tasks, lists
		}
		moment := time.Duration(rnd.IntN(int(3 * time.Millisecond)))
		by.after, by.kill, other.kill = 1+rnd.IntN(5),
			func() { time.AfterFunc(moment, func() { _ = s.Signal(syscall.SIGKILL) }) }, nil
		wanted += by.after
		ended := make(chan struct{})
		go func() { defer close(ended); lists.put(s) }()
		tasks.configure(s)
		<-ended
		s.End(syscall.SIGKILL)
	}
	s := start(t, dir, settings)
	cut += lists.settle(s) + tasks.settle(s)
	t.Logf("%d versions by list and %d by task in %d runs of the server; %d were committed without an acknowledgement",
		lists.acked, tasks.acked, cycles, cut)
	if lists.acked+tasks.acked < wanted {
		t.Errorf("%d and %d versions, want %d or more", lists.acked, tasks.acked, wanted)
	}
}

// put replaces all rules again and again.
func (p *platform) put(s *node) {
	for {
		p.tried = p.acked + 1
		r, err := s.call("PUT "+s.MEP+"/mep/config/"+p.app+"/dns_rules", version(p.app, p.tried))
		if err != nil {
			return
		}
		if r.Status != 200 {
			s.t.Errorf("version %d: %d %s", p.tried, r.Status, r.Body)
			return
		}
		p.ack()
	}
}

// configure does the same with tasks, each after the end of the previous one.
func (p *platform) configure(s *node) {
	for {
		p.tried, p.task = p.acked+1, ""
		method := "PUT"
		if p.acked == 0 {
			method = "POST"
		}
		body := `{"appName":"` + p.app + `","appDNSRule":` + version(p.app, p.tried) + `}`
		r, err := s.call(method+" "+s.MEP+"/mepcfg/app_lcm/v1/applications/"+p.app+"/appd_configuration", body)
		if err != nil {
			return
		}
		state := "PROCESSING"
		for state == "PROCESSING" {
			var task struct{ TaskID, ConfigResult, Detailed string }
			if err := json.Unmarshal(r.Body, &task); err != nil || r.Status != 200 {
				s.t.Errorf("version %d: %d %s", p.tried, r.Status, r.Body)
				return
			}
			p.task, state = task.TaskID, task.ConfigResult
			if r, err = s.call("GET "+s.MEP+"/mepcfg/app_lcm/v1/tasks/"+p.task+"/appd_configuration", ""); err != nil &&
				state == "PROCESSING" {
				return
			}
		}
		if state != "SUCCESS" {
			s.t.Errorf("version %d: task %s", p.tried, r.Body)
			return
		}
		p.ack()
	}
}

// settle compares a restarted server with the expected versions. It returns 1 when a version was committed without an
// acknowledgement.
func (p *platform) settle(s *node) int {
	s.t.Helper()
	var list []struct {
		Addr string `json:"ipAddress"`
	}
	r := s.want(200, "GET "+s.MEP+"/mep/config/"+p.app+"/dns_rules", "")
	if err := json.Unmarshal(r.Body, &list); err != nil {
		s.t.Fatal(err)
	}
	have := p.acked
	if len(list) > 0 && list[0].Addr == addrOf(p.tried) {
		have = p.tried
	}
	if n := len(list); n != rulesPerList && (n != 0 || have != 0) {
		s.t.Errorf("%s has %d rules at version %d or %d", p.app, n, p.acked, p.tried)
	}
	for i, l := range list {
		if l.Addr != addrOf(have) {
			s.t.Errorf("%s: rule %d has %s, want version %d (%s)", p.app, i, l.Addr, have, addrOf(have))
		}
		s.says(fmt.Sprintf("n%d.%s.example.com A", i, p.app), addrOf(have)+"/30")
	}
	p.checkTask(s, have)
	made := have - p.acked
	p.acked = have
	return made
}

// checkTask checks that the interrupted task has the outcome of its version.
func (p *platform) checkTask(s *node, have int) {
	s.t.Helper()
	if p.task == "" || p.tried == p.acked {
		return
	}
	r := s.want(200, "GET "+s.MEP+"/mepcfg/app_lcm/v1/tasks/"+p.task+"/appd_configuration", "")
	want := `"configResult":"FAILURE"`
	if have == p.tried {
		want = `"configResult":"SUCCESS"`
	}
	if !strings.Contains(string(r.Body), want) {
		s.t.Errorf("%s has version %d, tried was %d, and its task is %s", p.app, have, p.tried, r.Body)
	}
}

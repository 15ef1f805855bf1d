package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// member is a tenant of a server.
type member struct {
	*server.Server
	t              *testing.T
	project, token string
}

// newMember creates a project with one member.
func newMember(t *testing.T, s *server.Server, project string) member {
	t.Helper()
	s.Must(http.MethodPost, "/access/v1/projects", map[string]string{"name": project}, nil)
	var made struct {
		Token struct {
			Token   string
			Project string `json:"project_id"`
		}
	}
	s.Must(http.MethodPost, "/access/v1/tokens", map[string]string{"name": project, "project": project, "role": "member"},
		&made)
	return member{s, t, made.Token.Project, made.Token.Token}
}

func (m member) call(method, path string, body any) server.Response {
	m.t.Helper()
	r, err := m.Call(method, path, body, "X-Auth-Token: "+m.token)
	if err != nil {
		m.t.Errorf("%s %s: %v", method, path, err)
	}
	return r
}

func (m member) must(method, path string, body, out any) {
	m.t.Helper()
	m.Must(method, path, body, out, "X-Auth-Token: "+m.token)
}

func (m member) zone(name string) string {
	m.t.Helper()
	var z struct{ ID string }
	m.must(http.MethodPost, "/v2/zones", map[string]any{"name": name, "email": "admin@example.org"}, &z)
	return "/v2/zones/" + z.ID
}

// aliases creates ALIAS record sets with one target, from the number first on, in one batch.
func (m member) aliases(zone, apex, target string, first, n int) server.Response {
	m.t.Helper()
	var changes []map[string]any
	for i := range n {
		changes = append(changes, map[string]any{"action": "create", "name": fmt.Sprintf("a%d.%s", first+i, apex),
			"type":    "ALIAS",
			"records": []string{target}})
	}
	return m.call(http.MethodPost, zone+"/changes", map[string]any{"changes": changes})
}

// TestManyAliasesOfOneName has a tenant create very many ALIAS with one target, and change that target repeatedly while
// another tenant works. Each commit flattens at most a hundred of them, all of them are updated in the end, and their
// number has a quota. The test counts these steps; BenchmarkBesideHostile measures how long the other tenant waits.
func TestManyAliasesOfOneName(t *testing.T) {
	const all = 350
	s := server.Start(t, server.Options{})
	hostile, victim := newMember(t, s, "hostile"), newMember(t, s, "victim")
	s.Must(http.MethodPatch, "/v2/quotas/"+hostile.project, map[string]int{"aliases": all}, nil,
		"X-Auth-All-Projects: true")
	target, many := hostile.zone("target.example."), hostile.zone("crowd.example.")
	var set struct{ ID string }
	hostile.must(http.MethodPost, target+"/recordsets",
		map[string]any{"name": "one.target.example.", "type": "A", "records": []string{"192.0.2.1"}}, &set)
	if r := hostile.aliases(many, "crowd.example.", "one.target.example.", 0, all); !r.OK() {
		t.Fatalf("%d ALIAS: %d %s", all, r.Status, r.Body)
	}
	if r := hostile.aliases(many, "crowd.example.", "one.target.example.", all,
		1); r.Status != http.StatusRequestEntityTooLarge ||
		!strings.Contains(string(r.Body), "over_quota") {
		t.Errorf("one more than the quota: %d %s", r.Status, r.Body)
	}
	if r := victim.aliases(victim.zone("victim.example."), "victim.example.", "one.target.example.", 0, 1); !r.OK() {
		t.Errorf("an ALIAS of another tenant: %d %s", r.Status, r.Body)
	}
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range 10 {
				hostile.call(http.MethodPut, target+"/recordsets/"+set.ID,
					map[string]any{"records": []string{fmt.Sprintf("192.0.%d.%d", w+3, i+1)}})
			}
		})
	}
	z := victim.zone("work.example.")
	for i := range 20 {
		victim.must(http.MethodPost, z+"/recordsets", map[string]any{"name": fmt.Sprintf("n%d.work.example.", i), "type": "A",
			"records": []string{"192.0.2.1"}}, nil)
	}
	workers.Wait()
	hostile.must(http.MethodPut, target+"/recordsets/"+set.ID, map[string]any{"records": []string{"203.0.113.9"}}, nil)
	for _, i := range []int{0, all / 2, all - 1} {
		server.Eventually(t, "the last address is everywhere", func() bool {
			a := s.Ask(fmt.Sprintf("a%d.crowd.example.", i), dns.TypeA)
			return len(a.Answer) == 1 && strings.HasSuffix(a.Answer[0].String(), "203.0.113.9")
		})
	}
	var history struct {
		History []struct {
			Note       string
			Recordsets []struct{ Flattened bool }
		}
	}
	hostile.must(http.MethodGet, many+"/history?limit=1000", nil, &history)
	for _, change := range history.History {
		n := 0
		for _, r := range change.Recordsets {
			if r.Flattened {
				n++
			}
		}
		if n > 100 && !strings.HasPrefix(change.Note, "batch") {
			t.Errorf("the change %q flattened %d ALIAS", change.Note, n)
		}
	}
}

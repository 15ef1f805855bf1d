//go:build soak

package hostile

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

var soakTime = flag.Duration("soak", 30*time.Second, "how long TestSoak attacks")

// TestSoak runs all attacks at once, under the limits of the files in deploy, while another tenant works. Then it kills
// the server: no acknowledged change of the other tenant may be missing. It logs how long the changes took; `make
// bench-hostile` runs it for ten minutes.
func TestSoak(t *testing.T) {
	b := besiege(t, unit(t))
	stop := make(chan struct{})
	var attacks sync.WaitGroup
	for name, attack := range b.attacks() {
		attacks.Go(func() {
			n := 0
			for ; ; n++ {
				select {
				case <-stop:
					t.Logf("%s: %d times", name, n)
					return
				case <-b.Done():
					return
				default:
					attack(n)
				}
			}
		})
	}
	took := b.work(time.Now().Add(*soakTime), 4)
	close(stop)
	attacks.Wait()
	if n := b.group.kills(t); n > 0 || b.Ended() {
		t.Fatalf("the server was killed (%d processes because of the memory limit)", n)
	}
	t.Logf("%d changes of the other tenant in %v: p50 %v, p99 %v, at most %v; memory at most %d MiB", len(took), *soakTime,
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], b.group.peak(t))
	b.Restart() // kill -9
	for i := range took {
		if a := b.Ask(workName(i), dns.TypeA); len(a.Answer) != 1 {
			t.Fatalf("an acknowledged change is lost: %s: %v", workName(i), a)
		}
	}
}

func workName(i int) string { return fmt.Sprintf("w%d.victim.example.org.", i) }

// work makes changes as the victim until the end, and returns how long each took, sorted. Each change must be in the
// answers when it is acknowledged.
func (b *besieged) work(end time.Time, workers int) (took []time.Duration) {
	var mu sync.Mutex // guards took; its length is also the number of the next name
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for time.Now().Before(end) && !b.Ended() {
				<-tick.C
				mu.Lock()
				i := len(took)
				took = append(took, 0)
				mu.Unlock()
				start := time.Now()
				r, err := b.Call(http.MethodPost, b.zone+"/recordsets", map[string]any{"name": workName(i), "type": "A",
					"records": []string{"192.0.2.1"}}, "X-Auth-Token: "+b.victim)
				spent := time.Since(start)
				if err != nil || r.Status != http.StatusCreated {
					b.t.Errorf("change %d: %d %s %v", i, r.Status, r.Body, err)
					return
				}
				if a, err := server.Ask(b.DNS[0], workName(i), dns.TypeA); err != nil || len(a.Answer) != 1 {
					b.t.Errorf("change %d is acknowledged and not answered: %v %v", i, a, err)
				}
				mu.Lock()
				took[i] = spent
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took
}

// attacks returns all attacks that a hostile tenant can repeat. Each is called with the number of the attempt.
func (b *besieged) attacks() map[string]func(int) {
	masters := tenants{b.Server, b.t}
	endlessly, silently := newMaster(b.t, "127.0.0.2", endless), newMaster(b.t, "127.0.0.3", silent)
	var copies []string
	for i := range 16 {
		copies = append(copies, masters.secondary(b.project, fmt.Sprintf("endless%d.example.", i), endlessly),
			masters.secondary(b.project, fmt.Sprintf("silent%d.example.", i), silently))
	}
	file := zoneFile("large.example.org.", 1_000_000)
	text := strings.TrimSpace(strings.Repeat(`"`+strings.Repeat("x", 250)+`" `, 250))
	sets, target := b.hostileZone("sets.example.org."), b.hostileZone("target.example.org.")
	aliases := b.hostileZone("aliases.example.org.")
	var address struct{ ID string }
	b.must(b.hostile, target+"/recordsets", map[string]any{"name": "one.target.example.org.", "type": "A",
		"records": []string{"192.0.2.1"}}, &address)
	for i := range 1000 {
		b.attack(http.MethodPost, aliases+"/recordsets",
			map[string]any{"name": fmt.Sprintf("a%d.aliases.example.org.", i), "type": "ALIAS",
				"records": []string{"one.target.example.org."}})
	}
	update := b.updater()
	return map[string]func(int){
		"transfer": func(n int) {
			_, _ = b.Call(http.MethodPost, copies[n%len(copies)]+"/tasks/xfr", nil, "X-Auth-All-Projects: true")
			time.Sleep(10 * time.Millisecond)
		},
		"import": func(int) { b.send(b.hostile, "text/dns", bytes.NewReader(file)) },
		"batches of large records": func(n int) {
			var changes []map[string]any
			for i := range 15 {
				changes = append(changes, map[string]any{"action": "create", "name": fmt.Sprintf("t%d-%d.sets.example.org.", n, i),
					"type":    "TXT",
					"records": []string{text}})
			}
			b.attack(http.MethodPost, sets+"/changes", map[string]any{"changes": changes})
		},
		"a name that a thousand ALIAS follow": func(n int) {
			b.attack(http.MethodPut, target+"/recordsets/"+address.ID,
				map[string]any{"records": []string{fmt.Sprintf("192.0.2.%d", n%250+1)}})
		},
		"zone transfer requests": func(int) {
			b.attack(http.MethodPost, target+"/tasks/transfer_requests", map[string]any{})
		},
		"lists":   func(int) { b.attack(http.MethodGet, "/v2/recordsets?data=*1*&limit=1000", nil) },
		"updates": update,
		"queries of names that do not exist": func(n int) {
			_, _ = server.Ask(b.DNS[0], fmt.Sprintf("x%d.large.example.org", n), dns.TypeA)
		},
	}
}

func (b *besieged) hostileZone(name string) string {
	b.t.Helper()
	var z struct{ ID string }
	b.must(b.hostile, "/v2/zones", map[string]any{"name": name, "email": "a@example.org"}, &z)
	return "/v2/zones/" + z.ID
}

// attack makes a request as the hostile tenant and ignores the result.
func (b *besieged) attack(method, path string, body any) {
	_, _ = b.Call(method, path, body, "X-Auth-Token: "+b.hostile)
}

// updater returns an attack with updates of 64 KiB.
func (b *besieged) updater() func(int) {
	zone := b.hostileZone("updates.example.org.")
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	b.Must(http.MethodPost, "/v2/tsigkeys", map[string]string{"name": "hostile-key", "algorithm": "hmac-sha256",
		"secret": secret,
		"scope":  "ZONE", "resource_id": strings.TrimPrefix(zone, "/v2/zones/")}, nil)
	client := &dns.Client{Net: "tcp", Timeout: server.Patience, TsigSecret: map[string]string{"hostile-key.": secret}}
	return func(n int) { _, _, _ = client.Exchange(updateBomb("hostile-key.", n), b.DNS[0]) }
}

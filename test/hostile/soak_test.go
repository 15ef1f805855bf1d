//go:build soak

package hostile

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/test/server"
)

var (
	soakTime = flag.Duration("soak", 30*time.Second, "how long TestSoak attacks")
	soakP99  = flag.Duration("p99", 0, "99th percentile of changes at which TestSoak fails; 0: never")
	eachTime = flag.Duration("each", 300*time.Millisecond, "how long TestBesideEach runs each attack")
	eachP50  = flag.Duration("p50", 0, "median of changes at which TestBesideEach fails; 0: never")
)

// everyAttack starts a server under the limits of the unit, and returns it with all attacks.
func everyAttack(t *testing.T) (*besieged, installation, map[string]func(int)) {
	t.Helper()
	in := everyListener(t)
	in.config += fmt.Sprintf("explain: {lab: %q}\n", startLab(t)) // scans must not leave this machine
	b := besiege(t, in)
	all := b.attacks()
	maps.Copy(all, b.apiAttacks())
	maps.Copy(all, b.answerAttacks())
	lowerPriority(t)
	return b, in, all
}

// start repeats attacks, each in its own goroutine, until stop is called. An attack that does not return once is an
// error.
func (b *besieged) start(t *testing.T, attacks map[string]func(int)) (stop func()) {
	ended := make(chan struct{})
	var running sync.WaitGroup
	for name, attack := range attacks {
		running.Go(func() {
			n := 0
			for ; ; n++ {
				select {
				case <-ended:
					if t.Logf("%s: %d times", name, n); n == 0 {
						t.Errorf("%s: the attack never returned", name)
					}
					return
				case <-b.Done():
					return
				default:
					attack(n)
				}
			}
		})
	}
	return func() {
		close(ended)
		running.Wait()
	}
}

// TestBesideEach runs one attack after the other, with eight workers, while another tenant makes changes. It logs how
// long the changes took beside each attack. `make bench-hostile` also checks the median.
func TestBesideEach(t *testing.T) {
	b, _, attacks := everyAttack(t)
	names := b.workNames(1, 50)
	table := "| attack | changes | p50 | p99 |\n|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(attacks)) {
		const workers = 8
		var next atomic.Int64
		all := map[string]func(int){}
		for w := range workers {
			all[fmt.Sprintf("%s, worker %d", name, w)] = func(int) { attacks[name](int(next.Add(1))) }
		}
		stop := b.start(t, all)
		took, lost := b.work(*eachTime, names)
		stop()
		if b.Ended() || lost > 0 || len(took) == 0 {
			t.Fatalf("%s: %d changes, %d lost, the server has ended: %v", name, len(took), lost, b.Ended())
		}
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		table += fmt.Sprintf("| %s | %d | %.1f ms | %.1f ms |\n", name, len(took), p50.Seconds()*1000, p99.Seconds()*1000)
		if *eachP50 > 0 && p50 >= *eachP50 {
			t.Errorf("%s: half of the changes take %v or longer; the limit is %v", name, p50, *eachP50)
		}
	}
	t.Log("\n" + table)
}

// TestSoak runs all attacks at once, under the limits of the unit, while another tenant works. Then it kills the
// server. Every acknowledged change of the other tenant is read back. `make bench-hostile` runs it for ten minutes, and
// checks the time of the changes.
func TestSoak(t *testing.T) {
	b, in, attacks := everyAttack(t)
	names := b.workNames(4, 50)
	stop := b.start(t, attacks)
	took, lost := b.work(*soakTime, names)
	stop()
	if n := b.group.kills(t); n > 0 || b.Ended() {
		t.Fatalf("the server was killed (%d processes because of the memory limit)", n)
	}
	peak, most := b.group.peak(t), in.memory>>20
	b.Restart() // kill -9
	for _, list := range names {
		for _, w := range list {
			if got := text(b.DNS[0], w.Name); got != w.Value {
				lost++
				t.Errorf("after kill -9, %s is %s, and %s was acknowledged", w.Name, got, w.Value)
			}
		}
	}
	p99 := took[len(took)*99/100]
	t.Logf("%d changes of the other tenant in %v, %d lost: p50 %v, p99 %v, at most %v; memory at most %d of %d MiB",
		len(took), *soakTime, lost, took[len(took)/2], p99, took[len(took)-1], peak, most)
	if lost > 0 {
		t.Errorf("%d acknowledged changes are lost", lost)
	}
	if peak > most {
		t.Errorf("the server used %d MiB, more than %d MiB", peak, most)
	}
	if *soakP99 > 0 && p99 >= *soakP99 {
		t.Errorf("the 99th percentile is %v, not less than %v", p99, *soakP99)
	}
}

// startLab starts a lab, and returns its folder.
func startLab(t *testing.T) string {
	t.Helper()
	dir := server.Dir(t)
	up := &server.Process{Name: "the lab", LogFile: filepath.Join(dir, "log"),
		Command: []string{server.Binary(t), "lab", "up", "--dir", filepath.Join(dir, "lab")}}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Kill)
	server.Eventually(t, "the lab is up", func() bool { _, err := lab.Load(filepath.Join(dir, "lab")); return err == nil })
	return filepath.Join(dir, "lab")
}

// workNames creates a fixed number of record sets for each worker, so that no quota ends the work.
func (b *besieged) workNames(workers, each int) [][]worked {
	b.t.Helper()
	all := make([][]worked, workers)
	for i := range all {
		for n := range each {
			w := worked{Name: fmt.Sprintf("w%d-%d.victim.example.org.", i, n), Value: "new"}
			var set struct{ ID string }
			b.must(b.victim, b.zone+"/recordsets",
				map[string]any{"name": w.Name, "type": "TXT", "records": []string{`"new"`}}, &set)
			w.Path = b.zone + "/recordsets/" + set.ID
			all[i] = append(all[i], w)
		}
	}
	return all
}

// attacks returns all attacks that a hostile tenant can repeat. Each is called with the number of the attempt.
func (b *besieged) attacks() map[string]func(int) {
	masters := tenants{b.Server, b.t}
	endlessly, silently := newMaster(b.t, "127.0.0.2", endless), newMaster(b.t, "127.0.0.3", silent)
	var copies, stalled []string
	for i := range 16 {
		copies = append(copies, masters.secondary(b.project, fmt.Sprintf("endless%d.example.", i), endlessly))
		stalled = append(stalled, masters.secondary(b.project, fmt.Sprintf("silent%d.example.", i), silently))
	}
	file := zoneFile("large.example.org.", fullImport)
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
	update, replay := b.updaters()
	session := b.sessions()
	return map[string]func(int){
		"endless transfers": func(n int) {
			_, _ = b.Call(http.MethodPost, copies[n%len(copies)]+"/tasks/xfr", nil, "X-Auth-All-Projects: true")
			time.Sleep(10 * time.Millisecond)
		},
		"stalled transfers": func(n int) {
			_, _ = b.Call(http.MethodPost, stalled[n%len(stalled)]+"/tasks/xfr", nil, "X-Auth-All-Projects: true")
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
		"lists, sixteen at a time": func(int) {
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() { b.attack(http.MethodGet, "/v2/recordsets?data=*1*&limit=1000", nil) })
			}
			all.Wait()
		},
		"lists that are not read": b.unreadLists(),
		"updates":                 update,
		"replayed updates":        replay,
		"failed logins": func(n int) {
			logIn(b.t, b.Server, "password",
				fmt.Sprintf(`{"user":{"name":"alice","domain":{"id":"default"},"password":"guess %d"}}`, n))
		},
		"sessions": session,
		"scans of names": func(n int) {
			b.attack(http.MethodPost, "/explain/v1/scans", map[string]any{"kind": "analyze",
				"target": "www.example.com", "expect": []string{fmt.Sprintf("TXT=%d", n)}})
		},
		"queries of names that do not exist": func(n int) {
			_, _ = server.Ask(b.DNS[0], fmt.Sprintf("x%d.large.example.org", n), dns.TypeA)
		},
	}
}

// attack makes a request as the hostile tenant and ignores the result.
func (b *besieged) attack(method, path string, body any) {
	_, _ = b.Call(method, path, body, "X-Auth-Token: "+b.hostile)
}

// updaters returns attacks with updates of 64 KiB, and with an update that was executed already.
func (b *besieged) updaters() (update, replay func(int)) {
	zone := b.hostileZone("updates.example.org.")
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for _, key := range []string{"hostile-key", "replayed-key"} {
		b.Must(http.MethodPost, "/v2/tsigkeys", map[string]string{"name": key, "algorithm": "hmac-sha256",
			"secret": secret, "scope": "ZONE", "resource_id": strings.TrimPrefix(zone, "/v2/zones/")}, nil)
	}
	client := &dns.Client{Net: "tcp", Timeout: server.Patience, TsigSecret: map[string]string{"hostile-key.": secret}}
	m := new(dns.Msg).SetUpdate("updates.example.org.")
	m.Insert([]dns.RR{record("replayed.updates.example.org. 60 IN A 192.0.2.1")})
	m.SetTsig("replayed-key.", dns.HmacSHA256, 300, time.Now().Unix())
	recorded, _, err := dns.TsigGenerate(m, secret, "", false)
	if err != nil {
		b.t.Fatal(err)
	}
	if r := exchangeRaw(b.t, b.Server, recorded); r.Rcode != dns.RcodeSuccess {
		b.t.Fatalf("the update that is replayed later: %v", r)
	}
	var replays atomic.Bool
	return func(n int) { _, _, _ = client.Exchange(updateBomb("hostile-key.", n), b.DNS[0]) }, func(int) {
		conn, err := dns.DialTimeout("tcp", b.DNS[0], server.Patience)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(server.Patience))
		if _, err := conn.Write(recorded); err != nil {
			return
		}
		if r, _ := conn.ReadMsg(); r != nil && r.Rcode == dns.RcodeSuccess && !replays.Swap(true) {
			b.t.Errorf("a replayed update was executed: %v", r)
		}
	}
}

// sessions returns an attack that opens a session with the token of the hostile tenant, opens another with that one,
// and ends the first.
func (b *besieged) sessions() func(int) {
	b.Must(http.MethodPost, "/access/v1/users",
		map[string]string{"name": "alice", "password": alicePassword, "role": "member"}, nil)
	return func(int) {
		first := logIn(b.t, b.Server, "token", fmt.Sprintf(`{"id":%q}`, b.hostile)).Header.Get("X-Subject-Token")
		logIn(b.t, b.Server, "token", fmt.Sprintf(`{"id":%q}`, first))
		_, _ = b.Call(http.MethodDelete, "/v3/auth/tokens", nil, "X-Auth-Token: "+first, "X-Subject-Token: "+first)
	}
}

// unreadLists returns an attack that requests large lists and does not read them. It holds sixty connections.
func (b *besieged) unreadLists() func(int) {
	const most = 60
	var mu sync.Mutex // guards open
	var open []net.Conn
	b.t.Cleanup(func() {
		for _, conn := range open {
			conn.Close()
		}
	})
	addr := strings.TrimPrefix(b.HTTP, "http://")
	dialer := smallReader("")
	return func(int) {
		conn, err := dialer.Dial("tcp", addr)
		if err != nil {
			return
		}
		mu.Lock()
		if len(open) == most {
			open[0].Close()
			open = open[1:]
		}
		open = append(open, conn)
		mu.Unlock()
		request := "GET /v2/recordsets?limit=1000 HTTP/1.1\r\nHost: " + addr + "\r\nX-Auth-Token: " + b.hostile + "\r\n\r\n"
		_, _ = conn.Write([]byte(strings.Repeat(request, 8)))
		time.Sleep(20 * time.Millisecond)
	}
}

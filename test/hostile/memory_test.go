package hostile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// besieged is a server under the limits of the files in deploy, with a hostile tenant and a victim.
type besieged struct {
	*server.Server
	t       *testing.T
	group   group
	hostile string // token of the hostile tenant
	victim  string
	project string // ID of the hostile tenant's project
	zone    string // path of the victim's zone
	changes int
}

func besiege(t *testing.T, in installation) *besieged {
	t.Helper()
	b := &besieged{t: t}
	b.Server, b.group = in.start(t)
	for _, tld := range []string{"org", "example"} { // the shipped configurations forward: no other zones for tenants
		b.Must(http.MethodPost, "/v2/tlds", map[string]string{"name": tld}, nil)
	}
	b.hostile, b.project = b.tenant("hostile")
	b.victim, _ = b.tenant("victim")
	var z struct{ ID string }
	b.must(b.victim, "/v2/zones", map[string]any{"name": "victim.example.org.", "email": "a@example.org"}, &z)
	b.zone = "/v2/zones/" + z.ID
	return b
}

// tenant returns the token of a member of a new project, and the ID of the project.
func (b *besieged) tenant(project string) (token, id string) {
	b.t.Helper()
	var p struct{ Project struct{ ID string } }
	b.Must(http.MethodPost, "/access/v1/projects", map[string]string{"name": project}, &p)
	var made struct{ Token struct{ Token string } }
	b.Must(http.MethodPost, "/access/v1/tokens", map[string]string{"name": project, "project": project, "role": "member"},
		&made)
	return made.Token.Token, p.Project.ID
}

func (b *besieged) must(token, path string, body, out any) {
	b.t.Helper()
	r, err := b.Call(http.MethodPost, path, body, "X-Auth-Token: "+token)
	if err != nil || !r.OK() || json.Unmarshal(r.Body, out) != nil {
		b.t.Fatalf("POST %s: %d %s %v", path, r.Status, r.Body, err)
	}
}

// hostileZone creates a zone of the hostile tenant and returns its path.
func (b *besieged) hostileZone(name string) string {
	b.t.Helper()
	var z struct{ ID string }
	b.must(b.hostile, "/v2/zones", map[string]any{"name": name, "email": "a@example.org"}, &z)
	return "/v2/zones/" + z.ID
}

// alive checks that the server serves, and that the victim can make a change.
func (b *besieged) alive(after string) {
	b.t.Helper()
	if n := b.group.kills(b.t); n > 0 || b.Ended() {
		b.t.Fatalf("after %s: the server was killed (%d processes because of the memory limit)", after, n)
	}
	b.changes++
	name := fmt.Sprintf("h%d.victim.example.org.", b.changes)
	r, err := b.Call(http.MethodPost, b.zone+"/recordsets",
		map[string]any{"name": name, "type": "A", "records": []string{"192.0.2.1"}},
		"X-Auth-Token: "+b.victim)
	if err != nil || r.Status != http.StatusAccepted {
		b.t.Fatalf("after %s: the victim's change: %d %s %v", after, r.Status, r.Body, err)
	}
	if a := b.Ask(name, dns.TypeA); len(a.Answer) != 1 {
		b.t.Fatalf("after %s: %v", after, a)
	}
	b.t.Logf("after %s: at most %d MiB", after, b.group.peak(b.t))
}

// fullImport is the number of records of the largest zone file that the shipped configurations accept: 32 MiB.
const fullImport = 32<<20/36 - 10

// zoneFile returns a zone file with a number of addresses. Its lines are 36 bytes long.
func zoneFile(name string, records int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "$ORIGIN %s\n$TTL 300\n@ SOA ns1.example.net. a.example.org. 1 3600 600 86400 300\n"+
		"@ NS ns1.example.net.\n", name)
	for i := range records {
		fmt.Fprintf(&b, "host%010d 300 A 198.51.100.%d\n", i, i%100+100)
	}
	return b.Bytes()
}

// send sends a zone file and waits for the import. It returns the status of the import and its error message. When the
// file is refused, it returns the status of the reply.
func (b *besieged) send(token, media string, body io.Reader) (status, message string) {
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.HTTP+"/v2/zones/tasks/imports", body)
	if err != nil {
		return "", err.Error()
	}
	req.Header.Set("X-Auth-Token", token)
	req.Header.Set("Content-Type", media)
	r, err := b.Send(req)
	if err != nil || !r.OK() {
		return fmt.Sprint(r.Status), fmt.Sprint(string(r.Body), err)
	}
	var task struct{ ID, Status, Message string }
	for err = json.Unmarshal(r.Body, &task); err == nil && task.Status == "PENDING"; {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-b.Done():
			return "", "the server has ended"
		}
		if r, err = b.Call(http.MethodGet, "/v2/zones/tasks/imports/"+task.ID, nil, "X-Auth-Token: "+token); err == nil {
			err = json.Unmarshal(r.Body, &task)
		}
	}
	if err != nil {
		return "", err.Error()
	}
	return task.Status, task.Message
}

// TestMemory starts the server with the limits and the configurations of the files in deploy, and sends it everything
// that takes memory. The server may refuse, with a reason. It must not die, and another tenant must be able to work.
func TestMemory(t *testing.T) {
	t.Run("manifest", func(t *testing.T) {
		b := besiege(t, manifest(t))
		t.Run("endless transfers", b.endlessTransfers)
		t.Run("large imports", b.largeImport)
		t.Run("parallel imports", b.parallelImports)
		t.Run("record sets", b.recordSets)
		t.Run("updates", b.updates)
		t.Run("zone texts", b.zoneTexts)
	})
	t.Run("unit", func(t *testing.T) { // the same memory and less threads: only what takes the most of both
		b := besiege(t, everyListener(t))
		t.Run("endless transfers", b.endlessTransfers)
		t.Run("zone texts", b.zoneTexts)
		t.Run("endpoints", b.endpoints)
		t.Run("answers", func(t *testing.T) { b.unreadAnswers(t, "tcp", 768, b.largeAnswer()) })
	})
}

// endlessTransfers gives sixteen zones of the hostile tenant a master whose transfers never end. The quota ends them,
// and for a project without quotas the memory budget.
func (b *besieged) endlessTransfers(t *testing.T) {
	zones := tenants{b.Server, t}
	bad := newMaster(t, "127.0.0.2", endless)
	var paths []string
	for i := range 16 {
		paths = append(paths, zones.secondary(b.project, fmt.Sprintf("endless%d.example.", i), bad))
	}
	for _, reason := range []string{"zone_records", "of memory"} {
		for _, path := range paths {
			server.Eventually(t, "a transfer is given up: "+reason, func() bool {
				return b.Ended() || strings.Contains(zones.read(path).Copy.Problem, reason)
			})
		}
		b.alive("endless transfers that are given up: " + reason)
		b.Must(http.MethodPatch, "/v2/quotas/"+b.project, `{"zone_records": -1, "zone_recordsets": -1}`, nil,
			"X-Auth-All-Projects: true")
		for _, path := range paths {
			b.Must(http.MethodPost, path+"/tasks/xfr", nil, nil, "X-Auth-All-Projects: true")
		}
	}
	for _, path := range paths {
		b.Must(http.MethodDelete, path, nil, nil, "X-Auth-All-Projects: true")
	}
	b.Must(http.MethodDelete, "/v2/quotas/"+b.project, nil, nil, "X-Auth-All-Projects: true")
}

// largeImport sends zone files of 36 MB and of http.max_import as a tenant, and one as an administrator, who has no
// quota.
func (b *besieged) largeImport(t *testing.T) {
	for records, want := range map[int]string{1_000_000: "the body is larger than",
		fullImport: "Quota exceeded for zone_records"} {
		file := bytes.NewReader(zoneFile("large.example.org.", records))
		if status, message := b.send(b.hostile, "text/dns", file); !strings.Contains(message, want) {
			t.Errorf("a tenant's import of %d records: %s %s, want %q", records, status, message, want)
		}
	}
	b.alive("a tenant's import")
	file := bytes.NewReader(zoneFile("large.example.org.", min(bombs*250_000, fullImport)))
	status, message := b.send(b.Token, "text/dns", file)
	if status != "COMPLETE" && !strings.Contains(message, "raise the memory limit of the server") {
		t.Errorf("an administrator's import: %s %s", status, message)
	}
	b.alive("an administrator's import")
}

// parallelImports sends as many zone files at a time as the server accepts, in both forms. Together they are more than
// it could commit.
func (b *besieged) parallelImports(t *testing.T) {
	var sent sync.WaitGroup
	for i := range 16 {
		name := fmt.Sprintf("parallel%d.example.org.", i)
		sent.Go(func() {
			media, body := "text/dns", zoneFile(name, bombs*25_000)
			if i%4 == 3 {
				media = "application/json"
				body, _ = json.Marshal(map[string]string{"zonefile": string(zoneFile(name, bombs*100_000))}) // 3.4 MB, or 14
			}
			status, message := b.send(b.Token, media, bytes.NewReader(body))
			if status != "COMPLETE" && status != "503" && !strings.Contains(message, "memory") &&
				!strings.Contains(message, "too many imports") {
				t.Errorf("import %d: %s %s", i, status, message)
			}
		})
	}
	sent.Wait()
	b.alive("16 imports")
}

// recordSets fills a zone with batches of the largest possible records, over many connections.
func (b *besieged) recordSets(t *testing.T) {
	var z struct{ ID string }
	b.must(b.hostile, "/v2/zones", map[string]any{"name": "sets.example.org.", "email": "a@example.org"}, &z)
	text := strings.TrimSpace(strings.Repeat(`"`+strings.Repeat("x", 250)+`" `, 250)) // 62 KiB
	refused := map[int]int{}
	var mu sync.Mutex
	var sent sync.WaitGroup
	for w := range 16 {
		sent.Go(func() {
			for i := range bombs {
				var changes []map[string]any
				for n := range 15 {
					changes = append(changes, map[string]any{"action": "create",
						"name": fmt.Sprintf("t%d-%d-%d.sets.example.org.", w, i, n),
						"type": "TXT", "records": []string{text}})
				}
				r, err := b.Call(http.MethodPost, "/v2/zones/"+z.ID+"/changes", map[string]any{"changes": changes},
					"X-Auth-Token: "+b.hostile)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				refused[r.Status]++
				mu.Unlock()
			}
		})
	}
	sent.Wait()
	if refused[http.StatusRequestEntityTooLarge] == 0 || refused[http.StatusInternalServerError] > 0 {
		t.Errorf("batches of 1 MB by status: %v", refused)
	}
	b.alive("batches of 1 MB")
}

// powerDNSZones is the path of zones in the PowerDNS API.
const powerDNSZones = "/api/v1/servers/localhost/zones"

// generateBomb returns a request of 2 KiB to the PowerDNS API that creates a zone with n records of 2 KiB.
func generateBomb(name string, n int) map[string]any {
	text := strings.TrimSpace(strings.Repeat(`"`+strings.Repeat("x", 250)+`" `, 7))
	return map[string]any{"name": name, "kind": "Native", "zone": fmt.Sprintf("$GENERATE 1-%d a$ 300 TXT %s\n", n, text)}
}

// zoneTexts creates zones from short texts that produce as many bytes as possible, over many connections, as a tenant
// and as an administrator, who has no quota.
func (b *besieged) zoneTexts(t *testing.T) {
	var sent sync.WaitGroup
	for i := range 16 * bombs {
		sent.Go(func() {
			token, records, want := b.hostile, 19_990, "Quota exceeded for bytes of a zone"
			if i%4 == 3 {
				token, records, want = b.Token, 65_535, "raise the memory limit of the server"
			}
			r, err := b.Call(http.MethodPost, powerDNSZones, generateBomb(fmt.Sprintf("text%d.example.org.", i), records),
				"X-Auth-Token: "+token)
			if err != nil || r.Status != http.StatusServiceUnavailable && !strings.Contains(string(r.Body), want) {
				t.Errorf("zone text %d: %d %.200s %v, want %q", i, r.Status, r.Body, err, want)
			}
		})
	}
	sent.Wait()
	b.alive("zone texts")
}

// endpoints sends 12 MB of the shortest endpoints to both paths of external-dns at a time.
func (b *besieged) endpoints(t *testing.T) {
	empty := strings.TrimSuffix(strings.Repeat("{},", 4_000_000), ",")
	var sent sync.WaitGroup
	for path, body := range map[string]string{"/adjustendpoints": "[" + empty + "]",
		"/records": `{"create":[` + empty + "]}"} {
		sent.Go(func() {
			r, err := b.Call(http.MethodPost, b.ExternalDNS+path, body, "X-Auth-Token: "+b.hostile)
			if err != nil || !r.OK() && r.Status != http.StatusServiceUnavailable {
				t.Errorf("POST %s: %d %.200s %v", path, r.Status, r.Body, err)
			}
		})
	}
	sent.Wait()
	b.alive("endpoints")
}

// updates sends updates of 64 KiB over many connections with a key of the hostile tenant's zone.
func (b *besieged) updates(t *testing.T) {
	var z struct{ ID string }
	b.must(b.hostile, "/v2/zones", map[string]any{"name": "updates.example.org.", "email": "a@example.org"}, &z)
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	refused := map[string]int{}
	var mu sync.Mutex
	var sent sync.WaitGroup
	for w := range 16 {
		key := fmt.Sprintf("hostile-key%d.", w)
		b.Must(http.MethodPost, "/v2/tsigkeys", map[string]string{"name": key, "algorithm": "hmac-sha256", "secret": secret,
			"scope": "ZONE", "resource_id": z.ID}, nil)
		sent.Go(func() {
			client := &dns.Client{Net: "tcp", Timeout: server.Patience, TsigSecret: map[string]string{key: secret}}
			for i := range bombs {
				reply, _, err := client.Exchange(updateBomb(key, w*bombs+i), b.DNS[0])
				// The server does not sign a reply to a message that it did not read.
				if err != nil && (reply == nil || !errors.Is(err, dns.ErrAuth)) {
					t.Errorf("update: %v", err)
					return
				}
				mu.Lock()
				refused[dns.RcodeToString[reply.Rcode]]++
				mu.Unlock()
			}
		})
	}
	sent.Wait()
	if refused["REFUSED"] == 0 {
		t.Errorf("updates of 64 KiB by their answers: %v", refused)
	}
	b.alive("updates of 64 KiB")
}

// updateBomb returns an update that adds 2,000 record sets.
func updateBomb(key string, n int) *dns.Msg {
	m := new(dns.Msg).SetUpdate("updates.example.org.")
	m.Compress = true
	for i := range 2000 {
		m.Ns = append(m.Ns, &dns.A{Hdr: dns.RR_Header{Name: fmt.Sprintf("u%d-%d.updates.example.org.", n, i),
			Rrtype: dns.TypeA,
			Class:  dns.ClassINET, Ttl: 60}, A: []byte{192, 0, 2, 1}})
	}
	m.SetTsig(key, dns.HmacSHA256, 300, time.Now().Unix())
	return m
}

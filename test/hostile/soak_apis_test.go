//go:build soak

package hostile

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// apiAttacks returns attacks with the PowerDNS API and the webhook of external-dns.
func (b *besieged) apiAttacks() map[string]func(int) {
	b.hostileZone("pdns.example.org.")
	b.hostileZone("webhook.example.org.")
	webhook := func(path, body string) {
		_, _ = b.Call(http.MethodPost, b.ExternalDNS+path, body, "X-Auth-Token: "+b.hostile)
	}
	endpoints := func(first, n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"dnsName":"h%d.webhook.example.org","targets":["192.0.2.1"],"recordType":"A"}`, first+i)
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	changes := func(ttl int) map[string]any {
		var sets []map[string]any
		for i := range 1000 {
			sets = append(sets, map[string]any{"name": fmt.Sprintf("p%d.pdns.example.org.", i), "type": "A", "ttl": ttl,
				"changetype": "REPLACE", "records": []map[string]any{{"content": "192.0.2.1", "disabled": false}}})
		}
		return map[string]any{"rrsets": sets}
	}
	many, some := endpoints(0, 60_000), endpoints(0, 500)
	empty := strings.TrimSuffix(strings.Repeat("{},", 400_000), ",")
	slow := "*" + strings.Repeat("?", 200) + "*" + strings.Repeat("x", 50) + "!"
	return map[string]func(int){
		"PowerDNS: zone texts": func(n int) {
			b.attack(http.MethodPost, powerDNSZones, generateBomb(fmt.Sprintf("text%d.example.org.", n), 19_990))
		},
		"PowerDNS: zones of 1,000 records": func(n int) {
			name := fmt.Sprintf("zone%d.example.org.", n)
			b.attack(http.MethodPost, powerDNSZones, generateBomb(name, 1000))
			b.attack(http.MethodDelete, powerDNSZones+"/"+name, nil)
		},
		"PowerDNS: changes of 1,000 record sets": func(n int) {
			b.attack(http.MethodPatch, powerDNSZones+"/pdns.example.org.", changes(60+n%1000))
		},
		"PowerDNS: searches, four at a time": func(int) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					b.attack(http.MethodGet, "/api/v1/servers/localhost/search-data?q="+url.QueryEscape(slow), nil)
				})
			}
			all.Wait()
		},
		"external-dns: 60,000 record sets": func(int) { webhook("/records", `{"create":`+many+`}`) },
		"external-dns: 500 record sets":    func(int) { webhook("/records", `{"create":`+some+`}`) },
		"external-dns: no record sets":     func(int) { webhook("/records", `{"delete":`+some+`}`) },
		"external-dns: empty endpoints":    func(int) { webhook("/adjustendpoints", "["+empty+"]") },
	}
}

// answerAttacks returns attacks that ask for the largest answers over each transport and do not read them. Each holds a
// hundred connections.
func (b *besieged) answerAttacks() map[string]func(int) {
	const most = 100
	query := b.largeAnswer()
	out := map[string]func(int){}
	for i, transport := range []string{"tcp", "tls", "https", "quic"} {
		var mu sync.Mutex // guards open
		var open []func()
		b.t.Cleanup(func() {
			for _, end := range open {
				end()
			}
		})
		out["answers over "+transport+" that are not read"] = func(int) {
			end, _ := b.neverRead(transport, fmt.Sprintf("127.0.2.%d", i+1), query) // the server may be busy
			mu.Lock()
			defer mu.Unlock()
			if end != nil {
				open = append(open, end)
			}
			if len(open) > most {
				open[0]()
				open = open[1:]
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return out
}

package hostile

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestUnreadReplies asks for the largest pages of a list over many connections and reads none of them. The server must
// stay below its memory limit, and the requests of another tenant must succeed.
func TestUnreadReplies(t *testing.T) {
	in := unit(t)
	b := besiege(t, in)
	var z struct{ ID string }
	b.must(b.hostile, "/v2/zones", map[string]any{"name": "replies.example.org.", "email": "a@example.org"}, &z)
	text := strings.TrimSpace(strings.Repeat(`"`+strings.Repeat(`\255`, 250)+`" `, 190)) // 48 KB
	for i := range 43 {
		b.must(b.hostile, "/v2/zones/"+z.ID+"/recordsets", map[string]any{"name": fmt.Sprintf("t%d.replies.example.org.", i),
			"type": "TXT", "records": []string{text}}, new(struct{}))
	}
	at, err := url.Parse(b.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	for range 250 {
		c, err := net.Dial("tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, err = fmt.Fprintf(c, "GET /v2/zones/%s/recordsets?limit=max HTTP/1.1\r\nHost: %s\r\n"+
			"X-Auth-Token: %s\r\n\r\n", z.ID, at.Host, b.hostile)
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 8 {
		time.Sleep(500 * time.Millisecond)
		b.alive("250 replies that nobody reads")
		r, err := b.Call(http.MethodGet, b.zone+"/recordsets", nil, "X-Auth-Token: "+b.victim)
		if err != nil || r.Status != http.StatusOK {
			t.Fatalf("the victim's list: %d %s %v", r.Status, r.Body, err)
		}
	}
	// A project has a quarter of the budget. The replies took 858 MiB when requests that waited for memory held data.
	if peak, most := b.group.peak(t), in.memory>>21; peak > most {
		t.Errorf("the server used %d MiB, more than half of its limit", peak)
	}
}

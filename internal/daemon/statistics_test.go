package daemon

import (
	"strings"
	"testing"
)

// TestStatistics checks that the counters in the form of PowerDNS count queries.
func TestStatistics(t *testing.T) {
	h := openServer(t, nil)
	h.ask("www.example.org.")
	h.ask("www.example.org.")
	code, body := h.call(plain, h.Endpoints().HTTP, "GET", "/api/v1/servers/localhost/statistics", h.admin, "")
	for _, want := range []string{`{"name":"udp-queries","type":"StatisticItem","value":"2"}`,
		`{"name":"udp4-queries","type":"StatisticItem","value":"2"}`, `"uptime"`,
		`{"name":"tcp-queries","type":"StatisticItem","value":"0"}`} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%d %s, want %s", code, body, want)
		}
	}
}

package daemon

import (
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/config"
)

// resolver is a resolver on loopback whose answers can be changed.
type resolver struct {
	addr string

	mu      sync.Mutex // guards the fields below
	answers map[string]string
	asked   int
}

func newResolver(t *testing.T) *resolver {
	t.Helper()
	r := &resolver{answers: map[string]string{}}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = conn.LocalAddr().String()
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		_ = w.WriteMsg(r.answer(q))
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	return r
}

func (r *resolver) set(name, records string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[name] = records
}

// answer returns the A records of a known name, NODATA for other types, and NXDOMAIN for other names.
func (r *resolver) answer(q *dns.Msg) *dns.Msg {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	m := new(dns.Msg).SetReply(q)
	name := q.Question[0].Name
	soa, _ := dns.NewRR("example.net. 30 IN SOA ns.example.net. host.example.net. 1 2 3 4 30")
	records, ok := r.answers[name]
	switch {
	case !ok:
		m.Rcode, m.Ns = dns.RcodeNameError, []dns.RR{soa}
	case q.Question[0].Qtype != dns.TypeA:
		m.Ns = []dns.RR{soa}
	default:
		for _, a := range strings.Fields(records) {
			rec, _ := dns.NewRR(name + " 60 IN A " + a)
			m.Answer = append(m.Answer, rec)
		}
	}
	return m
}

// eventually waits until ok returns true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("this never happened: %s", what)
}

func (h *server) ask(name string) string {
	h.t.Helper()
	r, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), h.Endpoints().DNS[0])
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, rec := range r.Answer {
		if a, ok := rec.(*dns.A); ok {
			out = append(out, a.A.String())
		}
	}
	return strings.Join(out, " ")
}

// do calls the API and fails the test when the call does not succeed.
func (h *server) do(method, path, body string) map[string]any {
	h.t.Helper()
	code, text := h.call(plain, h.Endpoints().HTTP, method, path, h.admin, body)
	if code/100 != 2 {
		h.t.Fatalf("%s %s = %d %s", method, path, code, text)
	}
	var out map[string]any
	_ = json.Unmarshal([]byte(text), &out)
	return out
}

// TestAliasServed creates ALIAS records through the API and checks the answers: with resolvers on loopback, after a
// reload with other resolvers, and after a restart.
func TestAliasServed(t *testing.T) {
	first, second := newResolver(t), newResolver(t)
	first.set("cdn.example.net.", "203.0.113.1")
	first.set("inner.example.net.", "10.0.0.1")
	second.set("cdn.example.net.", "203.0.113.2")
	second.set("inner.example.net.", "10.0.0.1")
	h := openServer(t, func(c *config.Config) { c.Follow.Resolvers = []string{first.addr} })
	zone := "/v2/zones/" + h.do("POST", "/v2/zones", `{"name":"example.org.","email":"a@example.org"}`)["id"].(string)
	alias := zone + "/recordsets/" + h.do("POST", zone+"/recordsets",
		`{"name":"example.org.","type":"ALIAS","records":["cdn.example.net."]}`)["id"].(string)
	inner := zone + "/recordsets/" + h.do("POST", zone+"/recordsets",
		`{"name":"in.example.org.","type":"ALIAS","records":["inner.example.net."]}`)["id"].(string)
	status := func(path, want string) func() bool {
		return func() bool { return h.do("GET", path, "")["status"] == want }
	}
	eventually(t, "the ALIAS is active", status(alias, "ACTIVE"))
	if got := h.ask("example.org."); got != "203.0.113.1" {
		t.Errorf("served %q", got)
	}
	eventually(t, "a private target is refused", status(inner, "ERROR"))
	_, metrics := h.call(plain, h.Endpoints().HTTP, "GET", "/metrics", h.admin, "")
	for _, want := range []string{`nameplane_alias_records{status="ACTIVE"} 1`,
		`nameplane_alias_records{status="ERROR"} 1`, "nameplane_follow_names 2",
		`nameplane_follow_resolver_up{server="` + first.addr + `"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	next := h.cfg
	next.Follow.Resolvers, next.Follow.AllowPrivate = []string{second.addr}, true
	h.load = func() (config.Config, error) { return next, nil }
	h.Reload()
	eventually(t, "a private target is taken", status(inner, "ACTIVE"))
	eventually(t, "the ALIAS has what the other resolver says", func() bool {
		h.call(plain, h.Endpoints().HTTP, "POST", alias+"/tasks/flatten", h.admin, "")
		return h.ask("example.org.") == "203.0.113.2"
	})
	if strings.Contains(h.log.String(), "take effect with the next start") {
		t.Errorf("the log says that a restart is needed:\n%s", h.log)
	}
}

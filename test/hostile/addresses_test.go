package hostile

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv6"

	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
	"github.com/nameplane/nameplane/test/server"
)

// insideVariable is the environment variable of the process that has its own network namespace.
const insideVariable = "NAMEPLANE_TEST_ADDRESSES"

// TestSpecialAddresses has a tenant and an application use addresses that only the server can reach: as masters, as
// targets of ALIAS and as callbacks. It runs in a network namespace in which every address of the internet is this
// host, so every packet of the server is observed.
func TestSpecialAddresses(t *testing.T) {
	if os.Getenv(insideVariable) == "" {
		runInNamespace(t)
		return
	}
	for _, args := range []string{"link set lo up", "route add local default dev lo",
		"-6 route add local default dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", args, err, out)
		}
	}
	w := &addressServer{t: t, met: map[string]bool{}}
	w.listenTCP(":53", ":80")
	w.listenUDP()
	config := fmt.Sprintf(server.Listen+`user: root
apps: {listen: '127.0.0.1:0'}
mep: {listen: '127.0.0.1:0', authentication: none}
mec: {callbacks: {networks: [0.0.0.0/0, '::/0']}}
follow: {resolvers: ['%s'], interval: 10s, ttl_floor: 1s}
`, w.resolver())
	w.Server = server.Start(t, server.Options{Config: config})
	w.Must(http.MethodPost, "/access/v1/projects", map[string]string{"name": "eve"}, nil)
	w.tenant = w.token(map[string]string{"name": "eve", "project": "eve", "role": "member"})
	w.laterNAT64(config + fmt.Sprintf("nat64: ['%s']\n", specialaddrtest.Prefix))
	t.Run("masters", w.masters)
	t.Run("targets", w.targets)
	t.Run("callbacks", w.callbacks)
	for met := range w.packets() {
		if !strings.Contains(met, " 9.9.9.9 ") {
			t.Errorf("the server sent something to %s", met)
		}
	}
}

// runInNamespace runs the test again in a new network namespace.
func runInNamespace(t *testing.T) {
	env, err := server.BuildEnv()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-n", os.Args[0], "-test.run=^TestSpecialAddresses$", "-test.v"}
	if os.Geteuid() != 0 {
		args = slices.Insert(args, 0, "-r")
	}
	cmd := exec.CommandContext(t.Context(), "unshare", args...)
	cmd.Env = append(env, insideVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestSpecialAddresses/callbacks") {
		t.Fatalf("in a network namespace: %v\n%s", err, out)
	}
}

// addressServer is a server on a host that has all addresses.
type addressServer struct {
	*server.Server
	t      *testing.T
	tenant string // header with a token

	mu  sync.Mutex      // guards met
	met map[string]bool // "NETWORK ADDRESS PORT" of the packets that the server sent
}

// refused returns all addresses that only an administrator may use.
func refused() []netip.Addr { return slices.Concat(specialaddrtest.Hostile, specialaddrtest.Private) }

func (w *addressServer) token(of map[string]string) string {
	w.t.Helper()
	var made struct{ Token struct{ Token string } }
	w.Must(http.MethodPost, "/access/v1/tokens", of, &made)
	return "X-Auth-Token: " + made.Token.Token
}

func (w *addressServer) meet(network string, at netip.AddrPort) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.met[fmt.Sprintf("%s %s %d", network, at.Addr().Unmap(), at.Port())] = true
}

func (w *addressServer) packets() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.met)
}

// listenTCP records every connection to the ports of any address, and closes it.
func (w *addressServer) listenTCP(ports ...string) {
	for _, port := range ports {
		l, err := net.Listen("tcp", port)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				w.meet("tcp", c.LocalAddr().(*net.TCPAddr).AddrPort())
				_ = c.Close()
			}
		}()
	}
}

// listenUDP records every packet to port 53 of any address, and does not answer.
func (w *addressServer) listenUDP() {
	conn, err := net.ListenPacket("udp", ":53")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	p := ipv6.NewPacketConn(conn)
	if err := p.SetControlMessage(ipv6.FlagDst, true); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			_, control, _, err := p.ReadFrom(buf)
			if err != nil {
				return
			}
			to, _ := netip.AddrFromSlice(control.Dst)
			w.meet("udp", netip.AddrPortFrom(to, 53))
		}
	}()
}

// resolver starts the resolver of the server and returns its address. Each name of the form N.evil.example has the
// address with that number; ok.evil.example has a public one.
func (w *addressServer) resolver() string {
	l, conn, err := server.ListenBoth()
	if err != nil {
		w.t.Fatal(err)
	}
	handler := dns.HandlerFunc(func(rw dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.RecursionAvailable = true
		name, typ := q.Question[0].Name, q.Question[0].Qtype
		addr, n := netip.MustParseAddr("9.9.9.9"), 0
		if _, err := fmt.Sscanf(name, "%d.evil.example.", &n); err == nil {
			addr = refused()[n]
		}
		hdr := dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET, Ttl: 60}
		switch {
		case typ == dns.TypeA && addr.Is4():
			m.Answer = []dns.RR{&dns.A{Hdr: hdr, A: addr.AsSlice()}}
		case typ == dns.TypeAAAA && addr.Is6():
			m.Answer = []dns.RR{&dns.AAAA{Hdr: hdr, AAAA: addr.AsSlice()}}
		default:
			soa, _ := dns.NewRR("evil.example. 60 SOA ns.evil.example. a.evil.example. 1 60 60 60 60")
			m.Ns = []dns.RR{soa}
		}
		_ = rw.WriteMsg(m)
	})
	for _, s := range []*dns.Server{{Listener: l, Handler: handler}, {PacketConn: conn, Handler: handler}} {
		go func() { _ = s.ActivateAndServe() }()
		w.t.Cleanup(func() { _ = s.Shutdown() })
	}
	return l.Addr().String()
}

// laterNAT64 names a master in the inner network while the server does not know the prefix of the NAT64 that leads
// there. A server that knows the prefix does not query the master.
func (w *addressServer) laterNAT64(config string) {
	w.t.Helper()
	w.Must(http.MethodPost, "/v2/zones", map[string]any{"name": "later.example.", "type": "SECONDARY",
		"masters": []string{"2a0f:64::10.1.2.3"}}, nil, w.tenant)
	server.Eventually(w.t, "a packet to the master", func() bool { return w.packets()["udp 2a0f:64::a01:203 53"] })
	w.Configure(config)
	w.End(syscall.SIGKILL)
	w.mu.Lock()
	clear(w.met)
	w.mu.Unlock()
	w.Restart()
	server.Eventually(w.t, "a refused master in the log", func() bool {
		return strings.Contains(w.Log(), "2a0f:64::10.1.2.3: is a private address")
	})
}

// masters checks that the API refuses the addresses as masters of new and existing zones, with a reason.
func (w *addressServer) masters(t *testing.T) {
	create := func(name, master string) server.Response {
		body := map[string]any{"name": name, "type": "SECONDARY", "masters": []string{master}}
		r, err := w.Call(http.MethodPost, "/v2/zones", body, w.tenant)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, a := range refused() {
		r := create("inner.example.", a.String())
		if r.Status != http.StatusForbidden || !strings.Contains(string(r.Body), "address") {
			t.Errorf("the master %s of a new zone: %d %s", a, r.Status, r.Body)
		}
	}
	var z struct{ ID string }
	w.Must(http.MethodPost, "/v2/zones", map[string]any{"name": "copy.example.", "type": "SECONDARY",
		"masters": []string{"9.9.9.9"}}, &z, w.tenant)
	for _, a := range refused() {
		r, err := w.Call(http.MethodPatch, "/v2/zones/"+z.ID, map[string]any{"masters": []string{a.String()}}, w.tenant)
		if err != nil || r.Status != http.StatusForbidden {
			t.Errorf("the new master %s: %d %s %v", a, r.Status, r.Body, err)
		}
	}
	server.Eventually(t, "a packet to the master with a public address", func() bool {
		return w.packets()["udp 9.9.9.9 53"] || w.packets()["tcp 9.9.9.9 53"]
	})
}

// targets checks that an ALIAS does not publish the addresses.
func (w *addressServer) targets(t *testing.T) {
	var z struct{ ID string }
	w.Must(http.MethodPost, "/v2/zones", map[string]any{"name": "shop.example.", "email": "a@shop.example"}, &z,
		w.tenant)
	alias := func(label string) (path string) {
		var set struct{ ID string }
		w.Must(http.MethodPost, "/v2/zones/"+z.ID+"/recordsets", map[string]any{"name": label + ".shop.example.",
			"type": "ALIAS", "records": []string{label + ".evil.example."}}, &set, w.tenant)
		return "/v2/zones/" + z.ID + "/recordsets/" + set.ID
	}
	paths := make([]string, len(refused()))
	for i := range refused() {
		paths[i] = alias(fmt.Sprint(i))
	}
	alias("ok")
	server.Eventually(t, "an ALIAS with a public address", func() bool {
		return len(w.Ask("ok.shop.example.", dns.TypeA).Answer) == 1
	})
	for i, a := range refused() {
		var set struct {
			Status string
			Alias  struct{ Cause, Detail string }
		}
		server.Eventually(t, "the status of the ALIAS to "+a.String(), func() bool {
			w.Must(http.MethodGet, paths[i], nil, &set, w.tenant)
			return set.Status != "PENDING"
		})
		said := strings.HasSuffix(set.Alias.Cause, "-address") && strings.Contains(set.Alias.Detail, a.String()+" is a")
		if set.Status != "ERROR" || !said {
			t.Errorf("the ALIAS to %s: %+v", a, set)
		}
		for _, typ := range []uint16{dns.TypeA, dns.TypeAAAA} {
			if r := w.Ask(fmt.Sprintf("%d.shop.example.", i), typ); len(r.Answer) > 0 {
				t.Errorf("the ALIAS to %s is answered: %v", a, r.Answer)
			}
		}
	}
}

// callbacks checks that the addresses are refused as callbacks. The administrator allows the whole internet, which does
// not include special addresses.
func (w *addressServer) callbacks(t *testing.T) {
	app := strings.Replace(w.token(map[string]string{"name": "app", "project": "admin", "role": "app", "app": "app1"}),
		"X-Auth-Token: ", "Authorization: Bearer ", 1)
	subscriptions := w.Apps + "/mec_app_support/v1/applications/app1/subscriptions"
	subscribe := func(host string) server.Response {
		r, err := w.Call(http.MethodPost, subscriptions, map[string]string{
			"subscriptionType": "DnsRuleChangeNotificationSubscription", "callbackReference": "http://" + host + "/"}, app)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, a := range refused() {
		r := subscribe(strings.TrimSuffix(netip.AddrPortFrom(a, 80).String(), ":80"))
		if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "outside the networks") {
			t.Errorf("a callback at %s: %d %s", a, r.Status, r.Body)
		}
	}
	// A name is resolved only when there is something to deliver.
	named, public := subscribe("localhost"), subscribe("9.9.9.9")
	if named.Status != http.StatusCreated || public.Status != http.StatusCreated {
		t.Fatalf("callbacks: %d %s, %d %s", named.Status, named.Body, public.Status, public.Body)
	}
	w.Must(http.MethodPost, w.MEP+"/mep/config/app1/dns_rules", map[string]string{"dnsRuleId": "r",
		"domainName": "www.example.com", "ipAddressType": "IP_V4", "ipAddress": "192.0.2.1"}, nil)
	server.Eventually(t, "a call of the callback with a public address", func() bool {
		return w.packets()["tcp 9.9.9.9 80"]
	})
	translated, err := w.Call(http.MethodPost, w.MEP+"/mep/config/app1/dns_rules", map[string]string{"dnsRuleId": "t",
		"domainName": "t.example.com", "ipAddressType": "IP_V6", "ipAddress": "2a0f:64::169.254.169.254"})
	if err != nil || translated.Status != http.StatusBadRequest {
		t.Errorf("a rule with a translated metadata address: %d %s %v", translated.Status, translated.Body, err)
	}
	var s struct{ LastError string }
	server.Eventually(t, "an error of the callback by name", func() bool {
		w.Must(http.MethodGet, named.Header.Get("Location"), nil, &s, app)
		return s.LastError != ""
	})
	if !strings.Contains(s.LastError, "outside the networks") {
		t.Errorf("a callback by a name of this host: %s", s.LastError)
	}
}

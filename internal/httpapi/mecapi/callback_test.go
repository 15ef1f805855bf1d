package mecapi_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func withCallbacks(t *testing.T, networks []netip.Prefix) *server {
	t.Helper()
	cb := mecapi.NewCallbacks(networks, specialaddr.Table{}, false)
	return startServer(t, mecapi.API{Callbacks: cb}, mec.Options{Deliver: cb.Deliver})
}

func subscribeTo(uri string) string {
	return `{"subscriptionType":"DnsRuleChangeNotificationSubscription","callbackReference":"` + uri +
		`","appInstanceId":"app1"}`
}

// TestSubscriptions creates, reads and deletes a subscription on every base path.
func TestSubscriptions(t *testing.T) {
	for _, base := range bases {
		t.Run(base, func(t *testing.T) {
			s := withCallbacks(t, loopback)
			got := make(chan string, 10)
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				got <- r.Method + " " + r.Header.Get("Content-Type") + " " + string(b)
				w.WriteHeader(http.StatusNoContent)
			}))
			defer receiver.Close()
			all := base + "/applications/app1/subscriptions"
			s.want(s.as(app1, 200, "GET "+all, "").json,
				`{"_links":{"self":{"href":"http://192.0.2.53`+all+`"},"subscriptions":[]}}`)
			made := s.as(app1, 201, "POST "+all, subscribeTo(receiver.URL+"/cb"))
			self := made.Header().Get("Location")
			one, ok := strings.CutPrefix(self, "http://192.0.2.53")
			if !ok || !strings.HasPrefix(one, all+"/") {
				t.Fatalf("Location %q", self)
			}
			s.want(made.json, `{"subscriptionType":"DnsRuleChangeNotificationSubscription",
				"callbackReference":"`+receiver.URL+`/cb",
				"appInstanceId":"app1","_links":{"self":{"href":"`+self+`"}},"state":"ACTIVE","lastSequence":0}`)
			s.want(s.as(app1, 200, "GET "+one, "").json, made.Body.String())
			const typ = "DnsRuleChangeNotificationSubscription"
			s.want(s.as(app1, 200, "GET "+all, "").json, `{"_links":{"self":{"href":"http://192.0.2.53`+all+`"},"subscriptions":[
				{"href":"`+self+`","subscriptionType":"`+typ+`","rel":"`+typ+`"}]}}`)

			s.rule("app2", strings.Replace(rule1, "www", "other", 1))
			s.rule("app1", rule1)
			text := <-got
			head, body, _ := strings.Cut(text, "{")
			var n map[string]any
			if err := json.Unmarshal([]byte("{"+body), &n); err != nil || head != "POST application/json " {
				t.Fatalf("notification %q: %v", text, err)
			}
			delete(n, "timeStamp")
			id := one[len(all)+1:]
			s.want(any(n), `{"notificationType":"DnsRuleChangeNotification","appInstanceId":"app1","changeType":"CREATED",
				"sequence":2,"dnsRule":`+rule1+`,
				"_links":{"subscription":{"href":"/mec_app_support/v2/applications/app1/subscriptions/`+id+`"}}}`)

			s.as(gateway, 404, "GET "+strings.Replace(one, "app1", "app2", 1), "")
			s.as(app1, 405, "PUT "+one, "{}")
			s.as(app1, 204, "DELETE "+one, "")
			s.as(app1, 404, "DELETE "+one, "")
			s.as(app1, 404, "GET "+one, "")
		})
	}
}

func TestBadSubscriptions(t *testing.T) {
	s := withCallbacks(t, loopback)
	good := subscribeTo("http://127.0.0.1:8080/cb")
	tests := []struct{ name, body, field string }{
		{"other type", strings.Replace(good, "DnsRuleChange", "AppTermination", 1), "subscriptionType"},
		{"no type", `{"callbackReference":"http://127.0.0.1/"}`, "subscriptionType"},
		{"other application", strings.Replace(good, "app1", "app2", 1), "appInstanceId"},
		{"no callback", `{"subscriptionType":"DnsRuleChangeNotificationSubscription"}`, "callbackReference"},
		{"not a URI", subscribeTo("http://a b/"), "callbackReference"},
		{"another scheme", subscribeTo("ftp://127.0.0.1/"), "callbackReference"},
		{"a file", subscribeTo("file:///etc/passwd"), "callbackReference"},
		{"opaque", subscribeTo("http:127.0.0.1"), "callbackReference"},
		{"no host", subscribeTo("http:///x"), "callbackReference"},
		{"a password", subscribeTo("http://u:p@127.0.0.1/"), "callbackReference"},
		{"a fragment", subscribeTo("http://127.0.0.1/#x"), "callbackReference"},
		{"port 0", subscribeTo("http://127.0.0.1:0/"), "callbackReference"},
		{"port 65536", subscribeTo("http://127.0.0.1:65536/"), "callbackReference"},
		{"another network", subscribeTo("http://192.0.2.1/"), "callbackReference"},
		{"another network, mapped", subscribeTo("http://[::ffff:192.0.2.1]/"), "callbackReference"},
		{"a zone", subscribeTo("http://[fe80::1%25lo]/"), "callbackReference"},
		{"too long", subscribeTo("http://127.0.0.1/" + strings.Repeat("a", 2048)), "callbackReference"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := s.as(app1, 400, "POST /applications/app1/subscriptions", tt.body)
			if !strings.HasPrefix(res.detail(), tt.field+": ") {
				t.Errorf("detail %q does not name %s", res.detail(), tt.field)
			}
		})
	}
	s.as(app1, 201, "POST /applications/app1/subscriptions", subscribeTo("http://[::ffff:127.0.0.1]:1/"))
	s.as(app1, 201, "POST /applications/app1/subscriptions", subscribeTo("https://callback.test/x?y=z"))
	none := newServer(t, mecapi.API{})
	none.as(app1, 403, "POST /applications/app1/subscriptions", good)
}

// TestSpecialCallbacks checks that allowing the whole internet does not allow this host, its networks or the metadata
// service of its cloud.
func TestSpecialCallbacks(t *testing.T) {
	internet := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	cb := mecapi.NewCallbacks(internet, specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}, false)
	event := mec.Event{Seq: 1, Rule: mec.Rule{Addr: netip.MustParseAddr("192.0.2.1")}}
	for _, a := range slices.Concat(specialaddrtest.Hostile, specialaddrtest.Private) {
		uri := "http://" + netip.AddrPortFrom(a, 80).String() + "/"
		if err := cb.Check(uri); err == nil || !strings.Contains(err.Error(), "outside the networks") {
			t.Errorf("Check(%s): %v", uri, err)
		}
		if err := cb.Deliver(t.Context(), mec.Subscription{Callback: uri}, event); err == nil ||
			!strings.Contains(err.Error(), "outside the networks") {
			t.Errorf("Deliver to %s: %v", uri, err)
		}
	}
	for _, a := range specialaddrtest.Public {
		if err := cb.Check("http://" + netip.AddrPortFrom(a, 80).String() + "/"); err != nil {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// TestDeliverElsewhere checks that the address of the connection is checked, and that redirects are not followed.
func TestDeliverElsewhere(t *testing.T) {
	asked := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer receiver.Close()
	event := mec.Event{Seq: 1, Kind: "CREATED",
		Rule: mec.Rule{App: "app1", ID: "r1", Addr: netip.MustParseAddr("192.0.2.1")}}
	sub := mec.Subscription{ID: "s1", App: "app1", Callback: receiver.URL + "/cb"}

	outside := mecapi.NewCallbacks([]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, specialaddr.Table{}, false)
	if err := outside.Deliver(t.Context(), sub, event); err == nil ||
		!strings.Contains(err.Error(), "outside the networks") || len(asked) != 0 {
		t.Errorf("a callback outside the networks: %v, and %d requests", err, len(asked))
	}
	if err := outside.Deliver(t.Context(), sub, event); strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("an application learns the address of a name outside the networks: %v", err)
	}
	inside := mecapi.NewCallbacks(loopback, specialaddr.Table{}, false)
	if err := inside.Deliver(t.Context(), sub, event); err == nil || !strings.Contains(err.Error(), "307") ||
		len(asked) != 1 {
		t.Errorf("a callback that redirects: %v, and %d requests", err, len(asked))
	}
}

// TestDeliverToOthers checks that an application learns nothing about replies of ports that are not callbacks.
func TestDeliverToOthers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Write([]byte("HTTP/1.1 secret-banner\r\n"))
			_ = c.Close()
		}
	}()
	cb := mecapi.NewCallbacks(loopback, specialaddr.Table{}, false)
	event := mec.Event{Seq: 1, Rule: mec.Rule{Addr: netip.MustParseAddr("192.0.2.1")}}
	sub := mec.Subscription{Callback: "http://" + l.Addr().String()}
	if err := cb.Deliver(t.Context(), sub, event); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a port that speaks something else: %v", err)
	}
	_ = l.Close()
	if err := cb.Deliver(t.Context(), sub, event); err == nil || strings.Contains(err.Error(), "refused") {
		t.Errorf("a port where nobody is: %v", err)
	}
}

// TestDeliverNoProxy checks that notifications do not use a proxy from the environment.
func TestDeliverNoProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the proxy was asked")
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	cb := mecapi.NewCallbacks(loopback, specialaddr.Table{}, false)
	event := mec.Event{Seq: 1, Rule: mec.Rule{Addr: netip.MustParseAddr("192.0.2.1")}}
	// An address for which the proxy of the environment would be used. No connection to it may be made.
	if err := cb.Deliver(t.Context(), mec.Subscription{Callback: "http://192.0.2.1/"}, event); err == nil {
		t.Error("delivered to an address outside the networks")
	}
}

package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

// counted counts the fetches of the list of servers.
func (w *network) counted() *atomic.Int32 {
	n := new(atomic.Int32)
	serve := w.web["data.iana.org"]
	w.web["data.iana.org"] = func(rw http.ResponseWriter, r *http.Request) { n.Add(1); serve(rw, r) }
	w.web["rdap.registry.example"] = func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(404) }
	return n
}

func TestBootstrapIsKept(t *testing.T) {
	tests := []struct {
		name    string
		header  map[string]string
		status  int
		fetches []int32 // after the first lookup, and 2 h, 23 h, 25 h and 50 h later
	}{
		{"for a day", nil, 200, []int32{1, 1, 1, 2, 3}},
		{"for a day, with a shorter max-age", map[string]string{"Cache-Control": "max-age=60"}, 200, []int32{1, 1, 1, 2, 3}},
		{"by Expires", map[string]string{"Expires": "Mon, 03 Jan 2000 00:00:00 GMT"}, 200, []int32{1, 1, 1, 1, 2}},
		{"by max-age", map[string]string{"Cache-Control": "public, max-age=172800"}, 200, []int32{1, 1, 1, 1, 2}},
		{"not after a failure", nil, 500, []int32{1, 2, 3, 4, 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newNetwork(t)
				list := w.web["data.iana.org"]
				w.web["data.iana.org"] = func(rw http.ResponseWriter, r *http.Request) {
					for k, v := range tt.header {
						rw.Header().Set(k, v)
					}
					if tt.status != 200 {
						rw.WriteHeader(tt.status)
						return
					}
					list(rw, r)
				}
				n := w.counted()
				began := time.Now()
				for i, after := range []time.Duration{0, 2, 23, 25, 50} {
					time.Sleep(time.Until(began.Add(after * time.Hour)))
					w.lookup("example.com")
					w.lookup("example.net") // even a failed fetch is not repeated within a minute
					if n.Load() != tt.fetches[i] {
						t.Errorf("after %d h: fetched %d times, want %d", after, n.Load(), tt.fetches[i])
					}
				}
			})
		})
	}
}

// TestBootstrapIsFetchedOnce looks up domains concurrently.
func TestBootstrapIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t)
		n := w.counted()
		for range 4 {
			go w.lookup("example.com")
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if n.Load() != 1 {
			t.Errorf("fetched %d times", n.Load())
		}
	})
}

// TestOldBootstrap has a list that was fetched once and is not available later. The old one must be used.
func TestOldBootstrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t)
		w.counted()
		w.lookup("example.com")
		w.web["data.iana.org"] = serve(500, "")
		time.Sleep(48 * time.Hour)
		if r := w.lookup("example.com"); r.Source != registry.RDAP || len(r.Problems) != 1 {
			t.Errorf("asked by %q, problems %q", r.Source, r.Problems)
		}
	})
}

// TestRate queries one registry often: five queries at once, and then two per second.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t)
		w.counted()
		began := time.Now()
		for i := range 9 {
			w.lookup("example.com")
			if took, want := time.Since(began), time.Duration(max(0, i-4))*500*time.Millisecond; took != want {
				t.Errorf("lookup %d ends after %v, want %v", i+1, took, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for range 100 { // lookups that cannot wait must not use up the rate
			w.client.Lookup(ctx, dnsname.MustParse("example.com"))
		}
		began = time.Now()
		if w.lookup("example.com"); time.Since(began) > 500*time.Millisecond {
			t.Errorf("lookup after many that gave up took %v", time.Since(began))
		}
	})
}

func TestNamesWithoutQuery(t *testing.T) {
	for _, name := range []string{"com", "co.uk", ".", `a\032b.com`, `a\013\010quit.com`} {
		w := newRealTimeNetwork(t)
		r := w.lookup(name)
		if r.State != registry.Unknown || len(w.dials) > 0 || !strings.HasPrefix(r.Why, "No server was queried") {
			t.Errorf("%s: %s, %s, connections %q", name, r.State, r.Why, w.dials)
		}
	}
}

// newRealTimeNetwork returns a network without servers, for tests outside a synctest bubble.
func newRealTimeNetwork(t *testing.T) *network {
	w := &network{t: t}
	w.client = &registry.Client{Dial: w.dial}
	return w
}

// TestCancelled cancels the context of the caller.
func TestCancelled(t *testing.T) {
	w := newRealTimeNetwork(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := w.client.Lookup(ctx, dnsname.MustParse("example.com"))
	if r.State != registry.Unknown || len(w.dials) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%s, connections %q, error %v", r.State, w.dials, err)
	}
}

// TestSpecialAddresses uses special addresses as those of registries. No connection may be opened.
func TestSpecialAddresses(t *testing.T) {
	special := specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}
	opens := func(a netip.Addr) bool {
		w := newRealTimeNetwork(t)
		w.client.Special = special
		w.client.Bootstrap = "http://" + netip.AddrPortFrom(a, 80).String() + "/"
		w.client.WhoisRoot = netip.AddrPortFrom(a, 43).String()
		w.lookup("example.com")
		return len(w.dials) > 0
	}
	for _, a := range slices.Concat(specialaddrtest.Hostile, specialaddrtest.Private) {
		if opens(a) {
			t.Errorf("a connection to %s was opened", a)
		}
	}
	for _, a := range specialaddrtest.Public {
		if !opens(a) {
			t.Errorf("no connection to %s was opened", a)
		}
	}
}

// TestRealSockets runs a registry on loopback addresses, as a lab does. It has public host names, which Dial maps to
// them.
func TestRealSockets(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("data.iana.org/rdap/dns.json",
		serve(200, `{"services":[[["com"],["https://rdap.registry.example/v1/"]]]}`))
	mux.HandleFunc("rdap.registry.example/v1/domain/example.com", serve(200, fixture(t, "rdap/example.com.json")))
	mux.HandleFunc("rdap.registrar.example/rdap/domain/EXAMPLE.COM",
		serve(200, fixture(t, "rdap/registrar.example.com.json")))
	web := httptest.NewUnstartedServer(mux)
	web.TLS = authority(t).config()
	web.EnableHTTP2 = true
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // from clients that do not trust it
	web.StartTLS()
	defer web.Close()
	whois, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer whois.Close()
	go func() {
		for {
			conn, err := whois.Accept()
			if err != nil {
				return
			}
			var query string
			fmt.Fscanln(conn, &query)
			io.WriteString(conn, map[string]string{"org": "whois: whois.pir.example\r\n",
				"example.org": "Domain not found.\r\n"}[query])
			conn.Close()
		}
	}()
	client := &registry.Client{Roots: authority(t).pool, Allow: netip.Addr.IsLoopback,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := web.Listener.Addr().String()
			if strings.HasSuffix(address, ":43") {
				to = whois.Addr().String()
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		}}
	if r := find(t, client, "www.example.com"); r.State != registry.Registered || len(r.Asked) != 3 ||
		r.Dates.RegistrarExpires.IsZero() {
		t.Errorf("%s: %s %q", r.State, r.Why, asked(r))
	}
	if r := find(t, client, "example.org"); r.State != registry.Free || r.Source != registry.WHOIS {
		t.Errorf("%s: %s %q", r.State, r.Why, asked(r))
	}
	strict := &registry.Client{Roots: client.Roots, Dial: client.Dial}
	if r := find(t, strict, "www.example.com"); r.State != registry.Unknown ||
		!strings.Contains(r.Why, "not a public one") {
		t.Errorf("loopback was asked without being allowed: %s: %s", r.State, r.Why)
	}
	untrusting := &registry.Client{Allow: client.Allow, Dial: client.Dial}
	if r := find(t, untrusting, "www.example.com"); r.Source == registry.RDAP {
		t.Error("a certificate of an unknown authority was trusted")
	}
}

// TestDefaultDial has no Dial function. Allow must be called with the address of the connection, and not only with
// the address in the URL: a name may resolve to another address later.
func TestDefaultDial(t *testing.T) {
	web := httptest.NewServer(serve(200, `{"services":[[["com"],["http://192.0.2.1/"]]]}`))
	defer web.Close()
	for calls, want := range map[int]string{1: "the address is not a public one", 2: "status 200"} {
		n := 0
		client := &registry.Client{Bootstrap: web.URL, WhoisRoot: "192.0.2.1:43", Allow: func(a netip.Addr) bool {
			n++
			return a.IsLoopback() && n <= calls
		}}
		r := find(t, client, "example.com")
		if len(r.Asked) == 0 || !strings.Contains(r.Asked[0].Result, want) {
			t.Errorf("asked %q, want %s", asked(r), want)
		}
	}
}

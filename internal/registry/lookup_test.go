package registry_test

import (
	"bytes"
	gocmp "cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nameplane/nameplane/internal/registry"
)

// TestLookupChain follows the list of servers to the registry and the registrar, and compares all data.
func TestLookupChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t)
		w.web["rdap.registry.example"] = serve(200, fixture(t, "rdap/example.com.json"))
		w.web["rdap.registrar.example"] = serve(200, fixture(t, "rdap/registrar.example.com.json"))
		r := w.lookup("www.example.com")
		golden(t, "testdata/lookup/rdap.json", r)
		again(t, r)
	})
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t)
		w.whois["whois.registry.example"] = say(fixture(t, "whois/example.com.txt"))
		w.whois["whois.registrar.example"] = say(fixture(t, "whois/registrar.example.com.txt"))
		r := w.lookup("www.example.com")
		golden(t, "testdata/lookup/whois.json", r)
		again(t, r)
	})
}

// again checks that a registration survives JSON.
func again(t *testing.T, r registry.Registration) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back registry.Registration
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
}

// TestPrivate checks that no personal data is kept or logged.
func TestPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		for _, rdap := range []int{200, 500} {
			w := newNetwork(t)
			w.client.Log = logger
			brace := map[int]string{200: "{", 500: "{jane"}[rdap]
			body := strings.ReplaceAll(fixture(t, "rdap/registrar.example.com.json"), "{", brace)
			w.web["rdap.registry.example"] = serve(rdap, body)
			w.whois["whois.registry.example"] = say(fixture(t, "whois/registrar.example.com.txt"))
			r := w.lookup("example.com")
			logger.Info("lookup", "registration", r, "pointer", &r)
			fmt.Fprintf(&out, "%v %+v %#v %v\n", r, r, r, &r)
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			out.Write(text)
		}
		for _, word := range []string{"jane", "doe", "holder", "springfield", "555555010"} {
			if i := strings.Index(strings.ToLower(out.String()), word); i >= 0 {
				t.Errorf("%q is in the log: …%s…", word, out.String()[max(0, i-80):min(out.Len(), i+40)])
			}
		}
		if !strings.Contains(out.String(), `"msg":"queried a registry"`) {
			t.Error("the queries are not in the log")
		}
	})
}

// scenario is a lookup and its expected result.
type scenario struct {
	name  string
	set   func(w *network)
	ask   string
	state registry.State
	from  registry.Source
	asked []string      // "server: result" of each attempt
	took  time.Duration // total duration
	conns int           // total number of connections, if it matters
}

const (
	iana        = "https://data.iana.org/rdap/dns.json: status 200"
	registryURL = "https://rdap.registry.example/v1/domain/example.com"
	rootWhois   = "whois.iana.org:43 com: reply"
	theWhois    = "whois.registry.example:43 domain example.com"
)

func rdap(h http.HandlerFunc) func(*network) {
	return func(w *network) { w.web["rdap.registry.example"] = h }
}

func scenarios() []scenario {
	return []scenario{{
		name: "not found", state: registry.Free, from: registry.RDAP,
		set:   rdap(serve(404, `{"errorCode":404,"title":"Not Found"}`)),
		asked: []string{iana, registryURL + ": status 404"},
	}, {
		name: "a registry with several servers", state: registry.Free, from: registry.RDAP,
		set: func(w *network) {
			w.web["data.iana.org"] = serve(200,
				`{"services":[[["org"],["https://no.example/"]],`+
					`[["com"],["https://down.example/","https://rdap.registry.example/v1/"]]]}`)
			w.web["rdap.registry.example"] = serve(404, "")
		},
		asked: []string{iana, "https://down.example/domain/example.com: ask down.example: connection refused",
			registryURL + ": status 404"},
	}, {
		name: "a registry without https", state: registry.Free, from: registry.RDAP,
		set: func(w *network) {
			w.web["data.iana.org"] = serve(200, `{"services":[[["com"],["http://rdap.registry.example/v1/"]]]}`)
			w.web["rdap.registry.example"] = serve(404, "")
		},
		asked: []string{iana, strings.Replace(registryURL, "https", "http", 1) + ": status 404"},
	}, {
		name: "the longest match", ask: "example.co.uk", state: registry.Free, from: registry.RDAP,
		set: func(w *network) {
			w.web["data.iana.org"] = serve(200,
				`{"services":[[["uk"],["https://no.example/"]],[["co.uk"],["https://rdap.registry.example/v1/"]]]}`)
			w.web["rdap.registry.example"] = serve(404, "")
		},
		asked: []string{iana, "https://rdap.registry.example/v1/domain/example.co.uk: status 404"},
	}, {
		name: "not found, without a body", state: registry.Free, from: registry.RDAP,
		set:   rdap(serve(404, "")),
		asked: []string{iana, registryURL + ": status 404"},
	}, {
		name: "data with 429", state: registry.Registered, from: registry.RDAP,
		set:   rdap(serve(429, `{"ldhName":"example.com","status":["active"],"notices":{"title":"Quota exceeded"}}`)),
		asked: []string{iana, registryURL + ": status 429"},
	}, {
		name: "data with 401", state: registry.Registered, from: registry.RDAP,
		set:   rdap(serve(401, `{"ldhName":"example.com","errorCode":401,"events":[]}`)),
		asked: []string{iana, registryURL + ": status 401"},
	}, {
		name: "busy for a moment", state: registry.Free, from: registry.RDAP, took: 3 * time.Second,
		set: func(w *network) {
			var tries int
			w.web["rdap.registry.example"] = func(rw http.ResponseWriter, r *http.Request) {
				if tries++; tries == 1 {
					rw.Header().Set("Retry-After", "3")
					rw.WriteHeader(429)
					return
				}
				serve(404, "")(rw, r)
			}
		},
		asked: []string{iana, registryURL + ": status 429", registryURL + ": status 404"},
	}, {
		name: "busy for too long", state: registry.Free, from: registry.WHOIS,
		set: func(w *network) {
			w.web["rdap.registry.example"] = func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
				rw.WriteHeader(503)
			}
			w.whois["whois.registry.example"] = say("No match for domain \"EXAMPLE.COM\".\r\n")
		},
		asked: []string{iana, registryURL + ": status 503",
			registryURL + ": ask rdap.registry.example: the server must not be asked again so soon",
			rootWhois, theWhois + ": not found"},
	}, {
		name: "redirected", state: registry.Free, from: registry.RDAP,
		set: func(w *network) {
			w.web["rdap.registry.example"] = func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "https://rdap2.registry.example"+r.URL.Path, http.StatusFound)
			}
			w.web["rdap2.registry.example"] = serve(404, "")
		},
		asked: []string{iana, registryURL + ": status 404"},
	}, {
		name: "redirected for ever", state: registry.Unknown, conns: 1 + 6 + 2,
		set: rdap(func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, r.URL.Path+"x", http.StatusFound) }),
		asked: []string{iana,
			registryURL + ": ask rdap.registry.example: too many redirects",
			rootWhois, theWhois + ": ask whois.registry.example:43: connection refused"},
	}, {
		name: "redirected to http", state: registry.Unknown,
		set: func(w *network) {
			w.web["data.iana.org"] = serve(200, `{"services":[[["com"],["https://rdap.registry.example/v1/"]]]}`)
			w.web["rdap.registry.example"] = func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "http://rdap.registry.example/", http.StatusFound)
			}
		},
		asked: []string{iana, registryURL + ": ask rdap.registry.example: redirected from https to http",
			rootWhois, theWhois + ": ask whois.registry.example:43: connection refused"},
	}, {
		name: "redirected to a private address", state: registry.Unknown,
		set: func(w *network) {
			w.web["data.iana.org"] = serve(200, `{"services":[[["com"],["https://rdap.registry.example/v1/"]]]}`)
			w.web["rdap.registry.example"] = func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "https://intranet.example/", http.StatusFound)
			}
			w.web["intranet.example"] = serve(404, "")
			w.addr["intranet.example"] = "10.0.0.1"
		},
		asked: []string{iana, registryURL + ": ask intranet.example: the address is not a public one",
			rootWhois, theWhois + ": ask whois.registry.example:43: connection refused"},
	}, {
		name: "a web server that knows no RDAP", state: registry.Registered, from: registry.WHOIS,
		set: func(w *network) {
			w.web["rdap.registry.example"] = serve(404, "<html>404</html>")
			w.whois["whois.registry.example"] = say("Domain Name: EXAMPLE.COM\nRegistrar: X\nCreation Date: 1999-01-01\n")
		},
		asked: []string{iana, registryURL + ": status 404",
			rootWhois, theWhois + ": found"},
	}, {
		name: "RDAP of another domain", state: registry.Unknown,
		set: rdap(serve(200, `{"ldhName":"other.com","events":[]}`)),
		asked: []string{iana, registryURL + ": status 200",
			rootWhois, theWhois + ": ask whois.registry.example:43: connection refused"},
	}, {
		name: "RDAP without an end", state: registry.Registered, from: registry.WHOIS,
		set: func(w *network) {
			w.web["rdap.registry.example"] = serve(200, strings.Repeat(" ", 1<<20)+"{}")
			w.whois["whois.registry.example"] = say("Domain Name: EXAMPLE.COM\nRegistrar: X\nCreation Date: 1999-01-01\n" +
				strings.Repeat("x", 1<<20))
		},
		asked: []string{iana, registryURL + ": ask rdap.registry.example: the reply is too long",
			rootWhois, theWhois + ": found, 262144 bytes"},
	}, {
		name: "servers that never stop talking", state: registry.Registered, from: registry.WHOIS, took: 30 * time.Second,
		set: func(w *network) {
			w.web["data.iana.org"] = serve(200,
				`{"services":[[["com"],["https://rdap.registry.example/v1",`+
					`"https://rdap.registry.example/v2","https://rdap.registry.example/v3"]]]}`)
			w.web["rdap.registry.example"] = func(rw http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					io.WriteString(rw, " ")
					rw.(http.Flusher).Flush()
					time.Sleep(time.Second)
				}
				panic(http.ErrAbortHandler) // a regular end could be a reply if it came at the moment when the client gives up
			}
			w.whois["whois.registry.example"] = func(_ string, w io.Writer) {
				_, err := io.WriteString(w, "Domain Name: EXAMPLE.COM\nRegistrar: X\nCreation Date: 1999-01-01\n")
				for err == nil {
					time.Sleep(time.Second)
					_, err = io.WriteString(w, ".")
				}
			}
		},
		asked: []string{iana, registryURL + ": ask rdap.registry.example: no reply in time",
			strings.Replace(registryURL, "v1", "v2", 1) + ": ask rdap.registry.example: no reply in time",
			strings.Replace(registryURL, "v1", "v3", 1) + ": ask rdap.registry.example: no reply in time",
			rootWhois, theWhois + ": found"},
	}, {
		name: "a suffix without RDAP", ask: "example.test", state: registry.Free, from: registry.WHOIS,
		set:   func(w *network) { w.whois["whois.registry.example"] = say("example.test is free") },
		asked: []string{iana, "whois.iana.org:43 test: reply", "whois.registry.example:43 example.test: not found"},
	}, {
		name: "an internationalized name", ask: "www.bücher.com", state: registry.Registered, from: registry.WHOIS,
		set: func(w *network) {
			w.whois["whois.registry.example"] = say("Domain Name: XN--BCHER-KVA.COM\nRegistrar: X\nCreation Date: 1999-01-01\n")
		},
		asked: []string{iana,
			"https://rdap.registry.example/v1/domain/xn--bcher-kva.com: ask rdap.registry.example: connection refused",
			rootWhois, "whois.registry.example:43 domain xn--bcher-kva.com: found"},
	}}
}

func (s scenario) run(t *testing.T) {
	w := newNetwork(t)
	s.set(w)
	began := time.Now()
	r := w.lookup(gocmp.Or(s.ask, "example.com"))
	if r.State != s.state || r.Source != s.from {
		t.Errorf("%s by %q, want %s by %q: %s", r.State, r.Source, s.state, s.from, r.Why)
	}
	if diff := cmp.Diff(s.asked, asked(r)); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if took := time.Since(began); took != s.took {
		t.Errorf("took %v, want %v", took, s.took)
	}
	if s.conns > 0 && len(w.dials) != s.conns {
		t.Errorf("%d connections, want %d", len(w.dials), s.conns)
	}
	if r.Why == "" || (r.State == registry.Unknown) != strings.Contains(r.Why, "could not be determined") {
		t.Errorf("%s, because: %q", r.State, r.Why)
	}
}

var (
	webSize   = regexp.MustCompile(`, \d{1,5} bytes$`)
	whoisSize = regexp.MustCompile(`^\d{1,3} bytes$`)
)

// asked returns the queries and results, without the sizes of short replies.
func asked(r registry.Registration) (lines []string) {
	for _, a := range r.Asked {
		result := whoisSize.ReplaceAllString(webSize.ReplaceAllString(a.Result, ""), "reply")
		lines = append(lines, strings.TrimSpace(a.Server+" "+a.Query)+": "+result)
	}
	return lines
}

func TestScenarios(t *testing.T) {
	for _, s := range slices.Concat(scenarios(), whoisScenarios()) {
		t.Run(s.name, func(t *testing.T) { synctest.Test(t, s.run) })
	}
}

package gather_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

func saved(t *testing.T, f *explain.Facts, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gather.Save(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRepeatable checks that the same internet gives the same facts, in whatever order the goroutines ran.
func TestRepeatable(t *testing.T) {
	var first []string
	for i := range 3 {
		run(t, broken, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			g.Registry = registrar{"bad.test.": registry.Registered}
			scan, err := g.Scan(t.Context(), "bad.test")
			texts := []string{saved(t, scan, err)}
			f, err := g.Compare(t.Context(), "www.example.test", nil)
			texts = append(texts, saved(t, f, err))
			for j, text := range texts {
				if i == 0 {
					first = append(first, text)
				} else if text != first[j] {
					t.Errorf("run %d gives other facts (-first +this):\n%s", i,
						cmp.Diff(strings.Split(first[j], "\n"), strings.Split(text, "\n")))
				}
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "load facts"},
		{"{}", `the schema of the file is ""`},
		{`{"schema":"nameplane.facts/0"}`, `want "nameplane.facts/3"`},
		{`{"schema":"nameplane.facts/3","servers":[{"zone":"a.","evidence":[3]}]}`, "evidence refers to an exchange"},
		{`{"schema":"nameplane.facts/3","caches":[{"samples":[{"question":"a. A","evidence":[-1]}]}]}`,
			"evidence refers to an exchange"},
		{`{"schema":"nameplane.facts/3","types":["A"` + strings.Repeat(`,"A"`, 1_000_000) + `]}`,
			"1000001 types, more than 8"},
		{`{"schema":"nameplane.facts/3","at":1}`, "load facts"},
		{`{"schema":"nameplane.facts/3","input":"` + strings.Repeat("x", 32<<20) + `"}`, "larger than 32 MiB"},
	}
	for _, tt := range tests {
		if f, err := gather.Load(strings.NewReader(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Load(%.60q) = %v, %v, want %q", tt.text, f != nil, err, tt.want)
		}
	}
}

func TestCancel(t *testing.T) {
	run(t, map[string]string{"192.0.2.21": "latency 3s", "192.0.2.22": "latency 3s"},
		func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
			for _, after := range []time.Duration{0, 2 * time.Second, 8 * time.Second} {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				if _, err := g.Scan(ctx, "example.test"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Scan that was ended after %v: %v", after, err)
				}
				cancel()
			}
		})
}

func TestProgress(t *testing.T) {
	run(t, nil, func(t *testing.T, net *simnet.Net, g *gather.Gatherer) {
		g.Registry = registrar{"example.test.": registry.Registered}
		queries, stages := 0, map[string]int{}
		reported := map[*explain.Facts]string{}
		g.Progress = func(e gather.Event) {
			if e.Queries < queries {
				t.Errorf("%+v comes after %d queries", e, queries)
			}
			queries = e.Queries
			stages[e.Stage]++
			if e.Facts != nil {
				must(t, e.Facts, nil)
				reported[e.Facts] = saved(t, e.Facts, nil)
				stages[e.Stage+" end"]++
			}
		}
		f, err := g.Scan(t.Context(), "example.test")
		f = must(t, f, err)
		if stages[gather.StageWalk+" end"] != 1 || stages[gather.StageServers] != 3 ||
			stages[gather.StageServers+" end"] != 1 || stages[gather.StageMail+" end"] != 1 ||
			stages[gather.StageRegistration] == 0 || queries != f.Queries {
			t.Errorf("events %v, %d queries of %d", stages, queries, f.Queries)
		}
		clear(stages)
		queries = 0
		f, err = g.Compare(t.Context(), "www.example.test", nil)
		must(t, f, err)
		if stages[gather.StageAnswers+" end"] != 1 || stages[gather.StageResolvers] != 3 ||
			stages[gather.StageResolvers+" end"] != 1 {
			t.Errorf("events %v", stages)
		}
		for f, then := range reported {
			if saved(t, f, nil) != then {
				t.Error("reported facts have changed since")
			}
		}
	})
}

var special = specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}

func TestPublicOnly(t *testing.T) {
	opened := ""
	dial := gather.PublicOnly(func(_ context.Context, network, address string) (net.Conn, error) {
		opened = address
		return nil, errors.New("the test opens nothing")
	}, special)
	test := func(a netip.Addr, public bool) {
		opened = ""
		_, err := dial(t.Context(), "udp", netip.AddrPortFrom(a, 53).String())
		if err == nil || (opened != "") != public ||
			strings.Contains(err.Error(), "only public addresses are queried") == public {
			t.Errorf("%s: opened %q, %v; is public %v", a, opened, err, public)
		}
	}
	for _, a := range slices.Concat(specialaddrtest.Hostile, specialaddrtest.Private) {
		test(a, false)
	}
	test(netip.MustParseAddr("192.0.2.1"), false)
	for _, a := range specialaddrtest.Public {
		test(a, true)
	}
}

func TestOnly(t *testing.T) {
	opened := ""
	dial := gather.Only(func(_ context.Context, network, address string) (net.Conn, error) {
		opened = address
		return nil, errors.New("the test opens nothing")
	}, netip.MustParseAddrPort("192.0.2.53:53"))
	for at, open := range map[string]bool{"192.0.2.53:53": true, "192.0.2.53:54": false, "192.0.2.52:53": false,
		"[::ffff:192.0.2.53]:53": false,
		"198.41.0.4:53":          false, "example.org:53": false} {
		opened = ""
		if _, err := dial(t.Context(), "udp", at); err == nil || (opened != "") != open {
			t.Errorf("%s: opened %q, %v; want %v", at, opened, err, open)
		}
	}
}

func TestPublicOnlyListen(t *testing.T) {
	here, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	listen := gather.PublicOnlyListen(func(context.Context, string) (net.PacketConn, error) {
		return net.ListenPacket("udp4", "127.0.0.1:0")
	}, special)
	conn, err := listen(t.Context(), "udp4")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := conn.WriteTo([]byte("x"), here.LocalAddr()); err == nil || n > 0 {
		t.Errorf("%d bytes were sent to %s, %v", n, here.LocalAddr(), err)
	}
}

// TestLoadSchema1 reads facts of schema 1. The program that wrote them stored the verdict that all answers are
// current, with 7 s left. That was wrong, and is assessed again.
func TestLoadSchema1(t *testing.T) {
	text, err := os.ReadFile("testdata/compare-schema1.json")
	if err != nil {
		t.Fatal(err)
	}
	f, err := gather.Load(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	all := explain.Assess(f)
	if got := states(all[0]) + "; " + states(all[1]); got != "old 200; current 300" {
		t.Errorf("resolvers are %s, want old 200; current 300", got)
	}
	if again := saved(t, f, nil); strings.Contains(again, `"left"`) || strings.Contains(again, `"secure"`) ||
		!strings.Contains(again, explain.Schema) {
		t.Error("the record keeps its form when it is saved")
	}
}

// TestLoadValidates reads facts of schemas 1 and 2, which contain DNSSEC results, and checks that a wrong stored result
// has no effect: the exchanges are validated again, with the trust anchors of the file.
func TestLoadValidates(t *testing.T) {
	for file, want := range map[string]string{
		"analyze-schema2-signed.json":  "secure: . secure, test. secure, signed.test. secure",
		"analyze-schema2-expired.json": "bogus: . secure, test. secure, expired.test. bogus",
		"compare-schema1.json":         "insecure: . insecure, test. insecure, example.test. insecure",
	} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(text), wrongResult(t, text)} {
			f, err := gather.Load(strings.NewReader(text))
			if f = must(t, f, err); validated(f) != want {
				t.Errorf("%s is %s, want %s", file, validated(f), want)
			}
		}
	}
}

// wrongResult replaces the stored DNSSEC results by another state.
func wrongResult(t *testing.T, text []byte) string {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	for _, result := range content["secure"].([]any) {
		r := result.(map[string]any)
		r["state"] = secure.Unknown
		for _, zone := range r["zones"].([]any) {
			zone.(map[string]any)["state"] = secure.Unknown
		}
	}
	wrong, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(wrong)
}

// validated returns the DNSSEC states of the answer and of the zones.
func validated(f *explain.Facts) string {
	var zones []string
	for _, z := range f.Secure[0].Zones {
		zones = append(zones, fmt.Sprintf("%s %s", z.Name, z.State))
	}
	return fmt.Sprintf("%s: %s", f.Secure[0].State, strings.Join(zones, ", "))
}

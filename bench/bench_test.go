package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
)

func TestMixMatchesZone(t *testing.T) {
	zone, err := writeZone(t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(zone.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := map[string]string{}
	p := dns.NewZoneParser(f, "", "")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		h := rr.Header()
		data[h.Name+dns.TypeToString[h.Rrtype]] = strings.TrimPrefix(rr.String(), h.String())
	}
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	count := map[string]int{}
	for _, q := range mix(10_000) {
		kind := dns.TypeToString[q.qtype] + dns.RcodeToString[q.rcode]
		count[kind]++
		var n int
		if _, err := fmt.Sscanf(q.name, "host%d.", &n); err != nil || n >= 1000 {
			continue // not in the small zone
		}
		key := q.name
		if target := data[key+"CNAME"]; target != "" {
			key = target
		}
		if got := data[key+dns.TypeToString[q.qtype]]; got != q.data {
			t.Errorf("%s %s: the zone holds %q, the mix wants %q", q.name, kind, got, q.data)
		}
	}
	if nx := count["ANXDOMAIN"]; nx < 900 || nx > 1100 {
		t.Errorf("%d of 10000 questions are for names that do not exist, want a tenth", nx)
	}
	if v6 := count["AAAANOERROR"]; v6 < 700 || v6 > 900 {
		t.Errorf("%d of 10000 questions are AAAA, want 8 %%", v6)
	}
}

// TestPace checks that writers without work left do not extend the measured time.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := writers{count: 32, length: 2 * time.Second, rate: 10}.run(func(_, _ int) error { return nil })
		if c.Done != 20 || c.PerSec != 10 {
			t.Errorf("%d changes, %.2f a second, want 20 and 10", c.Done, c.PerSec)
		}
	})
}

func TestSummary(t *testing.T) {
	var taken []time.Duration
	for i := range 100 {
		taken = append(taken, time.Duration(100-i)*time.Millisecond)
	}
	got := summary(taken, []error{errors.New("first"), errors.New("second")}, 2*time.Second)
	want := changes{Done: 100, Errors: 2, First: "first", PerSec: 50, P50: 51 * time.Millisecond,
		P99: 100 * time.Millisecond}
	if got != want {
		t.Errorf("summary = %+v, want %+v", got, want)
	}
}

// TestSourceAnswersItself checks that the control sends the same load and needs no server.
func TestSourceAnswersItself(t *testing.T) {
	for _, batch := range []int{1, 10} {
		in := fmt.Sprintf(`{"Zone":"bench.test.","Rate":1000,"Batch":%d,"Length":100000000}`, batch)
		var out strings.Builder
		if err := generate(strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		var c changes
		if err := json.Unmarshal([]byte(out.String()), &c); err != nil || c.Errors > 0 || c.Done == 0 {
			t.Errorf("batches of %d: %s %v, want changes and no errors", batch, out.String(), err)
		}
	}
}

func TestChangingRows(t *testing.T) {
	all := []load{{name: "no changes"}, {"single", 1, false}, {"control", 1, true}}
	results := [][]figures{{{qps: 100_000, cpu: 8}}, {{qps: 50_000, cpu: 12}}, {{qps: 80_000, cpu: 8}}}
	one := changes{PerSec: 1000, P50: time.Millisecond, P99: 2 * time.Millisecond}
	applied := [][]sourceResult{{{}}, {{one, 0.06}}, {{one, 0.05}}}
	got := changingRows(all, results, applied)[2]
	want := []string{"single", "50000", "0.50x", "0.62x", "0 %", "12.00", "0.20", "0.06", "1000", "1.00 ms", "2.00 ms",
		"0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("row (-want +got)\n%s", diff)
	}
}

func TestAddressSetsFollowsPages(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.HandleFunc("GET /v2/zones", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Auth-Token") != "secret" || r.FormValue("name") != zoneName {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"zones":[{"id":"z"}]}`)
	})
	mux.HandleFunc("GET /v2/zones/z/recordsets", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("marker") == "" {
			fmt.Fprintf(w, `{"recordsets":[{"id":"1","name":"a."}],"links":{"next":"%s%s&marker=1"}}`, server.URL, r.URL)
			return
		}
		fmt.Fprint(w, `{"recordsets":[{"id":"2","name":"b."}],"links":{}}`)
	})
	var put string
	mux.HandleFunc("PUT /v2/zones/z/recordsets/2", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Records []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Records) != 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		put = body.Records[0]
		w.WriteHeader(http.StatusAccepted)
	})
	d := newDesignate(server.URL, "secret", 1)
	sets, err := d.addressSets(zoneName, 10)
	if err != nil || len(sets) != 2 {
		t.Fatalf("addressSets = %v, %v, want both pages", sets, err)
	}
	conns, err := dialDirect(server.URL, "secret", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer conns[0].conn.Close()
	for _, address := range []string{"192.0.2.1", "192.0.2.2"} { // the second uses the same connection
		if err := conns[0].put(sets[1], address); err != nil || put != address {
			t.Errorf("put: %v, the server got %q", err, put)
		}
	}
	if err := conns[0].put(recordset{ID: "3", zone: "z"}, "192.0.2.1"); err == nil {
		t.Error("put of an unknown record set succeeded, want an error")
	}
}

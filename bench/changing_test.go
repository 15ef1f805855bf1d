package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAskChanges checks that changes keep their rate, that all differ, and that failures count as errors.
func TestAskChanges(t *testing.T) {
	file, err := writeQueries(t.TempDir(), mix(1000))
	if err != nil {
		t.Fatal(err)
	}
	sets := []recordset{{ID: "a", Name: "a.bench.test."}, {ID: "b", Name: "b.bench.test."}}
	const rate, length = 1000, 50 * time.Millisecond
	for _, tt := range []struct {
		name   string
		batch  int
		idle   bool
		status int
	}{
		{"single", 1, false, http.StatusOK},
		{"batches", 10, false, http.StatusOK},
		{"refused", 1, false, http.StatusConflict},
		{"control", 1, true, 0},
		{"control of batches", 10, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr, _ := oddServer(t, func(_ int, r []byte) [][]byte { return [][]byte{r} })
			var asked atomic.Int64
			bodies := make(chan string, 1000)
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked.Add(1)
				bodies <- r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Auth-Token") + " " + string(body)
				w.WriteHeader(tt.status)
				_, _ = w.Write(bytes.Repeat([]byte{'x'}, 1000))
			}))
			defer api.Close()
			c := &askChanges{Addr: strings.TrimPrefix(api.URL, "http://"), Token: "t", Zone: "z", Sets: sets, Rate: rate,
				Batch: tt.batch}
			if tt.idle {
				c.Addr = ""
			}
			got := askOnce(t, askSpec{Addr: addr, File: file, Clients: 3, Window: 20, Length: length, Timeout: time.Minute,
				Changes: c})
			want := int(length/(time.Second/rate)) / tt.batch
			n := got.Changes.Done + got.Changes.Errors
			if got.Answered == 0 || n < 1 || n > want+1 || tt.status == http.StatusConflict && got.Changes.Done > 0 ||
				tt.status == http.StatusOK && got.Changes.Errors > 0 {
				t.Fatalf("%+v and %+v, want about %d requests", got, got.Changes, want)
			}
			if !tt.idle && int(asked.Load()) != n || tt.idle && asked.Load() != 0 {
				t.Errorf("the server got %d requests, and %d were answered", asked.Load(), n)
			}
			seen := map[string]bool{}
			for close(bodies); ; {
				body, ok := <-bodies
				if !ok {
					break
				}
				if seen[body] || !strings.Contains(body, " /v2/zones/z/") || !strings.Contains(body, " t {") {
					t.Errorf("request %q, or it came twice", body)
				}
				seen[body] = true
			}
		})
	}
}

// askOnce runs the whole client.
func askOnce(t *testing.T, s askSpec) (got askResult) {
	t.Helper()
	in, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := ask(bytes.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWholeReply(t *testing.T) {
	for _, tt := range []struct {
		text  string
		whole bool
		fails bool
	}{
		{"", false, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", false, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", false, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", true, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\n\r\n{}", true, false},
		{"HTTP/1.1 204 No Content\r\n\r\n", false, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}", false, true},
	} {
		reply, err := wholeReply([]byte(tt.text))
		if whole := reply != nil; whole != tt.whole || err != nil != tt.fails {
			t.Errorf("wholeReply(%q) = %q, %v", tt.text, reply, err)
		}
	}
}

// TestComparisonRows checks that runs are compared in pairs, without the disturbed ones.
func TestComparisonRows(t *testing.T) {
	pair := func(without, with, others float64) comparison {
		return comparison{figures{qps: without, cpu: 4}, figures{qps: with, cpu: 5, busy: 99, others: others},
			sourceResult{changes{PerSec: 1000}, 0.02}}
	}
	all := []load{{"single", 1, false}, {"control", 1, true}}
	results := [][]comparison{
		{pair(100_000, 90_000, 1), pair(200_000, 160_000, 1), pair(300_000, 210_000, 1), pair(100_000, 10_000, 50),
			pair(100_000, 10_000, 50)},
		{pair(100_000, 100_000, 1)},
	}
	got := comparisonRows(all, results)[1]
	want := []string{"single", "200000", "160000", "0.80x", "0.80x", "99 %", "4.00", "0.16", "0.020", "1000", "0.00 ms",
		"0.00 ms", "0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("row (-want +got)\n%s", diff)
	}
}

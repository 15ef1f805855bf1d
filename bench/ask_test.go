package main

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

// oddServer answers every message. spoil may replace the n-th reply by others.
func oddServer(t *testing.T, spoil func(n int, reply []byte) [][]byte) (addr string, asked func() int) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	total := make(chan int, 1)
	go func() {
		b := make([]byte, 1500)
		for n := 0; ; n++ {
			size, from, err := c.ReadFrom(b)
			if err != nil {
				total <- n
				return
			}
			b[2] |= 0x80
			for _, reply := range spoil(n, b[:size]) {
				_, _ = c.WriteTo(reply, from)
			}
		}
	}()
	return c.LocalAddr().String(), func() int {
		c.Close()
		return <-total
	}
}

// TestAskChecks checks that each question is answered once, by a reply to it, or lost.
func TestAskChecks(t *testing.T) {
	file, err := writeQueries(t.TempDir(), mix(1000))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		spoil       func(n int, reply []byte) [][]byte
		lost, wrong int
	}{
		{"every reply arrives", func(_ int, r []byte) [][]byte { return [][]byte{r} }, 0, 0},
		{"one is dropped", func(n int, r []byte) [][]byte {
			if n == 7 {
				return nil
			}
			return [][]byte{r}
		}, 1, 0},
		{"one comes twice", func(n int, r []byte) [][]byte {
			if n == 7 {
				return [][]byte{r, r}
			}
			return [][]byte{r}
		}, 0, 1},
		{"one is for another name", func(n int, r []byte) [][]byte {
			if n == 7 {
				r = bytes.Clone(r)
				r[13] ^= 1
			}
			return [][]byte{r}
		}, 1, 1},
		{"one is a question", func(n int, r []byte) [][]byte {
			if n == 7 {
				r[2] &^= 0x80
			}
			return [][]byte{r}
		}, 1, 1},
		{"one is cut off", func(n int, r []byte) [][]byte {
			if n == 7 {
				r = r[:5]
			}
			return [][]byte{r}
		}, 1, 1},
	}
	const open = 20
	for _, tt := range tests {
		for _, clients := range []int{1, 7, open} {
			addr, _ := oddServer(t, tt.spoil)
			q, err := newQuestioner(askSpec{Addr: addr, File: file, Clients: clients, Window: open})
			if err != nil {
				t.Fatal(err)
			}
			defer q.close()
			for i := range q.clients {
				if err := q.send(i); err != nil {
					t.Fatal(err)
				}
			}
			for end := time.Now().Add(5 * time.Second); q.result.Answered < open-tt.lost || q.result.Wrong < tt.wrong; {
				if _, err := q.poll(false); err != nil || time.Now().After(end) {
					t.Fatalf("%s, %d clients: %+v, %v", tt.name, clients, q.result, err)
				}
			}
			q.tick = 3
			q.giveUp()
			want := askResult{Answered: open - tt.lost, Lost: tt.lost, Wrong: tt.wrong}
			if diff := cmp.Diff(want, q.result); diff != "" || q.open != 0 {
				t.Errorf("%s, %d clients: %d are open (-want +got)\n%s", tt.name, clients, q.open, diff)
			}
		}
	}
}

// TestAskKnowsItsClients checks that a reply to the question of another client does not count.
func TestAskKnowsItsClients(t *testing.T) {
	file, err := writeQueries(t.TempDir(), mix(2))
	if err != nil {
		t.Fatal(err)
	}
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	q, err := newQuestioner(askSpec{Addr: server.LocalAddr().String(), File: file, Clients: 2, Window: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	var from [2]net.Addr
	b := [2][]byte{make([]byte, 512), make([]byte, 512)}
	for i := range from {
		if err := q.send(i); err != nil {
			t.Fatal(err)
		}
		n, addr, err := server.ReadFrom(b[i])
		if err != nil {
			t.Fatal(err)
		}
		b[i], from[i] = b[i][:n], addr
		b[i][2] |= 0x80
	}
	for i := range from {
		if _, err := server.WriteTo(b[i], from[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(5 * time.Second); q.result.Wrong+q.result.Answered < 2 && time.Now().Before(end); {
		if _, err := q.poll(false); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(askResult{Wrong: 2}, q.result); diff != "" {
		t.Errorf("result (-want +got)\n%s", diff)
	}
}

// TestAsk runs the whole client.
func TestAsk(t *testing.T) {
	file, err := writeQueries(t.TempDir(), mix(1000))
	if err != nil {
		t.Fatal(err)
	}
	addr, asked := oddServer(t, func(_ int, r []byte) [][]byte { return [][]byte{r} })
	in, err := json.Marshal(askSpec{Addr: addr, File: file, Clients: 3, Window: 20, Length: 20 * time.Millisecond,
		Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := ask(bytes.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	var got askResult
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
		t.Fatal(err)
	}
	if n := asked(); n < 20 || got.Answered != n || got.Lost+got.Wrong != 0 || got.Seconds <= 0 {
		t.Errorf("%d questions were asked: %+v", n, got)
	}
}

func TestAskErrors(t *testing.T) {
	file, err := writeQueries(t.TempDir(), []query{{name: "example.org.", qtype: dns.TypeA}})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := writeQueries(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]askSpec{
		"cannot share":       {Addr: "127.0.0.1:53", File: file, Clients: 3, Window: 2},
		"holds no questions": {Addr: "127.0.0.1:53", File: empty, Clients: 1, Window: 1},
		"no such file":       {Addr: "127.0.0.1:53", File: file + "x", Clients: 1, Window: 1},
		"not an ip:port":     {Addr: "localhost", File: file, Clients: 1, Window: 1},
	} {
		if _, err := newQuestioner(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("newQuestioner(%+v) = %v, want an error with %q", s, err, want)
		}
	}
}

func TestLimitRows(t *testing.T) {
	var servers []*peers.Server
	for _, name := range []string{"nameplane", "Knot", "NSD", "CoreDNS"} {
		servers = append(servers, &peers.Server{Process: &server.Process{Name: name}})
	}
	results := []figures{{qps: 300_000, cpu: 3, busy: 90}, {qps: 150_000, cpu: 6}, {qps: 200_000, cpu: 7},
		{qps: 30_000, cpu: 30}}
	want := []string{"nameplane", "300000", "1.50x", "10.00x", "3.00", "0.50x", "90 %", "0.00"}
	if diff := cmp.Diff(want, limitRows(servers, results)[1]); diff != "" {
		t.Errorf("row (-want +got)\n%s", diff)
	}
}

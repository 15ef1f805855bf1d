package forward_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
)

// network is a set of servers with given replies, and the queries to them.
type network struct {
	t testing.TB

	mu      sync.Mutex // guards the following
	servers map[resolve.Server]handler
	asked   []string
}

// handler is one server.
type handler func(ctx context.Context, q *dns.Msg) (*dns.Msg, error)

func (n *network) Exchange(ctx context.Context, s resolve.Server, q *dns.Msg) (*dns.Msg, error) {
	n.mu.Lock()
	h := n.servers[s]
	n.asked = append(n.asked, fmt.Sprintf("%s %s %s", s.Addr.Addr(), q.Question[0].Name,
		dns.TypeToString[q.Question[0].Qtype]))
	n.mu.Unlock()
	return h(ctx, q.Copy())
}

func (n *network) set(s resolve.Server, h handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[s] = h
}

// history returns the queries since the last call, except probes.
func (n *network) history() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := []string{}
	for _, a := range n.asked {
		if !strings.HasSuffix(a, " . NS") {
			out = append(out, a)
		}
	}
	n.asked = nil
	return out
}

// probes returns the number of probes since the last call of history.
func (n *network) probes() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, a := range n.asked {
		if strings.HasSuffix(a, " . NS") {
			count++
		}
	}
	return count
}

// server returns the server at 192.0.2.i.
func server(i int) resolve.Server {
	return resolve.Server{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 53)}
}

// replies returns a handler that replies with the records of a text, one per line; those after "--" are in the
// authority section.
func replies(t testing.TB, rcode int, text string) handler {
	t.Helper()
	m := new(dns.Msg)
	section := &m.Answer
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "--" {
			section = &m.Ns
		} else if line != "" {
			*section = append(*section, record(t, line))
		}
	}
	return func(_ context.Context, q *dns.Msg) (*dns.Msg, error) {
		r := m.Copy()
		r.SetRcode(q, rcode)
		r.RecursionAvailable = true
		return r, nil
	}
}

// says returns a handler that replies with an extended error.
func says(t testing.TB, rcode int, ede uint16) handler {
	return func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
		m, err := replies(t, rcode, "")(ctx, q)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: ede}}
		return m, err
	}
}

func record(t testing.TB, s string) dns.RR {
	t.Helper()
	r, err := dns.NewRR(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// silent is a handler that never replies.
func silent(ctx context.Context, _ *dns.Msg) (*dns.Msg, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// broken is a handler with a broken network.
func broken(context.Context, *dns.Msg) (*dns.Msg, error) { return nil, fmt.Errorf("no route") }

// after returns a handler that replies after a delay.
func after(d time.Duration, h handler) handler {
	return func(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
		select {
		case <-time.After(d):
			return h(ctx, q)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// start returns a Forwarder on a network with these servers. It ends with the test.
func start(t testing.TB, cfg forward.Config, handlers ...handler) (*forward.Forwarder, *network) {
	t.Helper()
	n := &network{t: t, servers: map[resolve.Server]handler{}}
	for i, h := range handlers {
		n.set(server(i+1), h)
		cfg.Upstreams = append(cfg.Upstreams, server(i+1))
	}
	cfg.Exchanger = n
	return run(t, cfg), n
}

func run(t testing.TB, cfg forward.Config) *forward.Forwarder {
	t.Helper()
	f := forward.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// answer is a Reply in a comparable form.
type answer struct {
	Rcode     string
	Answer    []string
	Authority []string
	EDE       int
	AD        bool
	Stale     bool
	Truncated bool
}

func ask(t testing.TB, f *forward.Forwarder, name string, qtype uint16) answer {
	t.Helper()
	return askFor(t, f, forward.Question{Name: wireName(t, name), Type: rr.Type(qtype)})
}

func askFor(t testing.TB, f *forward.Forwarder, q forward.Question) answer {
	t.Helper()
	msg := message(q, 4096)
	return read(t, msg, f.Exchange(t.Context(), q, msg))
}

func wireName(t testing.TB, name string) []byte {
	t.Helper()
	n, err := dnsname.Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(n.Wire())
}

// message returns a header and a question with room for a reply.
func message(q forward.Question, size int) []byte {
	msg := append(make([]byte, 12, size), q.Name...)
	msg[5] = 1
	msg = binary.BigEndian.AppendUint16(msg, uint16(q.Type))
	return binary.BigEndian.AppendUint16(msg, 1)
}

// read parses a Reply, as a client would parse the message.
func read(t testing.TB, given []byte, r forward.Reply) answer {
	t.Helper()
	if len(r.Msg) > cap(given) || &r.Msg[0] != &given[0] {
		t.Fatalf("reply of %d bytes is not in the message of %d", len(r.Msg), cap(given))
	}
	if r.Truncated && len(r.Msg) != len(given) {
		t.Errorf("a truncated reply has %d bytes of records", len(r.Msg)-len(given))
	}
	binary.BigEndian.PutUint16(r.Msg[6:], uint16(r.Answers))
	binary.BigEndian.PutUint16(r.Msg[8:], uint16(r.Authorities))
	m := new(dns.Msg)
	if err := m.Unpack(r.Msg); err != nil {
		t.Fatalf("reply cannot be read: %v\n%x", err, r.Msg)
	}
	return answer{dns.RcodeToString[int(r.Rcode)], texts(m.Answer), texts(m.Ns), r.EDE, r.AD, r.Stale, r.Truncated}
}

func texts(records []dns.RR) []string {
	var out []string
	for _, r := range records {
		out = append(out, strings.Join(strings.Fields(r.String()), " "))
	}
	return out
}

package explain_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
	trees "github.com/nameplane/nameplane/test/explain"
)

// mangler is a network that changes some replies.
type mangler struct {
	resolve.Exchanger
	mu   sync.Mutex // guards rng
	rng  *rand.Rand
	most int // one of so many replies is changed
}

func (m *mangler) Exchange(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	r, err := m.Exchanger.Exchange(ctx, server, query)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil || m.rng.IntN(m.most) > 0 {
		return r, err
	}
	r = r.Copy()
	for range 1 + m.rng.IntN(3) {
		m.mangle(r)
	}
	wire, err := r.Pack()
	if err != nil {
		return nil, err
	}
	if m.rng.IntN(2) == 0 {
		for range 1 + m.rng.IntN(4) {
			if at := 2 + m.rng.IntN(len(wire)-2); at < 4 || at > 11 {
				wire[at] ^= byte(1 << m.rng.IntN(8))
			}
		}
	}
	out := new(dns.Msg)
	if err := out.Unpack(wire); err != nil || len(out.Question) != 1 {
		return nil, context.DeadlineExceeded
	}
	out.Id = query.Id
	return out, nil
}

const evil = "\x1b]0;owned\a\x1b[2J\u202e<script>&|`*_#\u009b31m"

// mangle changes one thing in a reply.
func (m *mangler) mangle(r *dns.Msg) {
	sections := []*[]dns.RR{&r.Answer, &r.Ns, &r.Extra}
	s := sections[m.rng.IntN(3)]
	names := []string{".", `\000.`, "*.com.", `\027[31m.com.`, "com.", r.Question[0].Name}
	some := func() dns.RR {
		if len(*s) == 0 {
			return new(dns.TXT)
		}
		return (*s)[m.rng.IntN(len(*s))]
	}
	header := func(t uint16) dns.RR_Header {
		return dns.RR_Header{Name: names[m.rng.IntN(len(names))], Rrtype: t, Class: dns.ClassINET,
			Ttl: []uint32{0, 1 << 31, 1<<32 - 1, 5}[m.rng.IntN(4)]}
	}
	switch m.rng.IntN(12) {
	case 0:
		r.Rcode = m.rng.IntN(24)
	case 1:
		r.Authoritative, r.RecursionAvailable, r.Truncated = !r.Authoritative, m.rng.IntN(2) == 0, m.rng.IntN(4) == 0
	case 2:
		*s = nil
	case 3:
		*s = append(*s, dns.Copy(some()))
	case 4:
		some().Header().Name = names[m.rng.IntN(len(names))]
	case 5:
		some().Header().Ttl = []uint32{0, 1 << 31, 1<<32 - 1}[m.rng.IntN(3)]
	case 6:
		*s = append(*s, &dns.SOA{Hdr: header(dns.TypeSOA), Ns: `\027[31m.`, Mbox: ".",
			Serial: 1<<32 - 1, Refresh: 1<<32 - 1, Retry: 0, Expire: 1 << 31, Minttl: 1<<32 - 1})
	case 7:
		t := []uint16{1, 2, 5, 6, 15, 28, 39, 43, 46, 47, 48, 50, 64, 65, 257, 65280}[m.rng.IntN(16)]
		data := make([]byte, m.rng.IntN(40))
		for i := range data {
			data[i] = byte(m.rng.Uint32())
		}
		*s = append(*s, &dns.RFC3597{Hdr: header(t), Rdata: hex.EncodeToString(data)})
	case 8:
		*s = append(*s, &dns.CNAME{Hdr: header(dns.TypeCNAME), Target: names[m.rng.IntN(len(names))]})
	case 9:
		*s = append(*s, &dns.NS{Hdr: header(dns.TypeNS), Ns: names[m.rng.IntN(len(names))]},
			&dns.TXT{Hdr: header(dns.TypeTXT), Txt: []string{evil}})
	case 10:
		if opt := r.IsEdns0(); opt != nil {
			opt.Option = append(opt.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: hex.EncodeToString([]byte(evil))},
				&dns.EDNS0_EDE{InfoCode: uint16(m.rng.IntN(40)), ExtraText: evil})
		}
	case 11:
		slices.Reverse(*s)
		r.Ns, r.Answer = r.Answer, r.Ns
	}
}

// TestMangled scans trees whose servers send invalid replies: nothing may fail, and no control characters may reach a
// terminal.
func TestMangled(t *testing.T) {
	for seed := range *healthy {
		tree := trees.Healthy(uint64(*first + seed))
		synctest.Test(t, func(t *testing.T) {
			net := simnet.New(1)
			if err := tree.Build(net); err != nil {
				t.Fatal(err)
			}
			g := gatherer(t, net)
			rng := rand.New(rand.NewPCG(uint64(seed), 3))
			g.Exchanger = &mangler{Exchanger: net, rng: rng, most: 1 + rng.IntN(8)}
			g.Progress = func(e gather.Event) {
				if e.Facts != nil {
					check.Run(e.Facts)
				}
			}
			scan, err1 := g.Scan(t.Context(), tree.Domain)
			analyze, err2 := g.Analyze(t.Context(), tree.Name, nil)
			compare, err3 := g.Compare(t.Context(), tree.Name, nil)
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatal(seed, err1, err2, err3)
			}
			for _, f := range []*explain.Facts{scan, analyze, compare} {
				write(t, seed, f)
			}
		})
	}
}

// write renders all formats of a report, and checks that they have no control characters.
func write(t *testing.T, seed int, f *explain.Facts) {
	t.Helper()
	var file bytes.Buffer
	if err := gather.Save(&file, f); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	f, err := gather.Load(&file)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	r := report.Make(f, check.Run(f))
	for _, format := range report.Formats {
		var out bytes.Buffer
		if err := r.Write(&out, format, report.TextOptions{All: true}); err != nil && !errors.Is(err, report.ErrNoPlan) {
			t.Fatalf("seed %d: %s: %v", seed, format, err)
		}
		text := strings.ReplaceAll(out.String(), "\r\n", "\n") // calendars end lines with CRLF
		for _, c := range text {
			if unicode.IsControl(c) && c != '\n' || c == '\u202e' {
				t.Fatalf("seed %d: %s has %q:\n%s", seed, format, c, out.String())
			}
		}
	}
}

package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

const (
	zoneName  = "bench.test."
	zoneNames = 100_000
	askedFor  = 200_000 // questions in the file; dnsperf starts again at its end
	sampled   = 300     // questions whose answers are checked before measuring
)

// host is one name of the zone. All its data follow from the number.
type host int

func (h host) name() string { return fmt.Sprintf("host%d.%s", int(h), zoneName) }
func (h host) v4() string   { return fmt.Sprintf("10.%d.%d.%d", h>>16&255, h>>8&255, h&255) }

// v6 uses netip for the canonical form of RFC 5952.
func (h host) v6() string {
	return netip.MustParseAddr(fmt.Sprintf("2001:db8::%x:%x", h>>16&0xffff, h&0xffff)).String()
}

// alias reports whether the name is a CNAME for the name before it: one in ten is.
func (h host) alias() bool { return h%10 == 9 }

// dual reports whether the name also has an IPv6 address: one in five has.
func (h host) dual() bool { return h%5 == 0 }

// writeZone writes a master file of that many names below the apex.
func writeZone(dir string, names int) (peers.Zone, error) {
	file := filepath.Join(dir, fmt.Sprintf("%d.zone", names))
	f, err := os.Create(file)
	if err != nil {
		return peers.Zone{}, err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprintf(w, "$ORIGIN %s\n$TTL 300\n@ IN SOA ns hostmaster 1 3600 600 86400 60\n@ IN NS ns\nns IN A 192.0.2.53\n",
		zoneName)
	for h := range host(names) {
		if h.alias() {
			fmt.Fprintf(w, "host%d IN CNAME host%d\n", h, h-1)
			continue
		}
		fmt.Fprintf(w, "host%d IN A %s\n", h, h.v4())
		if h.dual() {
			fmt.Fprintf(w, "host%d IN AAAA %s\n", h, h.v6())
		}
	}
	if err := w.Flush(); err != nil {
		return peers.Zone{}, err
	}
	return peers.Zone{Name: zoneName, File: file}, f.Sync()
}

// query is a question and its correct answer.
type query struct {
	name  string
	qtype uint16
	rcode int
	data  string // RDATA of the last answer record, or empty
}

// mix returns the same list of questions in every run: 75 % addresses, 8 % IPv6 addresses, 7 % through a CNAME, 10 %
// names that do not exist.
func mix(n int) []query {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]query, n)
	for i := range list {
		h := host(r.IntN(zoneNames/10) * 10) // a multiple of ten, from which each kind of name can be reached
		switch p := r.IntN(100); {
		case p < 75:
			h += host(r.IntN(9))
			list[i] = query{h.name(), dns.TypeA, dns.RcodeSuccess, h.v4()}
		case p < 83:
			list[i] = query{h.name(), dns.TypeAAAA, dns.RcodeSuccess, h.v6()}
		case p < 90:
			list[i] = query{(h + 9).name(), dns.TypeA, dns.RcodeSuccess, (h + 8).v4()}
		default:
			list[i] = query{"no" + h.name(), dns.TypeA, dns.RcodeNameError, ""}
		}
	}
	return list
}

// writeQueries writes the questions in the format of dnsperf.
func writeQueries(dir string, list []query) (string, error) {
	file := filepath.Join(dir, "queries")
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, q := range list {
		fmt.Fprintf(w, "%s %s\n", q.name, dns.TypeToString[q.qtype])
	}
	return file, w.Flush()
}

// verify checks the answers to a sample of the questions: the speed of wrong answers means nothing.
func verify(addr string, list []query) error {
	client := dns.Client{Timeout: 2 * time.Second}
	for _, q := range list[:sampled] {
		r, _, err := client.Exchange(new(dns.Msg).SetQuestion(q.name, q.qtype), addr)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		if got := lastAddress(r); r.Rcode != q.rcode || got != q.data || !r.Authoritative {
			return fmt.Errorf("%s %s = %s %q, want %s %q with authority", q.name, dns.TypeToString[q.qtype],
				dns.RcodeToString[r.Rcode], got, dns.RcodeToString[q.rcode], q.data)
		}
	}
	return nil
}

// lastAddress returns the address in the last answer record, which is the end of a CNAME chain.
func lastAddress(m *dns.Msg) string {
	if len(m.Answer) == 0 {
		return ""
	}
	switch rr := m.Answer[len(m.Answer)-1].(type) {
	case *dns.A:
		return rr.A.String()
	case *dns.AAAA:
		return rr.AAAA.String()
	}
	return "another type"
}

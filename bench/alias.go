package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

const (
	aliases       = 100_000
	aliasTargets  = 1_000
	targetTTL     = 60
	changedTTL    = 2
	changedTarget = "changed.target.test."
)

// alias measures ALIAS records: the cost of many of them while nothing changes, and the time until a change reaches
// all secondaries.
func (b *bench) alias(ctx context.Context) error {
	if b.nameplane == "" {
		return nil // built has added a note
	}
	up, err := newAuthority()
	if err != nil {
		return err
	}
	defer up.close()
	if err := b.manyAliases(ctx, up); err != nil {
		return err
	}
	return b.propagation(ctx, up)
}

// authority answers for the targets, and counts queries.
type authority struct {
	server  *dns.Server
	addr    string
	queries atomic.Int64

	mu      sync.Mutex // guards changed
	changed string     // address of changedTarget
}

// newAuthority answers from this process. The measured server sends it so few queries that its CPU time does not
// matter.
func newAuthority() (*authority, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &authority{addr: conn.LocalAddr().String(), changed: publicAddress(200)}
	a.server = &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(a.answer)}
	go func() { _ = a.server.ActivateAndServe() }() // until close
	return a, nil
}

func (a *authority) close() { _ = a.server.Shutdown() }

// set changes the address of changedTarget, as the owner of a target does.
func (a *authority) set(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = address
}

// answer has an A record for every name and no AAAA records, so that each target costs two queries, as most names do.
func (a *authority) answer(w dns.ResponseWriter, q *dns.Msg) {
	a.queries.Add(1)
	name, qtype := q.Question[0].Name, q.Question[0].Qtype
	ttl, address := targetTTL, "203.0.113.7"
	if strings.EqualFold(name, changedTarget) {
		a.mu.Lock()
		ttl, address = changedTTL, a.changed
		a.mu.Unlock()
	}
	text := fmt.Sprintf("%s %d IN A %s", name, ttl, address)
	if qtype != dns.TypeA {
		text = fmt.Sprintf("target.test. %d IN SOA ns.target.test. host.target.test. 1 3600 600 86400 %d", ttl, ttl)
	}
	rec, err := dns.NewRR(text)
	if err != nil {
		return
	}
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	if qtype == dns.TypeA {
		m.Answer = []dns.RR{rec}
	} else {
		m.Ns = []dns.RR{rec}
	}
	_ = w.WriteMsg(m) // a client without a reply asks again
}

// writeAliases writes a zone of ALIAS records to the targets.
func (b *bench) writeAliases(names int) (peers.Zone, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "$ORIGIN %s\n@ 300 IN SOA ns1 host 1 3600 600 86400 300\n@ 300 IN NS ns1\nns1 300 IN A 192.0.2.1\n",
		zoneName)
	for i := range names {
		fmt.Fprintf(&t, "host%d 300 IN ALIAS t%d.target.test.\n", i, i%aliasTargets)
	}
	file := filepath.Join(b.dir, "aliases.zone")
	return peers.Zone{Name: zoneName, File: file}, os.WriteFile(file, []byte(t.String()), 0o600)
}

// manyAliases measures a hundred thousand names that follow a thousand unchanged targets.
func (b *bench) manyAliases(ctx context.Context, up *authority) error {
	names := aliases
	if b.quick {
		names = 5_000
	}
	zone, err := b.writeAliases(names)
	if err != nil {
		return err
	}
	config := fmt.Sprintf("follow: {resolvers: [%q]}\n", up.addr)
	s, err := peers.Nameplane(b.nameplane).Start(ctx, []peers.Zone{zone},
		peers.Options{Core: serverCore, Ready: 2 * time.Minute, Config: config})
	if err != nil {
		return err
	}
	defer s.Stop()
	begin := time.Now()
	for i := range aliasTargets {
		if err := followed(ctx, s.Addr, host(i).name(), "203.0.113.7", 2*time.Minute); err != nil {
			return err
		}
	}
	first := time.Since(begin)
	time.Sleep(b.seconds(90, 5)) // until the queries of the targets are spread over their TTL
	before, err := s.Usage()
	if err != nil {
		return err
	}
	asked, serial := up.queries.Load(), serialOf(s.Addr)
	length := b.seconds(120, 5)
	time.Sleep(length)
	after, err := s.Usage()
	if err != nil {
		return err
	}
	if got := serialOf(s.Addr); got != serial {
		return fmt.Errorf("the serial stepped from %d to %d while nothing changed", serial, got)
	}
	b.report.table(fmt.Sprintf("%d ALIAS records on %d targets of TTL %d", names, aliasTargets, targetTTL), [][]string{
		{"", "measured"},
		{"all flattened after the import, at 100 lookups per second", fmt.Sprintf("%.1f s", first.Seconds())},
		{"queries to the resolver", fmt.Sprintf("%.1f/s", float64(up.queries.Load()-asked)/length.Seconds())},
		{"CPU", fmt.Sprintf("%.2f %% of one core", 100*(after.CPU-before.CPU).Seconds()/length.Seconds())},
		{"memory", fmt.Sprintf("%.0f MB", float64(after.Memory)/1e6)},
		{"serial steps", "0"},
	})
	return nil
}

// followed waits until a server answers a name with an address.
func followed(ctx context.Context, addr, name, want string, timeout time.Duration) error {
	client := dns.Client{Timeout: time.Second}
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	for end := time.Now().Add(timeout); ; {
		r, _, err := client.ExchangeContext(ctx, m, addr)
		if err == nil && lastAddress(r) == want {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("%s is not answered with %s at %s", name, want, addr)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// serialOf returns the serial of the zone, or 0 when the server does not answer.
func serialOf(addr string) uint32 {
	r, err := dns.Exchange(new(dns.Msg).SetQuestion(zoneName, dns.TypeSOA), addr)
	if err != nil || len(r.Answer) == 0 {
		return 0
	}
	soa, _ := r.Answer[0].(*dns.SOA)
	return soa.Serial
}

// publicAddress returns an address that an ALIAS may lead to: private ones are refused.
func publicAddress(n int) string { return fmt.Sprintf("198.51.100.%d", 1+n%250) }

// propagation changes a target repeatedly. Each time it waits until all secondaries answer with the new address.
func (b *bench) propagation(ctx context.Context, up *authority) error {
	zone, err := writeZone(b.dir, zoneNames)
	if err != nil {
		return err
	}
	config := fmt.Sprintf("follow: {resolvers: [%q], ttl_floor: %ds}\n", up.addr, changedTTL)
	s, err := peers.Nameplane(b.nameplane).Start(ctx, []peers.Zone{zone},
		peers.Options{Ready: 2 * time.Minute, Transfer: true, Config: config})
	if err != nil {
		return err
	}
	defer s.Stop()
	if _, err := s.Run(ctx, "record", "set", zoneName, "@", "ALIAS", changedTarget, "--ttl", "300"); err != nil {
		return err
	}
	var secondaries []*peers.Server
	config += "transfer:\n  allow: [127.0.0.0/8]\n  secondaries:\n"
	for _, p := range peers.Secondaries() {
		f, err := p.Start(ctx, []peers.Zone{{Name: zoneName}}, peers.Options{Primary: s.Addr, Ready: 2 * time.Minute})
		if err != nil {
			return err
		}
		defer f.Stop()
		secondaries = append(secondaries, f)
		config += fmt.Sprintf("    - {address: %q}\n", f.Addr)
	}
	file := filepath.Join(s.Dir, "nameplane.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(file, 0o644); err != nil { // the server no longer runs as root
		return err
	}
	if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
		return err
	}
	return b.changes(ctx, up, s, secondaries)
}

// changes measures how long each of several changes takes to reach all secondaries, and the size of the IXFR.
func (b *bench) changes(ctx context.Context, up *authority, s *peers.Server, secondaries []*peers.Server) error {
	rounds := 30
	if b.quick {
		rounds = 3
	}
	late := make([]time.Duration, 0, rounds)
	largest := 0
	for i := range rounds + 1 { // the first round checks that all secondaries follow
		before := serialOf(s.Addr)
		address := publicAddress(i)
		up.set(address)
		begin := time.Now()
		for _, f := range secondaries {
			if err := followed(ctx, f.Addr, zoneName, address, time.Minute); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		took := time.Since(begin)
		if i == 0 {
			continue
		}
		late = append(late, took-changedTTL*time.Second)
		size, err := ixfrSize(s.Addr, before)
		if err != nil {
			return err
		}
		largest = max(largest, size)
	}
	slices.Sort(late)
	const heading = "A changed target of TTL %d, to BIND, Knot, NSD and PowerDNS, in a zone of %d names"
	b.report.table(fmt.Sprintf(heading, changedTTL, zoneNames), [][]string{
		{"", "measured"},
		{"all secondaries in sync, after the latest end of the TTL, p50", fmt.Sprintf("%.2f s", late[len(late)/2].Seconds())},
		{"p99", fmt.Sprintf("%.2f s", late[len(late)*99/100].Seconds())},
		{"largest IXFR", fmt.Sprintf("%d bytes", largest)},
	})
	return nil
}

// ixfrSize returns the size in bytes of the difference from a serial to now.
func ixfrSize(addr string, serial uint32) (int, error) {
	conn, err := dns.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.WriteMsg(new(dns.Msg).SetIxfr(zoneName, serial, ".", ".")); err != nil {
		return 0, err
	}
	m, err := conn.ReadMsgHeader(nil)
	return len(m), err
}

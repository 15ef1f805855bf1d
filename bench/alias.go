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

// alias measures names that follow others: what many of them cost while nothing changes, and how long a change takes to all
// secondaries.
func (b *bench) alias(ctx context.Context) error {
	if b.nameplane == "" {
		return nil // said when it was looked for
	}
	up, err := newAuthority()
	if err != nil {
		return err
	}
	defer up.close()
	if err := b.crowd(ctx, up); err != nil {
		return err
	}
	return b.spread(ctx, up)
}

// authority answers for the targets, and counts.
type authority struct {
	server  *dns.Server
	addr    string
	queries atomic.Int64

	mu      sync.Mutex // guards changed
	changed string     // address of changedTarget
}

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

func (a *authority) set(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = address
}

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
	_ = w.WriteMsg(m) // who does not wait for it asks again
}

// writeAliases writes a zone of names that follow the targets.
func (b *bench) writeAliases(names int) (peers.Zone, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "$ORIGIN %s\n@ 300 IN SOA ns1 host 1 3600 600 86400 300\n@ 300 IN NS ns1\nns1 300 IN A 192.0.2.1\n", zoneName)
	for i := range names {
		fmt.Fprintf(&t, "host%d 300 IN ALIAS t%d.target.test.\n", i, i%aliasTargets)
	}
	file := filepath.Join(b.dir, "aliases.zone")
	return peers.Zone{Name: zoneName, File: file}, os.WriteFile(file, []byte(t.String()), 0o600)
}

// crowd has a hundred thousand names follow a thousand that stay as they are.
func (b *bench) crowd(ctx context.Context, up *authority) error {
	names := aliases
	if b.quick {
		names = 5_000
	}
	zone, err := b.writeAliases(names)
	if err != nil {
		return err
	}
	config := fmt.Sprintf("follow: {resolvers: [%q]}\n", up.addr)
	s, err := peers.Nameplane(b.nameplane).Start(ctx, []peers.Zone{zone}, peers.Options{Core: serverCore, Ready: 2 * time.Minute, Config: config})
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
	time.Sleep(b.seconds(90, 5)) // until the targets are spread over their TTL
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
		{"all flattened after the import, at 100 lookups a second", fmt.Sprintf("%.1f s", first.Seconds())},
		{"queries to the resolver", fmt.Sprintf("%.1f/s", float64(up.queries.Load()-asked)/length.Seconds())},
		{"CPU", fmt.Sprintf("%.2f %% of one core", 100*(after.CPU-before.CPU).Seconds()/length.Seconds())},
		{"memory", fmt.Sprintf("%.0f MB", float64(after.Memory)/1e6)},
		{"serial steps", "0"},
	})
	return nil
}

// followed waits until a server answers a name with an address.
func followed(ctx context.Context, addr, name, want string, patience time.Duration) error {
	client := dns.Client{Timeout: time.Second}
	m := new(dns.Msg).SetQuestion(name, dns.TypeA)
	for end := time.Now().Add(patience); ; {
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

func serialOf(addr string) uint32 {
	r, err := dns.Exchange(new(dns.Msg).SetQuestion(zoneName, dns.TypeSOA), addr)
	if err != nil || len(r.Answer) == 0 {
		return 0
	}
	soa, _ := r.Answer[0].(*dns.SOA)
	return soa.Serial
}

// publicAddress is one of those that an ALIAS may lead to: private ones are refused.
func publicAddress(n int) string { return fmt.Sprintf("198.51.100.%d", 1+n%250) }

// spread changes a target again and again, and waits each time until all secondaries answer with its new address.
func (b *bench) spread(ctx context.Context, up *authority) error {
	zone, err := writeZone(b.dir, zoneNames)
	if err != nil {
		return err
	}
	config := fmt.Sprintf("follow: {resolvers: [%q], ttl_floor: %ds}\n", up.addr, changedTTL)
	s, err := peers.Nameplane(b.nameplane).Start(ctx, []peers.Zone{zone}, peers.Options{Ready: 2 * time.Minute, Transfer: true, Config: config})
	if err != nil {
		return err
	}
	defer s.Stop()
	if _, err := s.Run(ctx, "record", "set", zoneName, "@", "ALIAS", changedTarget, "--ttl", "300"); err != nil {
		return err
	}
	var fleet []*peers.Server
	config += "transfer:\n  allow: [127.0.0.0/8]\n  secondaries:\n"
	for _, p := range peers.Secondaries() {
		f, err := p.Start(ctx, []peers.Zone{{Name: zoneName}}, peers.Options{Primary: s.Addr, Ready: 2 * time.Minute})
		if err != nil {
			return err
		}
		defer f.Stop()
		fleet = append(fleet, f)
		config += fmt.Sprintf("    - {address: %q}\n", f.Addr)
	}
	file := filepath.Join(s.Dir, "nameplane.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	if err := os.Chmod(file, 0o644); err != nil { // the server is not root any more
		return err
	}
	if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
		return err
	}
	return b.changes(ctx, up, s, fleet)
}

func (b *bench) changes(ctx context.Context, up *authority, s *peers.Server, fleet []*peers.Server) error {
	rounds := 30
	if b.quick {
		rounds = 3
	}
	late := make([]time.Duration, 0, rounds)
	largest := 0
	for i := range rounds + 1 { // the first finds out whether all follow
		before := serialOf(s.Addr)
		address := publicAddress(i)
		up.set(address)
		begin := time.Now()
		for _, f := range fleet {
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
	b.report.table(fmt.Sprintf("A changed target of TTL %d, to BIND, Knot, NSD and PowerDNS, in a zone of %d names", changedTTL, zoneNames), [][]string{
		{"", "measured"},
		{"all in sync after the TTL ended at the latest, p50", fmt.Sprintf("%.2f s", late[len(late)/2].Seconds())},
		{"p99", fmt.Sprintf("%.2f s", late[len(late)*99/100].Seconds())},
		{"largest IXFR", fmt.Sprintf("%d octets", largest)},
	})
	return nil
}

// ixfrSize is how many octets the difference from a serial to now takes.
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

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// rest measures acknowledged changes, of nameplane by REST and of BIND by dynamic update, on the same zone and disk.
// No process is pinned here: a server that waits for the disk leaves its core to others.
func (b *bench) rest(ctx context.Context) error {
	zone, err := writeZone(b.dir, zoneNames)
	if err != nil {
		return err
	}
	rows := [][]string{{"server and writers", "changes/s", "p50", "p99", "errors"}}
	if b.nameplane != "" {
		ours, err := b.restChanges(ctx, zone)
		if err != nil {
			return err
		}
		rows = append(rows, ours...)
	}
	bind, err := b.updates(ctx, zone)
	if err != nil {
		return err
	}
	rows = append(rows, bind...)
	sync, err := syncTime(b.dir)
	if err != nil {
		return err
	}
	rows = append(rows, []string{"one fdatasync of 4 KB on that disk", "-", millis(sync), "-", "-"})
	b.report.table(fmt.Sprintf("Acknowledged changes, zone of %d names", zoneNames), rows)
	return nil
}

// restChanges counts a change when the reply has arrived, and checks by DNS that the last change of each writer is
// served. A fast reply to a lost change would be worth nothing.
func (b *bench) restChanges(ctx context.Context, zone peers.Zone) ([][]string, error) {
	s, err := peers.Nameplane(b.nameplane).Start(ctx, []peers.Zone{zone}, peers.Options{Ready: time.Minute})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	var rows [][]string
	offset := 0
	for _, count := range []int{1, 8, 64} {
		d, err := designateOf(s, count)
		if err != nil {
			return nil, err
		}
		sets, err := d.addressSets(zoneName, 10_000)
		if err != nil {
			return nil, err
		}
		conns, err := dialDirect(d.base, d.token, count)
		if err != nil {
			return nil, err
		}
		last := make([]int, count) // each writer's last acknowledged change
		c := writers{count: count, length: b.seconds(10, 3)}.run(func(writer, n int) error {
			n += offset
			err := conns[writer].put(sets[n%len(sets)], newAddress(n))
			if err == nil {
				last[writer] = n
			}
			return err
		})
		offset += c.Done + c.Errors + count
		for _, conn := range conns {
			conn.conn.Close()
		}
		for _, n := range last {
			if err := served(s.Addr, sets[n%len(sets)].Name, newAddress(n)); err != nil {
				return nil, err
			}
		}
		if c.Errors > 0 {
			b.report.note("nameplane, %d writers: the first error was %s", count, c.First)
		}
		rows = append(rows, c.row(fmt.Sprintf("nameplane, REST, %d", count)))
	}
	return rows, nil
}

// updates measures RFC 2136 messages over UDP without a signature, one at a time for each writer: replace the
// addresses of a name, wait for NOERROR.
func (b *bench) updates(ctx context.Context, zone peers.Zone) ([][]string, error) {
	s, err := peers.BIND().Start(ctx, []peers.Zone{zone}, peers.Options{Update: true, Ready: time.Minute})
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	var rows [][]string
	offset := 0
	for _, count := range []int{1, 8} {
		conns := make([]*dns.Conn, count)
		for i := range conns {
			if conns[i], err = dns.Dial("udp", s.Addr); err != nil {
				return nil, err
			}
			defer conns[i].Close()
		}
		c := writers{count: count, length: b.seconds(10, 3)}.run(func(writer, n int) error {
			return update(conns[writer], n+offset)
		})
		offset += c.Done + c.Errors + count
		if c.Errors > 0 {
			b.report.note("BIND, %d writers: the first error was %s", count, c.First)
		}
		rows = append(rows, c.row(fmt.Sprintf("BIND, dynamic update, %d", count)))
	}
	return rows, nil
}

// update replaces the addresses of a name in one message, as a REST request does.
func update(conn *dns.Conn, n int) error {
	h := host(n % (zoneNames / 10) * 10)
	set := &dns.A{Hdr: dns.RR_Header{Name: h.name(), Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 300}}
	remove := *set
	rr, err := dns.NewRR(fmt.Sprintf("%s 300 IN A %s", h.name(), newAddress(n)))
	if err != nil {
		return err
	}
	m := new(dns.Msg)
	m.SetUpdate(zoneName)
	m.RemoveRRset([]dns.RR{&remove})
	m.Insert([]dns.RR{rr})
	client := dns.Client{Timeout: 5 * time.Second}
	r, _, err := client.ExchangeWithConn(m, conn)
	if err != nil {
		return err
	}
	if r.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("update of %s: %s", h.name(), dns.RcodeToString[r.Rcode])
	}
	return nil
}

// served checks that the server answers with an acknowledged change.
func served(addr, name, address string) error {
	r, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), addr)
	if err != nil {
		return err
	}
	if got := lastAddress(r); got != address {
		return fmt.Errorf("%s was changed to %s and acknowledged, but %s is served", name, address, got)
	}
	return nil
}

// syncTime returns the median time to write 4 KB durably: the lower bound of a single change.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	page := make([]byte, 4096)
	var taken []float64
	for range 500 {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		taken = append(taken, float64(time.Since(start)))
	}
	return time.Duration(median(taken)), nil
}

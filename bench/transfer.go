package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// transfer measures AXFR of a million names. The client counts records and does not parse them, so that the servers
// are the limit.
func (b *bench) transfer(ctx context.Context) error {
	names := 1_000_000
	if b.quick {
		names = 100_000
	}
	zone, err := writeZone(b.dir, names)
	if err != nil {
		return err
	}
	rows := [][]string{{"server", "seconds", "ratio to Knot", "records", "MB", "CPU s"}}
	var knot float64
	var list []axfrResult
	for _, p := range b.programs() {
		if p.Name == "BIND" || p.Name == "CoreDNS" {
			continue // both are much slower
		}
		s, err := p.Start(ctx, []peers.Zone{zone}, peers.Options{Core: serverCore, Ready: 3 * time.Minute, Transfer: true})
		if err != nil {
			return err
		}
		got, err := fastest(s)
		s.Stop()
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if s.Name == "Knot" {
			knot = got.took.Seconds()
		}
		list = append(list, got)
	}
	for _, r := range list {
		rows = append(rows, []string{r.name, fmt.Sprintf("%.2f", r.took.Seconds()), ratio(r.took.Seconds(), knot),
			fmt.Sprint(r.records), fmt.Sprintf("%.0f", float64(r.size)/1e6), fmt.Sprintf("%.2f", r.cpu.Seconds())})
	}
	b.report.table(fmt.Sprintf("AXFR of %d names, server on one core", names), rows)
	return nil
}

// axfrResult is one transfer.
type axfrResult struct {
	name    string
	took    time.Duration
	cpu     time.Duration
	records int
	size    int64
}

// fastest returns the best of five transfers: other load of the machine can only make one slower.
func fastest(s *peers.Server) (best axfrResult, err error) {
	for i := range 5 {
		before, err := s.Usage()
		if err != nil {
			return best, err
		}
		got, err := axfr(s.Addr)
		if err != nil {
			return best, err
		}
		after, err := s.Usage()
		if err != nil {
			return best, err
		}
		got.name, got.cpu = s.Name, after.CPU-before.CPU
		if i == 0 || got.took < best.took {
			best = got
		}
	}
	return best, nil
}

// axfr transfers the zone and counts. The last message ends with an SOA, as the first one begins with one.
func axfr(addr string) (r axfrResult, err error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return r, err
	}
	query, err := new(dns.Msg).SetAxfr(zoneName).Pack()
	if err != nil {
		return r, err
	}
	start := time.Now()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		return r, err
	}
	in := bufio.NewReaderSize(conn, 1<<18)
	buf := make([]byte, 65535)
	for {
		var size [2]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return r, err
		}
		msg := buf[:binary.BigEndian.Uint16(size[:])]
		if _, err := io.ReadFull(in, msg); err != nil {
			return r, err
		}
		if len(msg) < 12 || msg[3]&0xf != 0 {
			return r, errors.New("the transfer was refused")
		}
		r.records += int(binary.BigEndian.Uint16(msg[6:]))
		r.size += int64(len(msg))
		// Parse a message only when the buffer is empty: only such a message can be the last.
		if in.Buffered() == 0 {
			m := new(dns.Msg)
			if err := m.Unpack(msg); err != nil {
				return r, err
			}
			if n := len(m.Answer); n > 0 && r.records > 1 && m.Answer[n-1].Header().Rrtype == dns.TypeSOA {
				r.took = time.Since(start)
				return r, nil
			}
		}
	}
}

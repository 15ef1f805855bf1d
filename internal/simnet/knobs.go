package simnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

func (s *Server) parseSerial(args []string) (command, error) {
	zone, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	if s.zones[zone] == nil {
		return nil, fmt.Errorf("%v is no zone of this server", zone)
	}
	serial, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		return nil, err
	}
	return func(s *Server) {
		soa := dns.Copy(s.zones[zone]).(*dns.SOA)
		soa.Serial = uint32(serial)
		s.zones[zone] = soa
	}, nil
}

func (s *Server) parseView(args []string) (command, error) {
	clients, err := netip.ParsePrefix(args[0])
	if err != nil {
		return nil, err
	}
	k, set, err := parseSet(args[1:])
	if err != nil {
		return nil, err
	}
	return func(s *Server) { s.views = append(s.views, view{clients, k, set}) }, nil
}

func (s *Server) parseTTLs(args []string) (command, error) {
	k, err := parseKey(args[:2])
	if err != nil {
		return nil, err
	}
	var ttls []uint32
	for _, a := range args[2:] {
		ttl, err := parseTTL(a)
		if err != nil {
			return nil, err
		}
		ttls = append(ttls, ttl)
	}
	return func(s *Server) { s.manner.ttls[k] = ttls }, nil
}

func parseTTL(text string) (uint32, error) {
	ttl, err := strconv.ParseUint(text, 10, 31)
	return uint32(ttl), err
}

func (s *Server) parseSign(args []string) (command, error) {
	zone, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	if s.zones[zone] == nil {
		return nil, fmt.Errorf("%v is no zone of this server", zone)
	}
	name := ""
	for _, word := range args[1:] {
		if n, ok := strings.CutPrefix(word, "key="); ok {
			name = n
		}
	}
	k := newSigner(zone, name)
	for _, word := range args[1:] {
		switch {
		case word == "expired":
			k.begins, k.ends = -2*signedDays, -24*time.Hour
		case word == "early":
			k.begins, k.ends = 24*time.Hour, signedDays
		case word == "broken":
			k.broken = true
		case word == "noproof":
			k.noProof = true
		case !strings.HasPrefix(word, "key="):
			return nil, fmt.Errorf("%q is no way to sign", word)
		}
	}
	return func(s *Server) { s.signers[zone] = k }, nil
}

func (s *Server) parseDS(args []string) (command, error) {
	zone, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	ttl, err := parseTTL(args[1])
	if err != nil {
		return nil, err
	}
	ds := newSigner(zone, strings.Join(args[2:], "")).ds(ttl)
	k := key{zone, dns.TypeDS}
	return func(s *Server) { s.putLocked(k, append(slices.Clone(s.sets[k]), ds)) }, nil
}

func (s *Server) parseOnly(args []string) (command, error) {
	if args[0] != "udp" && args[0] != "tcp" {
		return nil, fmt.Errorf("there are udp and tcp")
	}
	return func(s *Server) { s.manner.only = args[0] }, nil
}

func (s *Server) parseEDNS(args []string) (command, error) {
	m := ednsManner(args[0])
	if !slices.Contains(ednsManners, m) {
		return nil, fmt.Errorf("%q is no manner of EDNS", m)
	}
	return func(s *Server) { s.manner.edns = m }, nil
}

func (s *Server) parseSource(args []string) (command, error) {
	at, err := resolve.ParseServer(args[0])
	if err != nil {
		return nil, err
	}
	return func(s *Server) { s.manner.source = at.Addr }, nil
}

func (s *Server) parseDeaf(args []string) (command, error) {
	clients, err := netip.ParsePrefix(args[0])
	if err != nil {
		return nil, err
	}
	return func(s *Server) { s.manner.deaf = append(s.manner.deaf, clients) }, nil
}

func (s *Server) parseLatency(args []string) (command, error) {
	fastest, err := time.ParseDuration(args[0])
	if err != nil {
		return nil, err
	}
	slowest, err := time.ParseDuration(args[len(args)-1])
	if err != nil {
		return nil, err
	}
	return func(s *Server) { s.manner.fastest, s.manner.slowest = fastest, slowest }, nil
}

func (s *Server) parseLoss(args []string) (command, error) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(args[0], "%"), 64)
	if err != nil {
		return nil, err
	}
	return func(s *Server) { s.manner.loss = percent / 100 }, nil
}

func (s *Server) parseFault(args []string) (command, error) {
	kind := faultKind(args[0])
	if !slices.Contains(faultKinds, kind) {
		return nil, fmt.Errorf("%q is no kind of fault", kind)
	}
	k, err := parseKey(args[1:])
	if err != nil {
		return nil, err
	}
	return func(s *Server) { s.manner.faults = append(s.manner.faults, fault{kind, k}) }, nil
}

func (s *Server) parseHeal(args []string) (command, error) {
	k, err := parseKey(args)
	if err != nil {
		return nil, err
	}
	return func(s *Server) {
		s.manner.faults = slices.DeleteFunc(s.manner.faults, func(f fault) bool { return len(args) == 0 || f.key == k })
	}, nil
}

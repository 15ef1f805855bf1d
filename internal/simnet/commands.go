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
)

func (s *Server) parseSerial(args []string) (command, error) {
	zone, err := s.parseOwnZone(args[0])
	if err != nil {
		return nil, err
	}
	serial, err := strconv.ParseUint(args[1], 10, 32)
	return func(s *Server) {
		soa := dns.Copy(s.zones[zone]).(*dns.SOA)
		soa.Serial = uint32(serial)
		s.zones[zone] = soa
	}, err
}

// parseOwnZone parses the name of a zone of the server.
func (s *Server) parseOwnZone(text string) (dnsname.Name, error) {
	zone, err := dnsname.Parse(text)
	if err == nil && s.zones[zone] == nil {
		err = fmt.Errorf("%v is not a zone of this server", zone)
	}
	return zone, err
}

func (s *Server) parseView(args []string) (command, error) {
	clients, err := netip.ParsePrefix(args[0])
	if err != nil {
		return nil, err
	}
	k, set, err := parseSet(args[1:])
	return func(s *Server) { s.views = append(s.views, view{clients, k, set}) }, err
}

func (s *Server) parseTTLs(args []string) (command, error) {
	k, err := parseKey(args[:2])
	if err != nil {
		return nil, err
	}
	ttls, err := parseAll(args[2:], parseTTL)
	return func(s *Server) { s.behavior.ttls[k] = ttls }, err
}

func (s *Server) parsePart(args []string) (command, error) {
	k, err := parseKey(args[:2])
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(args[2])
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%q is not a number of records", args[2])
	}
	return func(s *Server) { s.behavior.parts[k] = n }, nil
}

// parseAll parses arguments of the same kind.
func parseAll[T any](args []string, parse func(string) (T, error)) (all []T, err error) {
	for _, a := range args {
		v, err := parse(a)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func parseTTL(text string) (uint32, error) {
	ttl, err := strconv.ParseUint(text, 10, 31)
	return uint32(ttl), err
}

func (s *Server) parseSign(args []string) (command, error) {
	zone, err := s.parseOwnZone(args[0])
	if err != nil {
		return nil, err
	}
	name := ""
	for _, word := range args[1:] {
		if n, ok := strings.CutPrefix(word, "key="); ok {
			name = n
		}
	}
	k := newSigner(zone, name)
	for _, word := range args[1:] {
		switch extra, has := strings.CutPrefix(word, "extra="); {
		case has:
			k.extra = newSigner(zone, extra).public
		case strings.HasPrefix(word, "nsec3"):
			if k.nsec3, err = parseNSEC3(word); err != nil {
				return nil, err
			}
		case word == "expired":
			k.begins, k.ends = -2*signedDays, -24*time.Hour
		case word == "early":
			k.begins, k.ends = 24*time.Hour, signedDays
		case word == "broken":
			k.broken = true
		case word == "noproof":
			k.noProof = true
		case word == "bareproof":
			k.bare = true
		case !strings.HasPrefix(word, "key="):
			return nil, fmt.Errorf("%q is not an option of sign", word)
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

// parseCDS parses ZONE TTL [NAME]: both records with which a zone asks its parent for the DS of a key.
func (s *Server) parseCDS(args []string) (command, error) {
	zone, err := s.parseOwnZone(args[0])
	if err != nil {
		return nil, err
	}
	ttl, err := parseTTL(args[1])
	cds, key := newSigner(zone, strings.Join(args[2:], "")).child(ttl)
	return func(s *Server) {
		for _, rec := range []dns.RR{cds, key} {
			s.putLocked(keyOf(zone, rec), append(slices.Clone(s.sets[keyOf(zone, rec)]), rec))
		}
	}, err
}

func keyOf(owner dnsname.Name, rec dns.RR) key { return key{owner, rec.Header().Rrtype} }

func (s *Server) parseLatency(args []string) (command, error) {
	times, err := parseAll(args, time.ParseDuration)
	return func(s *Server) { s.behavior.fastest, s.behavior.slowest = times[0], times[len(times)-1] }, err
}

func parsePercent(text string) (float64, error) {
	return strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
}

// parseKind parses one of several words.
func parseKind[T ~string](kinds []T, what string) func(string) (T, error) {
	return func(text string) (T, error) {
		if !slices.Contains(kinds, T(text)) {
			return "", fmt.Errorf("%q is not a valid %s", text, what)
		}
		return T(text), nil
	}
}

// parseEither parses one of two words.
func parseEither(a, b string) func(string) (string, error) {
	return func(text string) (string, error) {
		if text != a && text != b {
			return "", fmt.Errorf("%q is neither %s nor %s", text, a, b)
		}
		return text, nil
	}
}

func (s *Server) parseFault(args []string) (command, error) {
	kind, err := parseKind(faultKinds, "kind of fault")(args[0])
	if err != nil {
		return nil, err
	}
	k, err := parseKey(args[1:])
	return func(s *Server) { s.behavior.faults = append(s.behavior.faults, fault{kind, k}) }, err
}

func (s *Server) parseHeal(args []string) (command, error) {
	k, err := parseKey(args)
	return func(s *Server) {
		s.behavior.faults = slices.DeleteFunc(s.behavior.faults, func(f fault) bool { return len(args) == 0 || f.key == k })
	}, err
}

package simnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

func (s *Server) parseResolve(args []string) (command, error) {
	servers, err := parseAll(args, resolve.ParseServer)
	return func(s *Server) {
		if s.resolver == nil {
			s.resolver = &resolver{caches: []*cache{newCache()}, failed: map[netip.AddrPort]time.Time{}}
		}
		s.resolver.policy.roots = nil
		for _, at := range servers {
			s.resolver.policy.roots = append(s.resolver.policy.roots, at.Addr)
		}
	}, err
}

// ofPolicy returns a command that only resolvers have.
func ofPolicy(parse func(args []string) (func(*policy), error)) func(*Server, []string) (command, error) {
	return func(s *Server, args []string) (command, error) {
		if s.resolver == nil {
			return nil, errNoResolver
		}
		change, err := parse(args)
		return func(s *Server) { change(&s.resolver.policy) }, err
	}
}

var errNoResolver = fmt.Errorf("the server is not a resolver: use the command resolve first")

func parseClamp(args []string) (func(*policy), error) {
	ttls, err := parseAll(args, parseTTL)
	return func(p *policy) { p.longest = limits{ttls[0], ttls[len(ttls)-1]} }, err
}

func parseSnoop(args []string) (func(*policy), error) {
	what, err := parseEither("cache", "refuse")(args[0])
	return func(p *policy) { p.refuse = what == "refuse" }, err
}

// outcomes are the results of filters, by their names in scripts.
var outcomes = map[string]int{"nxdomain": dns.RcodeNameError, "refused": dns.RcodeRefused,
	"servfail": dns.RcodeServerFailure}

func parseFilter(args []string) (func(*policy), error) {
	r, err := parseRule(args[0], args[2:], wire.EDEFiltered)
	if err != nil {
		return nil, err
	}
	var known bool
	if r.rcode, known = outcomes[args[1]]; !known {
		if r.addr, err = netip.ParseAddr(args[1]); err != nil {
			return nil, err
		}
	}
	return func(p *policy) { p.rules = append(slices.Clip(p.rules), r) }, nil
}

func parseBogus(args []string) (func(*policy), error) {
	r, err := parseRule(args[0], args[1:], wire.EDEBogus)
	if err != nil {
		return nil, err
	}
	r.rcode, r.check = dns.RcodeServerFailure, true
	return func(p *policy) { p.rules = append(slices.Clip(p.rules), r) }, nil
}

// parseRule parses NAME [EDE]. EDE 0 means no EDE at all, which many resolvers do.
func parseRule(name string, args []string, code uint16) (r rule, err error) {
	if r.name, err = dnsname.Parse(name); err != nil {
		return r, err
	}
	r.error = code
	if len(args) > 0 {
		n, err := strconv.ParseUint(args[0], 10, 16)
		if err != nil {
			return r, err
		}
		r.error = uint16(n)
	}
	return r, nil
}

func (s *Server) parseCaches(args []string) (command, error) {
	if s.resolver == nil {
		return nil, errNoResolver
	}
	n, err := strconv.ParseUint(args[0], 10, 8)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("%q is not a number of caches", args[0])
	}
	return func(s *Server) {
		s.resolver.mu.Lock()
		defer s.resolver.mu.Unlock()
		for len(s.resolver.caches) < int(n) {
			s.resolver.caches = append(s.resolver.caches, newCache())
		}
	}, nil
}

func (s *Server) parseHold(args []string) (command, error) {
	k, set, err := parseSet(args)
	if err != nil {
		return nil, err
	}
	return s.remember(k, entry{answer: set}, minTTL(set))
}

func (s *Server) parseDeny(args []string) (command, error) {
	name, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	ttl, err := parseTTL(args[1])
	if err != nil {
		return nil, err
	}
	e, k := entry{rcode: dns.RcodeNameError}, key{name: name}
	if args[2] != "*" {
		typ, err := rr.ParseType(args[2])
		if err != nil {
			return nil, err
		}
		e.rcode, k.typ = dns.RcodeSuccess, uint16(typ)
	}
	zone, err := dnsname.Parse(args[3])
	if err != nil {
		return nil, err
	}
	record := soa(zone, ttl, ttl)
	if len(args) > 4 {
		serial, err := strconv.ParseUint(args[4], 10, 32)
		if err != nil {
			return nil, err
		}
		record.Serial = uint32(serial)
	}
	e.ns = []dns.RR{record}
	return s.remember(k, e, ttl)
}

// remember stores an entry in the cache of a resolver. Its lifetime begins when the command runs.
func (s *Server) remember(k key, e entry, ttl uint32) (command, error) {
	if s.resolver == nil {
		return nil, errNoResolver
	}
	return func(s *Server) {
		e.from = time.Now()
		e.until = e.from.Add(time.Duration(ttl) * time.Second)
		s.resolver.mu.Lock()
		defer s.resolver.mu.Unlock()
		s.resolver.caches[0].entries[k] = e
	}, nil
}

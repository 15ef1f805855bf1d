package simnet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// command is what a line of a script does. It runs with the server's lock held.
type command func(*Server)

// Script does the commands of a script, one a line; empty lines and those that begin with # do nothing.
func (s *Server) Script(text string) error {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.Do(line); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

// Do does one command:
//
//	zone NAME [TTL]                   be the authority for a zone, with this negative TTL (default 60)
//	OWNER TTL TYPE DATA[, DATA...]    add records; names are fully qualified
//	set OWNER TTL TYPE DATA[, DATA]   have these records and no others of the owner and type
//	drop OWNER [TYPE]                 have no records of the owner, or of one type
//	forward ZONE ADDRESS              be a caching resolver for the names in a zone, which another server knows
//	latency MIN [MAX]                 reply so much later, over TCP twice that
//	loss PERCENT                      leave so many queries over UDP without a reply
//	lazy                              leave it to those who ask to follow CNAMEs
//	rotate                            begin with another record of a set each time
//	plain                             take no EDNS: FORMERR
//	cookies                           want the cookie given with each query over UDP: BADCOOKIE
//	hollow                            deny names that have nothing but names below them
//	fault KIND [NAME|* [TYPE]]        go wrong for some questions, or for all; of several faults the last counts
//	heal [NAME|* [TYPE]]              end the faults that were given for exactly these questions; alone: all
//	at TIME COMMAND                   do it when the network is so old
//
// The kinds of faults are timeout, unreachable, servfail, refused, formerr, nxdomain, nodata, empty, lame, bogus, question,
// malformed, truncate (over UDP) and truncated (over TCP too), notimp, notauth, badvers, modest (AA is off) and recursed (and RA
// is on). NS records below the apex of a zone are a delegation, and what is below them is glue.
func (s *Server) Do(line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	words := strings.Fields(line)
	if len(words) > 0 && words[0] == "at" {
		return s.scheduleLocked(line, words[1:])
	}
	do, err := s.compileLocked(words)
	if err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	do(s)
	return nil
}

// scheduleLocked keeps a command for later, behind those of the same time.
func (s *Server) scheduleLocked(line string, words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("%q: give a time and a command", line)
	}
	at, err := time.ParseDuration(words[0])
	if err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	do, err := s.compileLocked(words[1:])
	if err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	i := slices.IndexFunc(s.later, func(e event) bool { return e.at > at })
	if i < 0 {
		i = len(s.later)
	}
	s.later = slices.Insert(s.later, i, event{at, do})
	return nil
}

// verbs are the commands by their first word. A line without one is a record.
var verbs = map[string]struct {
	min, max int // arguments
	parse    func(s *Server, args []string) (command, error)
}{
	"zone":    {1, 2, (*Server).parseZone},
	"set":     {4, 1 << 16, func(s *Server, args []string) (command, error) { return s.parseRecords(args, true) }},
	"drop":    {1, 2, (*Server).parseDrop},
	"forward": {2, 2, (*Server).parseForward},
	"latency": {1, 2, (*Server).parseLatency},
	"loss":    {1, 1, (*Server).parseLoss},
	"lazy":    {0, 0, func(*Server, []string) (command, error) { return func(s *Server) { s.manner.lazy = true }, nil }},
	"rotate":  {0, 0, func(*Server, []string) (command, error) { return func(s *Server) { s.manner.rotate = true }, nil }},
	"plain":   {0, 0, func(*Server, []string) (command, error) { return func(s *Server) { s.manner.plain = true }, nil }},
	"cookies": {0, 0, func(*Server, []string) (command, error) { return func(s *Server) { s.manner.cookies = true }, nil }},
	"hollow":  {0, 0, func(*Server, []string) (command, error) { return func(s *Server) { s.manner.hollow = true }, nil }},
	"fault":   {1, 3, (*Server).parseFault},
	"heal":    {0, 2, (*Server).parseHeal},
}

func (s *Server) compileLocked(words []string) (command, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("no command")
	}
	v, ok := verbs[words[0]]
	if !ok {
		if len(words) < 4 {
			return nil, fmt.Errorf("neither a command nor a record")
		}
		return s.parseRecords(words, false)
	}
	if n := len(words) - 1; n < v.min || n > v.max {
		return nil, fmt.Errorf("%s takes other arguments", words[0])
	}
	return v.parse(s, words[1:])
}

func (s *Server) parseZone(args []string) (command, error) {
	name, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	ttl := uint64(60)
	if len(args) > 1 {
		if ttl, err = strconv.ParseUint(args[1], 10, 31); err != nil {
			return nil, err
		}
	}
	return func(s *Server) { s.zones[name] = soa(name, uint32(ttl), uint32(ttl)) }, nil
}

// parseRecords reads OWNER TTL TYPE DATA[, DATA...].
func (s *Server) parseRecords(args []string, replace bool) (command, error) {
	name, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	if s.zoneLocked(name) == nil {
		return nil, fmt.Errorf("%v is in no zone of this server", name)
	}
	head := fmt.Sprintf("%s %s IN %s ", name, args[1], args[2])
	var set []dns.RR
	for _, data := range strings.Split(strings.Join(args[3:], " "), ",") {
		rec, err := dns.NewRR(head + data)
		if err != nil {
			return nil, err
		}
		set = append(set, rec)
	}
	k := key{name, set[0].Header().Rrtype}
	return func(s *Server) {
		if !replace {
			set = append(slices.Clone(s.sets[k]), set...)
		}
		s.putLocked(k, set)
	}, nil
}

func (s *Server) parseDrop(args []string) (command, error) {
	q, err := parseKey(args)
	if err != nil {
		return nil, err
	}
	return func(s *Server) {
		for k := range s.sets {
			if (fault{key: q}).fits(k) {
				s.putLocked(k, nil)
			}
		}
	}, nil
}

func (s *Server) parseForward(args []string) (command, error) {
	zone, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	to, err := resolve.ParseServer(args[1])
	if err != nil {
		return nil, err
	}
	return func(s *Server) { s.routes[zone] = to.Addr }, nil
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

// parseKey reads [NAME|* [TYPE]].
func parseKey(args []string) (k key, err error) {
	if len(args) > 0 && args[0] != "*" {
		if k.name, err = dnsname.Parse(args[0]); err != nil {
			return key{}, err
		}
	}
	if len(args) > 1 {
		if k.typ = dns.StringToType[args[1]]; k.typ == 0 {
			return key{}, fmt.Errorf("%q is no type", args[1])
		}
	}
	return k, nil
}

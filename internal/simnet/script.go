package simnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// command is what a line of a script does. It runs with the server's lock held.
type command func(*Server)

// script does the commands of a script, one a line; empty lines and those that begin with # do nothing.
func (s *Server) script(text string) error {
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

// Do does one command. What the server knows:
//
//	zone NAME [TTL]                   be the authority for a zone, with this negative TTL (default 60)
//	OWNER TTL TYPE DATA[, DATA...]    add records; names are fully qualified. An SOA takes the place of the zone's
//	set OWNER TTL TYPE DATA[, DATA]   have these records and no others of the owner and type
//	drop OWNER [TYPE]                 have no records of the owner, or of one type
//	serial ZONE NUMBER                have a zone in this version
//	view NET OWNER TTL TYPE DATA[...] have these records for clients of a network
//	ttls OWNER TYPE TTL...            give the records out with these TTLs in turn
//	sign ZONE [WORD...]               sign the zone: with key=NAME, with signatures that are expired, early or broken, or with
//	                                  noproof; a zone may also be given with its signatures as records
//	ds ZONE TTL [NAME]                have the DS of a zone below that signs
//
// What it asks others for:
//
//	forward ZONE ADDRESS              be a caching resolver for the names in a zone, which another server knows
//	resolve ADDRESS...                be a caching resolver for everything, from these servers of the root
//	clamp POSITIVE [NEGATIVE]         keep things no longer than these seconds
//	snoop cache|refuse                what to do without RD
//	caches NUMBER                     be several caches behind one address
//	stale                             answer from what has run out while the authority fails, with EDE 3
//	ranges                            deny names between two that a signed zone has (RFC 8198)
//	filter NAME nxdomain|refused|servfail|ADDRESS [EDE]   answer like this for a name and those below
//	bogus NAME [EDE]                  fail for a name and those below, but not with CD
//	hold OWNER TTL TYPE DATA[, DATA]  have this in the cache; of several, in the first
//	deny OWNER TTL TYPE|* ZONE [SERIAL]   have in the cache that there is none; with *, that there is no such name
//
// How it behaves:
//
//	latency MIN [MAX]                 reply so much later, over TCP twice that
//	loss PERCENT                      leave so many queries over UDP without a reply
//	only udp|tcp                      take queries over nothing else
//	lazy                              leave it to those who ask to follow CNAMEs
//	rotate                            begin with another record of a set each time
//	edns formerr|ignore|drop|brittle  take no EDNS, or none that is unusual; plain is formerr
//	cookies                           want the cookie given with each query over UDP: BADCOOKIE
//	hollow                            deny names that have nothing but names below them
//	bare                              leave the SOA out of negative answers
//	loose                             send it with its own TTL, which may be longer than its MINIMUM
//	folds                             write the question in lower case
//	ignorant                          leave types without a reply that servers of the last century do not know
//	deaf NET                          leave clients of a network without a reply
//	large                             send more over UDP than was asked for
//	transfers                         give zones to everyone
//	subnets                           choose the view by the subnet that a query names
//	source ADDRESS                    reply over UDP from the address of another server
//	nsid TEXT                         say who replies
//	fault KIND [NAME|* [TYPE]]        go wrong for some questions, or for all; of several faults the last counts
//	heal [NAME|* [TYPE]]              end the faults that were given for exactly these questions; alone: all
//	at TIME COMMAND                   do it when the network is so old
//
// The kinds of faults are timeout, unreachable, servfail, refused, formerr, nxdomain, nodata, empty, lame, bogus, question, id,
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

// verb is a command.
type verb struct {
	min, max int // arguments
	parse    func(s *Server, args []string) (command, error)
}

const anyNumber = 1 << 16

// verbs are the commands by their first word. A line without one is a record.
var verbs = map[string]verb{
	"zone":    {1, 2, (*Server).parseZone},
	"set":     {4, anyNumber, func(s *Server, args []string) (command, error) { return s.parseRecords(args, true) }},
	"drop":    {1, 2, (*Server).parseDrop},
	"serial":  {2, 2, (*Server).parseSerial},
	"view":    {5, anyNumber, (*Server).parseView},
	"ttls":    {3, anyNumber, (*Server).parseTTLs},
	"sign":    {1, anyNumber, (*Server).parseSign},
	"ds":      {2, 3, (*Server).parseDS},
	"forward": {2, 2, (*Server).parseForward},

	"resolve": {1, anyNumber, (*Server).parseResolve},
	"clamp":   {1, 2, ofPolicy(parseClamp)},
	"snoop":   {1, 1, ofPolicy(parseSnoop)},
	"stale":   {0, 0, ofPolicy(func([]string) (func(*policy), error) { return func(p *policy) { p.stale = true }, nil })},
	"ranges":  {0, 0, ofPolicy(func([]string) (func(*policy), error) { return func(p *policy) { p.ranges = true }, nil })},
	"filter":  {2, 3, ofPolicy(parseFilter)},
	"bogus":   {1, 2, ofPolicy(parseBogus)},
	"caches":  {1, 1, (*Server).parseCaches},
	"hold":    {4, anyNumber, (*Server).parseHold},
	"deny":    {4, 5, (*Server).parseDeny},

	"latency": {1, 2, (*Server).parseLatency},
	"loss":    word(parsePercent, func(m *manner, percent float64) { m.loss = percent / 100 }),
	"only":    word(parseEither("udp", "tcp"), func(m *manner, transport string) { m.only = transport }),
	"edns":    word(parseKind(ednsManners, "manner of EDNS"), func(m *manner, e ednsManner) { m.edns = e }),
	"source":  word(resolve.ParseServer, func(m *manner, at resolve.Server) { m.source = at.Addr }),
	"deaf":    word(netip.ParsePrefix, func(m *manner, clients netip.Prefix) { m.deaf = append(m.deaf, clients) }),
	"nsid": {1, 1, func(_ *Server, args []string) (command, error) {
		return func(s *Server) { s.manner.nsid = args[0] }, nil
	}},
	"lazy":      flag(func(m *manner) { m.lazy = true }),
	"rotate":    flag(func(m *manner) { m.rotate = true }),
	"plain":     flag(func(m *manner) { m.edns = ednsFormerr }),
	"cookies":   flag(func(m *manner) { m.cookies = true }),
	"hollow":    flag(func(m *manner) { m.hollow = true }),
	"bare":      flag(func(m *manner) { m.bare = true }),
	"loose":     flag(func(m *manner) { m.loose = true }),
	"folds":     flag(func(m *manner) { m.folds = true }),
	"ignorant":  flag(func(m *manner) { m.ignorant = true }),
	"large":     flag(func(m *manner) { m.large = true }),
	"transfers": flag(func(m *manner) { m.transfers = true }),
	"subnets":   flag(func(m *manner) { m.subnets = true }),
	"fault":     {1, 3, (*Server).parseFault},
	"heal":      {0, 2, (*Server).parseHeal},
}

// word is a command that sets something to its only argument.
func word[T any](parse func(string) (T, error), set func(*manner, T)) verb {
	return verb{1, 1, func(_ *Server, args []string) (command, error) {
		value, err := parse(args[0])
		return func(s *Server) { set(&s.manner, value) }, err
	}}
}

// flag is a command that only switches something on.
func flag(set func(*manner)) verb {
	return verb{0, 0, func(*Server, []string) (command, error) { return func(s *Server) { set(&s.manner) }, nil }}
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
	ttl := uint32(60)
	if len(args) > 1 {
		ttl, err = parseTTL(args[1])
	}
	return func(s *Server) { s.zones[name] = soa(name, ttl, ttl) }, err
}

// parseRecords reads OWNER TTL TYPE DATA[, DATA...].
func (s *Server) parseRecords(args []string, replace bool) (command, error) {
	k, set, err := parseSet(args)
	if err != nil {
		return nil, err
	}
	if s.zoneLocked(k.name) == nil {
		return nil, fmt.Errorf("%v is in no zone of this server", k.name)
	}
	return func(s *Server) {
		if !replace {
			set = append(slices.Clone(s.sets[k]), set...)
		}
		s.putLocked(k, set)
	}, nil
}

// parseSet reads the records of one set. A comma between quotes is data.
func parseSet(args []string) (k key, set []dns.RR, err error) {
	if k.name, err = dnsname.Parse(args[0]); err != nil {
		return k, nil, err
	}
	head := fmt.Sprintf("%s %s IN %s ", k.name, args[1], args[2])
	for _, data := range splitData(strings.Join(args[3:], " ")) {
		rec, err := dns.NewRR(head + data)
		if err != nil {
			return k, nil, err
		}
		if rec == nil {
			return k, nil, fmt.Errorf("no record")
		}
		set = append(set, rec)
	}
	k.typ = set[0].Header().Rrtype
	return k, set, nil
}

func splitData(text string) (out []string) {
	quoted, from := false, 0
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			out, from = append(out, text[from:i]), i+1
		}
	}
	return append(out, text[from:])
}

func (s *Server) parseDrop(args []string) (command, error) {
	q, err := parseKey(args)
	return func(s *Server) {
		for k := range s.sets {
			if (fault{key: q}).fits(k) {
				s.putLocked(k, nil)
			}
		}
	}, err
}

func (s *Server) parseForward(args []string) (command, error) {
	zone, err := dnsname.Parse(args[0])
	if err != nil {
		return nil, err
	}
	to, err := resolve.ParseServer(args[1])
	return func(s *Server) { s.routes[zone] = to.Addr }, err
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

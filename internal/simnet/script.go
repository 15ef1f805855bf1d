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

// command is the effect of a line of a script. It runs with the lock of the server held.
type command func(*Server)

// script runs the commands of a script, one per line. Empty lines and lines that begin with # are ignored.
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

// Do runs one command. Commands for the data of a server:
//
//	zone NAME [TTL]                   be the authority for a zone, with this negative TTL (default 60)
//	OWNER TTL TYPE DATA[, DATA...]    add records; names are fully qualified. An SOA replaces that of the zone
//	set OWNER TTL TYPE DATA[, DATA]   replace the records of the owner and type
//	drop OWNER [TYPE]                 remove the records of the owner, or those of one type
//	serial ZONE NUMBER                set the serial of a zone
//	view NET OWNER TTL TYPE DATA[...] use these records for clients of a network
//	ttls OWNER TYPE TTL...            send the records with these TTLs in turn
//	part OWNER TYPE NUMBER            send only this number of the records, in rotation
//	sign ZONE [WORD...]               sign the zone: with key=NAME, with expired, early or broken signatures,
//	                                  without proofs (noproof), or with proofs and CDS records that are not signed
//	                                  (bareproof), with NSEC3 (nsec3 or nsec3=ITERATIONS,SALT), or with a second key
//	                                  that signs nothing (extra=NAME); or add the signatures as records
//	ds ZONE TTL [NAME]                add the DS record of a signed zone below
//	cds ZONE TTL [NAME]               add CDS and CDNSKEY records for a key of a signed zone
//
// Commands for resolvers:
//
//	forward ZONE ADDRESS              be a caching forwarder for the names in a zone
//	resolve ADDRESS...                be a caching resolver for all names, with these root servers
//	clamp POSITIVE [NEGATIVE]         limit cache lifetimes to these seconds
//	snoop cache|refuse                handle queries without RD
//	caches NUMBER                     have several caches behind one address
//	stale                             answer with expired entries while the authority fails, with EDE 3
//	ranges                            deny names between two names of a signed zone (RFC 8198)
//	filter NAME nxdomain|refused|servfail|ADDRESS [EDE]   set the answer for a name and the names below
//	bogus NAME [EDE]                  fail for a name and the names below, except with CD
//	hold OWNER TTL TYPE DATA[, DATA]  add a record set to the cache; to the first of several caches
//	deny OWNER TTL TYPE|* ZONE [SERIAL]   add a negative answer to the cache; with *: NXDOMAIN
//
// Commands for the behavior of a server:
//
//	latency MIN [MAX]                 delay replies, over TCP by twice as much
//	loss PERCENT                      drop this share of the queries over UDP
//	only udp|tcp                      accept only this transport
//	lazy                              do not follow CNAMEs
//	rotate                            begin with a different record of a set each time
//	edns formerr|ignore|drop|brittle  do not support EDNS, or only its basics; plain means edns formerr
//	cookies                           require a server cookie over UDP: BADCOOKIE
//	hollow                            deny empty non-terminals
//	bare                              send negative answers without the SOA
//	loose                             send the SOA of negative answers with its own TTL, which may exceed MINIMUM
//	folds                             send the question in lower case
//	ignorant                          do not reply to types that servers of the 1990s do not know
//	deaf NET                          do not reply to clients of a network
//	large                             exceed the size limit of the client over UDP
//	transfers                         allow zone transfers
//	subnets                           choose the view by the client subnet option
//	source ADDRESS                    reply over UDP from the address of another server
//	nsid TEXT                         set the server identifier
//	fault KIND [NAME|* [TYPE]]        have a fault for some questions, or for all; the last matching fault counts
//	heal [NAME|* [TYPE]]              remove the faults for exactly these questions; without arguments: all
//	at TIME COMMAND                   run a command when the network has this age
//
// The kinds of faults are timeout, unreachable, servfail, refused, formerr, nxdomain, nodata, empty, lame, bogus,
// question, id, malformed, truncate (over UDP) and truncated (over TCP too), notimp, notauth, badvers, modest (AA is
// off) and recursed (AA is off, RA is on). NS records below the apex of a zone are a delegation, and records below
// them are glue.
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

// scheduleLocked adds a command to run later, after those of the same time.
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
	i := slices.IndexFunc(s.scheduled, func(e event) bool { return e.at > at })
	if i < 0 {
		i = len(s.scheduled)
	}
	s.scheduled = slices.Insert(s.scheduled, i, event{at, do})
	return nil
}

// verb describes a command.
type verb struct {
	min, max int // number of arguments
	parse    func(s *Server, args []string) (command, error)
}

const anyNumber = 1 << 16

// verbs are the commands by their first word. A line without a verb is a record.
var verbs = map[string]verb{
	"zone":    {1, 2, (*Server).parseZone},
	"set":     {4, anyNumber, func(s *Server, args []string) (command, error) { return s.parseRecords(args, true) }},
	"drop":    {1, 2, (*Server).parseDrop},
	"serial":  {2, 2, (*Server).parseSerial},
	"view":    {5, anyNumber, (*Server).parseView},
	"ttls":    {3, anyNumber, (*Server).parseTTLs},
	"part":    {3, 3, (*Server).parsePart},
	"sign":    {1, anyNumber, (*Server).parseSign},
	"ds":      {2, 3, (*Server).parseDS},
	"cds":     {2, 3, (*Server).parseCDS},
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
	"loss":    word(parsePercent, func(m *behavior, percent float64) { m.loss = percent / 100 }),
	"only":    word(parseEither("udp", "tcp"), func(m *behavior, transport string) { m.only = transport }),
	"edns":    word(parseKind(ednsBehaviors, "EDNS behavior"), func(m *behavior, e ednsBehavior) { m.edns = e }),
	"source":  word(resolve.ParseServer, func(m *behavior, at resolve.Server) { m.source = at.Addr }),
	"deaf":    word(netip.ParsePrefix, func(m *behavior, clients netip.Prefix) { m.deaf = append(m.deaf, clients) }),
	"nsid": {1, 1, func(_ *Server, args []string) (command, error) {
		return func(s *Server) { s.behavior.nsid = args[0] }, nil
	}},
	"lazy":      flag(func(m *behavior) { m.lazy = true }),
	"rotate":    flag(func(m *behavior) { m.rotate = true }),
	"plain":     flag(func(m *behavior) { m.edns = ednsFormerr }),
	"cookies":   flag(func(m *behavior) { m.cookies = true }),
	"hollow":    flag(func(m *behavior) { m.hollow = true }),
	"bare":      flag(func(m *behavior) { m.bare = true }),
	"loose":     flag(func(m *behavior) { m.loose = true }),
	"folds":     flag(func(m *behavior) { m.folds = true }),
	"ignorant":  flag(func(m *behavior) { m.ignorant = true }),
	"large":     flag(func(m *behavior) { m.large = true }),
	"transfers": flag(func(m *behavior) { m.transfers = true }),
	"subnets":   flag(func(m *behavior) { m.subnets = true }),
	"fault":     {1, 3, (*Server).parseFault},
	"heal":      {0, 2, (*Server).parseHeal},
}

// word returns a command that sets something to its only argument.
func word[T any](parse func(string) (T, error), set func(*behavior, T)) verb {
	return verb{1, 1, func(_ *Server, args []string) (command, error) {
		value, err := parse(args[0])
		return func(s *Server) { set(&s.behavior, value) }, err
	}}
}

// flag returns a command that switches something on.
func flag(set func(*behavior)) verb {
	return verb{0, 0, func(*Server, []string) (command, error) { return func(s *Server) { set(&s.behavior) }, nil }}
}

// compileLocked parses a command.
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
		return nil, fmt.Errorf("%s has too few or too many arguments", words[0])
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

// parseRecords parses OWNER TTL TYPE DATA[, DATA...].
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

// parseSet parses the records of one set. A comma between quotes is part of the data.
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

// parseKey parses [NAME|* [TYPE]].
func parseKey(args []string) (k key, err error) {
	if len(args) > 0 && args[0] != "*" {
		if k.name, err = dnsname.Parse(args[0]); err != nil {
			return key{}, err
		}
	}
	if len(args) > 1 {
		if k.typ = dns.StringToType[args[1]]; k.typ == 0 {
			return key{}, fmt.Errorf("%q is not a record type", args[1])
		}
	}
	return k, nil
}

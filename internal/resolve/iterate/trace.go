package iterate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Trace is the record of a walk: plain data that others judge.
type Trace struct {
	Question Question  `json:"question"`
	Began    time.Time `json:"began"`
	DNSSEC   bool      `json:"dnssec"` // DO was set
	Result   Class     `json:"result"` // of the last name of the chain: answer, nodata, nxdomain or unknown
	Chain    []Link    `json:"chain"`
	Zones    []Zone    `json:"zones"` // a zone comes behind its parent
	Notes    []Note    `json:"notes"`
	// Unfinished says which limits kept the walk from being complete. What is missing then is unknown, not wrong.
	Unfinished []string   `json:"unfinished"`
	Exchanges  []Exchange `json:"exchanges"` // in the order of time
}

// Zone is a zone on the way, as its parent and itself see it.
type Zone struct {
	Name     dnsname.Name `json:"name"`
	Parent   dnsname.Name `json:"parent"`   // the zone whose servers referred to it; empty for the root
	Quick    bool         `json:"quick"`    // only passed through to find the address of a server: one good reply was enough
	Hidden   bool         `json:"hidden"`   // servers of the parent are its servers too, and so show no delegation
	ParentNS []NSSet      `json:"parentNS"` // different ones, if the parent's servers do not agree
	ChildNS  []NSSet      `json:"childNS"`
	Hosts    []Host       `json:"hosts"` // the servers of all these sets
}

// NSSet is a set of NS records that some servers agree on.
type NSSet struct {
	NS   []dnsname.Name `json:"ns"`
	TTL  uint32         `json:"ttl"`
	From []netip.Addr   `json:"from"`
}

// Host is a name server and its addresses.
type Host struct {
	Name    dnsname.Name `json:"name"`
	Glue    []netip.Addr `json:"glue"`  // as the parent has them, or the hints
	Found   []netip.Addr `json:"found"` // as the authority for its name has them
	Problem string       `json:"problem,omitempty"`
}

// Addrs are all addresses of a host.
func (h Host) Addrs() []netip.Addr {
	return Union(h.Glue, h.Found)
}

// Link is one alias of a chain.
type Link struct {
	From dnsname.Name `json:"from"`
	To   dnsname.Name `json:"to"`
	Type string       `json:"type"` // CNAME or DNAME
	TTL  uint32       `json:"ttl"`
	Zone dnsname.Name `json:"zone"` // that has it
}

// The kinds of notes.
const (
	NoteENT       = "ENT-NXDOMAIN"     // a name is denied although there are names below it
	NoteDiffer    = "REFERRALS-DIFFER" // servers of one zone refer to different cuts or sets
	NoteAliasLoop = "ALIAS-LOOP"
	NoteAliasLong = "ALIAS-CHAIN"    // longer than we follow
	NoteAliases   = "ALIASES-DIFFER" // servers of one zone have different targets
	NoteNSLoop    = "NS-LOOP"        // the address of a server can be found only by asking that server
	NoteDepth     = "DEPTH"
)

// Note is something that was seen on the way and that no single exchange shows.
type Note struct {
	Kind    string       `json:"kind"`
	Zone    dnsname.Name `json:"zone"`
	Subject string       `json:"subject"`
}

// Exchange is one query and what came of it.
type Exchange struct {
	At        time.Duration `json:"at"` // since the walk began
	RTT       time.Duration `json:"rtt"`
	Zone      dnsname.Name  `json:"zone"` // that the server was asked as a server of
	Server    netip.Addr    `json:"server"`
	Transport string        `json:"transport"`
	Question  Question      `json:"question"`
	// Try counts the queries of one question to one server. It is 0 if none was sent, because the reply was there already
	// from when the server was asked for another zone, or because the budget was used up.
	Try   int    `json:"try"`
	EDNS  bool   `json:"edns"`
	Class Class  `json:"class"`
	Error string `json:"error,omitempty"`
	Reply []byte `json:"reply,omitempty"` // in wire form, with id 0
}

// Message is the reply; nil if there is none.
func (e Exchange) Message() (*dns.Msg, error) {
	if len(e.Reply) == 0 {
		return nil, nil
	}
	m := new(dns.Msg)
	if err := m.Unpack(e.Reply); err != nil {
		return nil, fmt.Errorf("reply of %v to %v: %w", e.Server, e.Question, err)
	}
	return m, nil
}

// Compare orders exchanges by time. Those of one moment have an order too, so that a trace is always written the same way.
func (e Exchange) Compare(f Exchange) int {
	return cmp.Or(cmp.Compare(e.At, f.At), e.Server.Compare(f.Server), e.Question.Name.Compare(f.Question.Name),
		cmp.Compare(e.Question.Type, f.Question.Type), cmp.Compare(e.Transport, f.Transport), cmp.Compare(e.Try, f.Try),
		e.Zone.Compare(f.Zone), slices.Compare(e.Reply, f.Reply))
}

// Health is how well a server was to be reached.
type Health string

// The healths.
const (
	Up        Health = "up"
	Flaky     Health = "flaky" // some queries were without a reply
	Down      Health = "down"  // all were
	Unchecked Health = "unchecked"
)

// Health sums up the exchanges with a server.
func (t *Trace) Health(server netip.Addr) Health {
	sent, lost := 0, 0
	for _, e := range t.Exchanges {
		if e.Server != server || e.Class == Unknown || e.Try == 0 {
			continue
		}
		sent++
		if e.Class.Transport() {
			lost++
		}
	}
	return HealthOf(sent, lost)
}

// HealthOf returns the health of a server that did not reply to some of the queries that were sent to it.
func HealthOf(sent, lost int) Health {
	switch {
	case sent == 0:
		return Unchecked
	case sent == lost:
		return Down
	case lost > 0:
		return Flaky
	}
	return Up
}

// Zone finds a zone of the trace; nil if it is not there.
func (t *Trace) Zone(name dnsname.Name) *Zone {
	i := slices.IndexFunc(t.Zones, func(z Zone) bool { return z.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Zones[i]
}

// Question is what a server is asked; "example.org. A" as text.
type Question struct {
	Name dnsname.Name
	Type rr.Type
}

func (q Question) String() string { return q.Name.String() + " " + q.Type.String() }

// MarshalText implements encoding.TextMarshaler.
func (q Question) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (q *Question) UnmarshalText(text []byte) (err error) {
	name, typ, _ := strings.Cut(string(text), " ")
	if q.Name, err = dnsname.Parse(name); err != nil {
		return err
	}
	q.Type, err = rr.ParseType(typ)
	return err
}

func (q Question) is(d dns.Question) bool {
	name, err := dnsname.Parse(d.Name)
	return err == nil && name == q.Name && d.Qtype == uint16(q.Type)
}

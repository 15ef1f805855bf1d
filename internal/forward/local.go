package forward

import (
	"fmt"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// specialZones are special-use names without a meaning in the DNS, whatever the configuration is. A query for them
// outside would leak private information, and an answer could only be false.
var specialZones = []string{
	"invalid",            // RFC 6761 §6.4
	"onion",              // RFC 7686 §2
	"alt",                // RFC 9476 §2
	"_dns.resolver.arpa", // RFC 9462 §6.4: the answer would describe the upstream, which does not serve our clients
}

// privateZones are the zones that every site has for itself: those of RFC 6303, RFC 7793 and RFC 8375. Upstreams cannot
// know them, unless they belong to the site.
func privateZones() []string {
	v6 := ".0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa"
	zones := []string{
		"home.arpa", "10.in-addr.arpa", "168.192.in-addr.arpa", "0.in-addr.arpa", "127.in-addr.arpa", "254.169.in-addr.arpa",
		"2.0.192.in-addr.arpa", "100.51.198.in-addr.arpa", "113.0.203.in-addr.arpa", "255.255.255.255.in-addr.arpa",
		"0" + v6, "1" + v6, "d.f.ip6.arpa", "8.e.f.ip6.arpa", "9.e.f.ip6.arpa", "a.e.f.ip6.arpa", "b.e.f.ip6.arpa",
		"8.b.d.0.1.0.0.2.ip6.arpa",
	}
	for i := 16; i < 32; i++ {
		zones = append(zones, fmt.Sprintf("%d.172.in-addr.arpa", i))
	}
	for i := 64; i < 128; i++ {
		zones = append(zones, fmt.Sprintf("%d.100.in-addr.arpa", i))
	}
	return zones
}

// localZones are the zones that are answered locally, by their names in wire form. They are empty, except for the
// addresses of localhost.
type localZones struct {
	zones      map[string]localKind
	lastLabels map[string]bool // last labels of the zones, so that most names need one map lookup
}

// localKind is the reason why a zone is answered locally.
type localKind uint8

const (
	notLocal     localKind = iota
	localPrivate           // upstreams cannot know the zone, unless a zone of ours delegates it
	localSpecial           // the zone has no meaning in the DNS
	localHost              // localhost means the same everywhere
)

func newLocalZones(askPrivate bool) localZones {
	l := localZones{zones: map[string]localKind{}, lastLabels: map[string]bool{}}
	add := func(kind localKind, names ...string) {
		for _, s := range names {
			wire := dnsname.MustParse(s).Wire()
			l.zones[wire] = kind
			l.lastLabels[wire[lastLabel([]byte(wire)):]] = true
		}
	}
	if !askPrivate {
		add(localPrivate, privateZones()...)
	}
	add(localSpecial, specialZones...)
	add(localHost, "localhost") // RFC 6761 §6.3
	return l
}

// find returns the offset in a name at which its local zone begins, and the kind of that zone.
func (l *localZones) find(name []byte) (at int, kind localKind) {
	if !l.lastLabels[string(name[lastLabel(name):])] {
		return 0, notLocal
	}
	for ; name[at] != 0; at += 1 + int(name[at]) {
		if kind = l.zones[string(name[at:])]; kind != notLocal {
			return at, kind
		}
	}
	return 0, notLocal
}

// lastLabel returns the offset of the last label of a name.
func lastLabel(name []byte) int {
	last := 0
	for i := 0; name[i] != 0; i += 1 + int(name[i]) {
		last = i
	}
	return last
}

// localTTL is the TTL of RFC 6303 §3.
const localTTL = 10800

// localSOA is the data of the SOA of RFC 6303 §3, with a server and a mailbox that cannot be mistaken for real ones.
const localSOA = "\x09localhost\x00\x06nobody\x07invalid\x00" +
	"\x00\x00\x00\x01\x00\x00\x0e\x10\x00\x00\x04\xb0\x00\x09\x3a\x80\x00\x00\x2a\x30"

// answer answers for names in local zones. A DS query for such a zone is answered by its parent: validating clients
// need the proof that the zone is not signed (RFC 8375 §4). If a zone of ours delegates part of a private zone, other
// servers answer for that part: a denial would contradict our zone.
func (l *localZones) answer(q *Question, msg []byte) (Reply, bool) {
	at, kind := l.find(q.Name)
	if kind == notLocal || kind == localPrivate && q.Delegated || q.Type == rr.TypeDS && at == 0 {
		return Reply{}, false
	}
	r := Reply{Msg: msg, EDE: wire.EDESynthesized}
	switch {
	case kind == localHost && q.Type == rr.TypeA:
		r.appendLocal(0, q.Type, "\x7f\x00\x00\x01", &r.Answers)
		return r, true
	case kind == localHost && q.Type == rr.TypeAAAA:
		r.appendLocal(0, q.Type, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", &r.Answers)
		return r, true
	case at > 0 && kind != localHost:
		r.Rcode = wire.RcodeNXDomain
	}
	r.appendLocal(at, rr.TypeSOA, localSOA, &r.Authorities)
	return r, true
}

// appendLocal appends a record whose owner begins at this offset of the name in the question.
func (r *Reply) appendLocal(at int, t rr.Type, data string, section *int) {
	const head = 2 + wire.RecordFixed
	if len(r.Msg)+head+len(data) > cap(r.Msg) {
		r.Truncated = true
		return
	}
	r.Msg = wire.AppendRecord(r.Msg, wire.HeaderSize+at, t, localTTL, data)
	*section++
}

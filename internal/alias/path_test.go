package alias

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestPathsMatchLookups checks that two implementations of RFC 1034 §4.3.2 give the same answers: walker.walk reads
// rows, and lookup.Answer reads the nodes built from them.
func TestPathsMatchLookups(t *testing.T) {
	kinds := map[string]int{}
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := randomZones(t, rng)
		for range 400 {
			n := randomName(rng, 4)
			var got string
			if err := p.View(func(v store.View) error {
				w := walker{v: v, all: true, paths: map[start]*path{}, known: func(dnsname.Name) []follow.Link { return nil }}
				found, err := w.walk("", n)
				got = pathText(found)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			want, kind := lookupText(t, p.Snapshot(), n)
			if kinds[kind]++; got != want {
				t.Errorf("seed %d: %s by rows: %s\nby nodes: %s", seed, n, got, want)
			}
		}
	}
	for _, kind := range []string{"refused", "positive", "nodata", "nxdomain", "referral", "yxdomain", "wildcard", "cname",
		"dname"} {
		if kinds[kind] < 10 {
			t.Errorf("%d questions led to %s: too few to mean anything (%v)", kinds[kind], kind, kinds)
		}
	}
}

var labels = []string{"a", "b", "*"}

// long is a label that makes a name too long when a DNAME prepends it to another such name.
var long = strings.Repeat("x", 60)

// randomName returns a name in or near the zones of randomZones, with fewer labels below the apex than the limit.
func randomName(rng *rand.Rand, limit int) dnsname.Name {
	text := []string{"test.", "b.test.", "a.b.test.", "o.test.", "elsewhere."}[rng.IntN(5)]
	for range rng.IntN(limit) {
		text = labels[rng.IntN(len(labels))] + "." + text
	}
	if rng.IntN(12) == 0 {
		text = strings.Repeat(long+".", 3) + text
	}
	return dnsname.MustParse(text)
}

// randomZones serves a few nested zones and an overlay, full of wildcards, empty non-terminals, zone cuts, CNAMEs and
// DNAMEs.
func randomZones(t *testing.T, rng *rand.Rand) *publish.Publisher {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; st.Close() })
	commit := func(fn func(*publish.Tx) error) error { return p.Commit(ctx, store.Actor{}, fn) }
	zones := map[dnsname.Name]zone.Zone{}
	for _, apex := range []string{"test.", "b.test.", "o.test."} {
		z := zone.Zone{Name: dnsname.MustParse(apex), Kind: zone.Primary, TTL: 60}
		if apex == "o.test." {
			z.Kind = zone.Overlay
		}
		if err := commit(func(tx *publish.Tx) (err error) {
			if z.Kind == zone.Overlay {
				z, err = tx.Overlay(z.Name)
				return err
			}
			z, err = tx.CreateZone(z, recordSet(t, z.Name, "SOA", "ns. host. 1 3600 600 86400 60"),
				recordSet(t, z.Name, "NS", "ns."))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		zones[z.Name] = z
	}
	for range 30 {
		n := randomName(rng, 4)
		home := n
		for !home.IsZero() && zones[home].Name.IsZero() {
			home = home.Parent()
		}
		if home.IsZero() {
			continue
		}
		s := randomSet(t, rng, n)
		s.Zone = zones[home].ID
		// A refusal is fine: for example, CNAMEs beside other records and overlays with zone cuts are invalid.
		_ = commit(func(tx *publish.Tx) error { _, err := tx.CreateSet(s); return err })
	}
	return p
}

func randomSet(t *testing.T, rng *rand.Rand, n dnsname.Name) zone.RecordSet {
	switch rng.IntN(8) {
	case 0, 1:
		return recordSet(t, n, "CNAME", randomName(rng, 3).String())
	case 2:
		return recordSet(t, n, "DNAME", randomName(rng, 3).String())
	case 3:
		return recordSet(t, n, "NS", "ns.elsewhere.")
	case 4:
		return recordSet(t, n, "TXT", "text")
	case 5:
		return recordSet(t, n, "AAAA", fmt.Sprintf("2001:db8::%x", rng.IntN(1000)))
	}
	return recordSet(t, n, "A", fmt.Sprintf("192.0.2.%d", rng.IntN(256)))
}

func recordSet(t *testing.T, n dnsname.Name, typ, data string) zone.RecordSet {
	t.Helper()
	tt, err := rr.ParseType(typ)
	if err != nil {
		t.Fatal(err)
	}
	d, err := rr.ParseData(tt, data)
	if err != nil {
		t.Fatal(err)
	}
	return zone.RecordSet{Name: n, Type: tt, Data: []string{d}}
}

// pathText returns the names of a path and its end: elsewhere, or the addresses.
func pathText(w *path) string {
	names := []string{w.target.String()}
	for _, l := range w.chain {
		names = append(names, l.Target.String())
	}
	end := "no addresses"
	switch {
	case w.cause != "":
		end = string(w.cause)
	case !w.outside.IsZero():
		end = "elsewhere"
	case w.missing:
		end = "missing"
	case len(w.sets[0].Data)+len(w.sets[1].Data) > 0:
		end = fmt.Sprintf("%x %x", w.sets[0].Data, w.sets[1].Data)
	}
	return cutLong(names, end)
}

// lookupText returns the same text for the answer to a query, and the kind of that answer.
func lookupText(t *testing.T, snap *zone.Snapshot, n dnsname.Name) (text, kind string) {
	t.Helper()
	var addrs [2][]string
	var names []string
	var end string
	for i := range families {
		reply := ask(snap, n, typeOf(i))
		var m dns.Msg
		if err := m.Unpack(reply.Msg); err != nil {
			t.Fatal(err)
		}
		names = []string{n.String()}
		for _, rec := range m.Answer {
			switch rec := rec.(type) {
			case *dns.CNAME:
				names = append(names, rec.Target)
				kind = "cname"
			case *dns.A:
				addrs[i] = append(addrs[i], string(rec.A.To4()))
			case *dns.AAAA:
				addrs[i] = append(addrs[i], string(rec.AAAA))
			}
		}
		if end == "" || end == "no addresses" {
			end = lookupEnd(reply, names, len(addrs[i]) > 0)
		}
		switch {
		case slices.ContainsFunc(m.Answer, func(rec dns.RR) bool { return rec.Header().Rrtype == dns.TypeDNAME }):
			kind = "dname"
		case reply.Encloser > 0:
			kind = "wildcard"
		case kind == "" || kind == "nodata":
			kind = reply.Kind.String()
		}
		if reply.Kind == lookup.YXDomain {
			kind = reply.Kind.String()
		}
	}
	if end == "addresses" {
		end = fmt.Sprintf("%x %x", addrs[0], addrs[1])
	}
	return cutLong(names, end), kind
}

// ask looks up a name in a snapshot and returns the message as a client sees it.
func ask(snap *zone.Snapshot, n dnsname.Name, t rr.Type) *lookup.Reply {
	msg := append(make([]byte, 12, 65535), n.Wire()...)
	msg[5] = 1
	r := &lookup.Reply{Msg: append(msg, byte(t>>8), byte(t), 0, 1), Limit: 65535}
	lookup.Answer(snap, lookup.Question{Name: []byte(n.Wire()), Type: t}, r)
	r.Msg[7], r.Msg[9], r.Msg[11] = byte(r.Answers), byte(r.Authorities), byte(r.Additionals)
	return r
}

// lookupEnd returns how an answer ends, in the words of pathText.
func lookupEnd(r *lookup.Reply, names []string, addresses bool) string {
	last := len(names) - 1
	switch {
	case addresses:
		return "addresses"
	case slices.Contains(names[:last], names[last]):
		return string(follow.Loop)
	case r.Kind == lookup.NXDomain, r.Kind == lookup.YXDomain:
		return "missing"
	case r.Kind == lookup.NoData:
		return "no addresses"
	}
	return "elsewhere" // refused, referred, or a chain that leaves our zones
}

// cutLong joins a chain and its end. A chain that is too long is cut where a query ends, one name earlier than a path.
func cutLong(names []string, end string) string {
	if len(names) > wire.MaxChain {
		names, end = names[:wire.MaxChain+1], string(follow.ChainTooLong)
	}
	return strings.Join(names, " ") + ": " + end
}

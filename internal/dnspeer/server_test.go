package dnspeer_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

var (
	friend   = netip.MustParseAddr("192.0.2.7")
	stranger = netip.MustParseAddr("198.51.100.9")
	pool     = uuid.MustParse("794ccc2c-d751-44fe-b57f-8894c9f5c842")
	apex     = dnsname.MustParse("example.org.")
)

// testServer is a peer server with a zone and keys: "zone-key." for the zone, "pool-key." for its pool, "other-key."
// for another zone, "sha512-key." for the zone, and "old-key.", whose algorithm is too weak.
type testServer struct {
	*dnspeer.Server
	t        testing.TB
	pub      *publish.Publisher
	zone     zone.Zone
	notified []uuid.UUID
	cfg      dnspeer.Config
}

var secret = base64.StdEncoding.EncodeToString([]byte("a secret of thirty-two bytes!!!!"))

func newTestServer(t testing.TB, cfg dnspeer.Config, opts publish.Options) *testServer {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := publish.Open(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- pub.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended; st.Close() })
	h := &testServer{t: t, pub: pub}
	h.zone = h.addZone(zone.Zone{Name: apex, Kind: zone.Primary, TTL: 300, Pool: pool})
	h.addKeys()
	cfg.Publisher = pub
	cfg.Notified = func(z uuid.UUID, _ netip.Addr) { h.notified = append(h.notified, z) }
	cfg.Keys = transfer.NewKeyring(cfg.Publisher)
	h.cfg, h.Server = cfg, dnspeer.New(cfg)
	return h
}

func (h *testServer) addZone(z zone.Zone) zone.Zone {
	h.t.Helper()
	h.commit(func(tx *publish.Tx) (err error) {
		name := z.Name.String()
		z, err = tx.CreateZone(z, set(h.t, name, "SOA", 300, "ns."+name+" host."+name+" 1 3600 600 86400 60"),
			set(h.t, name, "NS", 300, "ns."+name, "ns.example.net."))
		return err
	})
	return z
}

func (h *testServer) addKeys() {
	h.t.Helper()
	h.commit(func(tx *publish.Tx) error {
		for _, k := range []struct {
			name, algorithm, scope string
			resource               uuid.UUID
		}{
			{"zone-key.", "hmac-sha256", "ZONE", h.zone.ID}, {"pool-key", "hmac-sha384", "POOL", pool},
			{"other-key.", "hmac-sha256", "ZONE", uuid.New()}, {"sha512-key.", "hmac-sha512", "ZONE", h.zone.ID},
			{"old-key.", "hmac-sha1", "ZONE", h.zone.ID},
		} {
			row := map[string]any{"name": k.name, "algorithm": k.algorithm, "secret": secret, "scope": k.scope,
				"resource_id": k.resource}
			if err := tx.PutObject(store.KindTSIGKey, uuid.NewString(), row); err != nil {
				return err
			}
		}
		return nil
	})
}

func (h *testServer) commit(fn func(*publish.Tx) error) {
	h.t.Helper()
	if err := h.pub.Commit(h.t.Context(), store.Actor{}, fn); err != nil {
		h.t.Fatal(err)
	}
}

// put adds record sets: name, type, TTL and data; "|" separates records.
func (h *testServer) put(lines ...string) {
	h.t.Helper()
	h.commit(func(tx *publish.Tx) error {
		for _, line := range lines {
			f := strings.SplitN(line, " ", 4)
			var ttl uint32
			fmt.Sscan(f[2], &ttl)
			s := set(h.t, f[0], f[1], ttl, strings.Split(f[3], "|")...)
			s.Zone = h.zone.ID
			if _, err := tx.CreateSet(s); err != nil {
				return err
			}
		}
		return nil
	})
}

func set(t testing.TB, name, typ string, ttl uint32, data ...string) zone.RecordSet {
	t.Helper()
	n, err := dnsname.ParseIn(name, apex)
	if err != nil {
		t.Fatal(err)
	}
	s := zone.RecordSet{Name: n, TTL: &ttl}
	if s.Type, err = rr.ParseType(typ); err != nil {
		t.Fatal(err)
	}
	for _, d := range data {
		wire, err := rr.ParseDataIn(s.Type, d, apex)
		if err != nil {
			t.Fatal(err)
		}
		s.Data = append(s.Data, wire)
	}
	return s
}

// content is a zone as records in text form.
type content map[string]bool

func (h *testServer) content() (serial uint32, c content) {
	h.t.Helper()
	c = content{}
	err := h.pub.View(func(v store.View) error {
		z, err := v.Zone(h.zone.ID)
		if err != nil {
			return err
		}
		serial = z.Serial
		return v.Served(z, func(s rr.Set) error {
			for _, d := range s.Data {
				rec, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", s.Name, s.TTL, s.Type, rr.DataText(s.Type, d)))
				if err != nil {
					return err
				}
				c[rec.String()] = true
			}
			return nil
		})
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return serial, c
}

// ask passes a message to the server as if it came over TCP or UDP, and returns its replies.
func (h *testServer) ask(from netip.Addr, tcp bool, wire []byte) [][]byte {
	h.t.Helper()
	var out [][]byte
	limit := 65535
	if !tcp {
		limit = 1232
	}
	m := new(dns.Msg)
	edns := m.Unpack(wire) == nil && m.IsEdns0() != nil
	err := h.Serve(h.t.Context(), dnsserver.PeerMessage{Wire: wire, From: from, TCP: tcp, EDNS: edns, Limit: limit,
		Send: func(b []byte) error { out = append(out, append([]byte(nil), b...)); return nil },
		Answer: func(q []byte, reserve int) []byte {
			m := new(dns.Msg)
			if err := m.Unpack(q); err != nil || len(m.Extra) != 0 {
				h.t.Errorf("the ordinary query has %v (%v)", m.Extra, err)
			}
			b, _ := new(dns.Msg).SetReply(m).Pack()
			return b
		}})
	if err != nil {
		h.t.Errorf("Serve: %v", err)
	}
	return out
}

func parsed(t testing.TB, wire []byte) *dns.Msg {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(wire); err != nil {
		t.Fatalf("%x: %v", wire, err)
	}
	return m
}

func packed(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func question(name string, typ uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, typ)
	m.RecursionDesired = false
	return m
}

// signed returns the message with a TSIG, and its MAC.
func signed(t testing.TB, m *dns.Msg, key, algorithm string, at int64) ([]byte, string) {
	t.Helper()
	m = m.Copy()
	m.SetTsig(key, algorithm, 300, at)
	wire, mac, err := dns.TsigGenerate(m, secret, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return wire, mac
}

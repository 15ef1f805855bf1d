package mec_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lookup"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

var actor = store.Actor{Who: "test", API: "test"}

// rig is a service with a store of its own.
type rig struct {
	*mec.Service
	t    testing.TB
	pub  *publish.Publisher
	path string
	stop func() // stops everything cleanly
}

// open starts a service on path. It runs unless run is false.
func open(t testing.TB, path string, opts mec.Options, run bool) *rig {
	t.Helper()
	return openOn(t, path, opts, run, &breakable{})
}

func openOn(t testing.TB, path string, opts mec.Options, run bool, disk *breakable) *rig {
	t.Helper()
	st, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk.Store = st
	pub, err := publish.Open(disk, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pubCtx, endPub := context.WithCancel(context.Background())
	ctx, end := context.WithCancel(context.Background())
	var pubs, runs sync.WaitGroup
	pubs.Go(func() { pub.Run(pubCtx) })
	s, err := mec.Open(ctx, pub, opts)
	if err != nil {
		t.Fatal(err)
	}
	if run {
		runs.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	var once sync.Once
	stop := func() {
		once.Do(func() {
			end()
			runs.Wait()
			endPub()
			pubs.Wait()
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return &rig{s, t, pub, path, stop}
}

func start(t testing.TB, opts mec.Options) *rig {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "db"), opts, true)
}

// again stops the rig and starts another one on the same store.
func (g *rig) again(opts mec.Options) *rig {
	g.t.Helper()
	g.stop()
	return open(g.t, g.path, opts, true)
}

// app returns an application from the list of applications, and whether it is in the list.
func (g *rig) app(id string) (mec.App, bool) {
	g.t.Helper()
	apps, err := g.Apps("", 100)
	if err != nil {
		g.t.Fatal(err)
	}
	i := slices.IndexFunc(apps, func(a mec.App) bool { return a.ID == id })
	if i < 0 {
		return mec.App{}, false
	}
	return apps[i], true
}

// rule parses a rule in the form "id name address [ttl=N] [state] [lb]".
func rule(t testing.TB, app, words string) mec.Rule {
	t.Helper()
	f := strings.Fields(words)
	d := mec.Draft{ID: f[0], Domain: f[1], Addr: f[2], AddrType: "IP_V4"}
	if strings.Contains(f[2], ":") {
		d.AddrType = "IP_V6"
	}
	for _, w := range f[3:] {
		var ttl int64
		switch n, _ := fmt.Sscanf(w, "ttl=%d", &ttl); {
		case n == 1:
			d.TTL = &ttl
		case w == "lb":
			d.LoadBalance = true
		default:
			d.State = w
		}
	}
	r, err := mec.ParseRule(d, specialaddr.Table{})
	if err != nil {
		t.Fatalf("rule %q: %v", words, err)
	}
	r.App = app
	return r
}

func (g *rig) create(app, words string) mec.Rule {
	g.t.Helper()
	r, err := g.Create(g.t.Context(), actor, rule(g.t, app, words), nil)
	if err != nil {
		g.t.Fatalf("create %q: %v", words, err)
	}
	return r
}

func (g *rig) tryCreate(app, words string) error {
	g.t.Helper()
	_, err := g.Create(g.t.Context(), actor, rule(g.t, app, words), nil)
	return err
}

func (g *rig) setState(app, id string, to mec.State) error {
	_, err := g.Update(g.t.Context(), actor, app, id, func(r mec.Rule) (mec.Rule, error) {
		r.State = to
		return r, nil
	})
	return err
}

func (g *rig) delete(app, id string) {
	g.t.Helper()
	if _, err := g.Delete(g.t.Context(), actor, app, id, nil); err != nil {
		g.t.Fatalf("delete %s of %s: %v", id, app, err)
	}
}

// record parses a record in the form "zone name type ttl address...".
func record(t testing.TB, words string) mec.Record {
	t.Helper()
	f := strings.Fields(words)
	var ttl int64
	fmt.Sscan(f[3], &ttl)
	r, err := mec.ParseRecord(mec.RecordDraft{Zone: f[0], Name: f[1], Type: f[2], TTL: &ttl, Data: f[4:]},
		specialaddr.Table{})
	if err != nil {
		t.Fatalf("record %q: %v", words, err)
	}
	return r
}

// ask returns the answer to a query as text: "30 192.0.2.1 192.0.2.2" with sorted addresses, or "nodata", "refused" ...
func (g *rig) ask(name string, t rr.Type) string {
	g.t.Helper()
	return ask(g.t, g.pub, dnsname.MustParse(name), t)
}

func ask(t testing.TB, pub *publish.Publisher, n dnsname.Name, typ rr.Type) string {
	t.Helper()
	msg := append(make([]byte, 12, 65535), n.Wire()...)
	msg = append(msg, byte(typ>>8), byte(typ), 0, 1)
	msg[5] = 1
	r := &lookup.Reply{Msg: msg, Limit: 65535}
	lookup.Answer(pub.Snapshot(), lookup.Question{Name: []byte(n.Wire()), Type: typ}, r)
	if r.Kind != lookup.Positive {
		return r.Kind.String()
	}
	r.Msg[6], r.Msg[7] = byte(r.Answers>>8), byte(r.Answers)
	r.Msg[9], r.Msg[11] = byte(r.Authorities), byte(r.Additionals)
	m := new(dns.Msg)
	if err := m.Unpack(r.Msg); err != nil {
		t.Fatal(err)
	}
	var addrs []netip.Addr
	for _, rec := range m.Answer {
		data, err := rr.FromRR(rec)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := netip.AddrFromSlice([]byte(data))
		addrs = append(addrs, a)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	out := fmt.Sprint(m.Answer[0].Header().Ttl)
	for _, a := range addrs {
		out += " " + a.String()
	}
	return out
}

func (g *rig) wantAnswer(name string, t rr.Type, want string) {
	g.t.Helper()
	if got := g.ask(name, t); got != want {
		g.t.Errorf("%s %s = %q, want %q", name, t, got, want)
	}
}

// wantField checks that an error is a FieldError for the field.
func wantField(t testing.TB, err error, field string) {
	t.Helper()
	var f *mec.FieldError
	if !errors.As(err, &f) || f.Field != field {
		t.Errorf("error %v, want one about %s", err, field)
	}
}

func wantConflict(t testing.TB, err error) *mec.ConflictError {
	t.Helper()
	var c *mec.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("error %v, want a conflict", err)
	}
	return c
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

package mec_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// model is a simple implementation of the service: it has all rules and records in maps, and computes all answers from
// them after every step.
type model struct {
	rules   map[[2]string]mec.Rule // by application and id
	records map[string]mec.Record  // by zone, name and type
}

type outcome string

const (
	ok       outcome = "ok"
	conflict outcome = "conflict"
	missing  outcome = "missing"
	exists   outcome = "exists"
)

func outcomeOf(t *testing.T, err error) outcome {
	t.Helper()
	var c *mec.ConflictError
	switch {
	case err == nil:
		return ok
	case errors.As(err, &c):
		return conflict
	case errors.Is(err, store.ErrNotFound):
		return missing
	case errors.Is(err, store.ErrExists):
		return exists
	}
	t.Fatalf("unexpected error: %v", err)
	return ""
}

func recordKey(r mec.Record) string { return fmt.Sprint(r.Zone, r.Name, r.Type) }

func (m *model) clone() *model { return &model{maps.Clone(m.rules), maps.Clone(m.records)} }

// answer returns the answer for a key by docs/designs/005-overlay-zones.md. agree is false when the claims contradict
// each other.
func (m *model) answer(z, n dnsname.Name, t rr.Type) (text string, agree bool) {
	type wish struct {
		addrs   []string
		ttl     uint32
		balance bool
	}
	var wishes []wish
	add := func(ttl *uint32, balance bool, addrs ...string) {
		w := wish{addrs: addrs, ttl: 30, balance: balance}
		if ttl != nil {
			w.ttl = *ttl
		}
		slices.Sort(w.addrs)
		wishes = append(wishes, w)
	}
	for _, r := range m.rules {
		if r.State == mec.Active && z.IsRoot() && r.Name == n && r.Type() == t {
			add(r.TTL, r.LoadBalance, r.Addr.String())
		}
	}
	for _, r := range m.records {
		if r.Zone == z && r.Name == n && r.Type == t {
			var addrs []string
			for _, a := range r.Addrs {
				addrs = append(addrs, a.String())
			}
			add(r.TTL, r.LoadBalance, addrs...)
		}
	}
	if len(wishes) == 0 {
		return "", true
	}
	same, all := true, true
	union, ttl := map[string]bool{}, wishes[0].ttl
	for _, w := range wishes {
		same = same && slices.Equal(w.addrs, wishes[0].addrs)
		all = all && w.balance
		ttl = min(ttl, w.ttl)
		for _, a := range w.addrs {
			union[a] = true
		}
	}
	text = fmt.Sprint(ttl)
	for _, a := range slices.Sorted(maps.Keys(union)) {
		text += " " + a
	}
	return text, same || all
}

var (
	modelZones = []dnsname.Name{dnsname.MustParse("example.com."), dnsname.Root} // most specific first
	modelNames = []string{"n0.example.com.", "n1.example.com.", "n2.example.org."}
	modelTypes = []rr.Type{rr.TypeA, rr.TypeAAAA}
)

// agrees reports whether all claims agree.
func (m *model) agrees() bool {
	for _, z := range modelZones {
		for _, n := range modelNames {
			for _, t := range modelTypes {
				if _, ok := m.answer(z, dnsname.MustParse(n), t); !ok {
					return false
				}
			}
		}
	}
	return true
}

// served returns every answer. The most specific zone with a name answers for all types of the name.
func (m *model) served() map[string]string {
	out := map[string]string{}
	for _, name := range modelNames {
		n := dnsname.MustParse(name)
		for _, t := range modelTypes {
			out[name+t.String()] = "refused"
		}
		for _, z := range modelZones {
			a, _ := m.answer(z, n, rr.TypeA)
			b, _ := m.answer(z, n, rr.TypeAAAA)
			if a+b == "" {
				continue
			}
			for t, text := range map[rr.Type]string{rr.TypeA: a, rr.TypeAAAA: b} {
				if out[name+t.String()] = text; text == "" {
					out[name+t.String()] = "nodata"
				}
			}
			break
		}
	}
	return out
}

// player applies random steps to the service and to the model.
type player struct {
	*rig
	t   *testing.T
	rnd *rand.Rand
	m   *model
}

func pick[T any](p *player, from ...T) T { return from[p.rnd.IntN(len(from))] }

func (p *player) app() string { return pick(p, "app0", "app1", "app2") }
func (p *player) id() string  { return pick(p, "r0", "r1", "r2") }

func (p *player) rule() mec.Rule {
	words := p.id() + " " + pick(p, modelNames...) + " " + pick(p, "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2")
	return rule(p.t, p.app(), words+pick(p, "", " ttl=20", " ttl=40")+pick(p, "", " lb", " lb")+pick(p, " ACTIVE",
		" ACTIVE", " INACTIVE"))
}

func (p *player) record() mec.Record {
	r := record(p.t, pick(p, ". n0.example.com A 25 192.0.2.1", ". n0.example.com A 25 192.0.2.1 192.0.2.2",
		". n2.example.org AAAA 25 2001:db8::1", "example.com n0.example.com A 35 192.0.2.3",
		"example.com n1.example.com AAAA 35 2001:db8::3"))
	r.LoadBalance = p.rnd.IntN(2) == 0
	return r
}

// try applies a step to the service and to a copy of the model. It keeps the copy only when its claims agree.
func (p *player) try(what string, real func() error, plain func(*model) outcome) {
	p.t.Helper()
	next := p.m.clone()
	want := plain(next)
	if want == ok && !next.agrees() {
		want = conflict
	}
	if got := outcomeOf(p.t, real()); got != want {
		p.t.Fatalf("%s: %s, want %s", what, got, want)
	}
	if want == ok {
		p.m = next
	}
}

func (p *player) step() string {
	ctx, r, app, rec := p.t.Context(), p.rule(), p.app(), p.record()
	key := [2]string{r.App, r.ID}
	what := pick(p, "create", "create", "update", "update", "state", "delete", "states", "replace", "terminate",
		"put record", "delete record")
	switch what {
	case "create":
		p.try(what, func() error { _, err := p.Create(ctx, actor, r, nil); return err }, func(m *model) outcome {
			if _, have := m.rules[key]; have {
				return exists
			}
			m.rules[key] = r
			return ok
		})
	case "update", "state":
		p.try(what, func() error {
			_, err := p.Update(ctx, actor, r.App, r.ID, func(was mec.Rule) (mec.Rule, error) {
				if what == "state" {
					was.State = r.State
					return was, nil
				}
				return r, nil
			})
			return err
		}, func(m *model) outcome {
			was, have := m.rules[key]
			if !have {
				return missing
			}
			if what == "state" {
				state := r.State
				r = was
				r.State = state
			}
			m.rules[key] = r
			return ok
		})
	case "delete":
		p.try(what, func() error { _, err := p.Delete(ctx, actor, r.App, r.ID, nil); return err }, func(m *model) outcome {
			if _, have := m.rules[key]; !have {
				return missing
			}
			delete(m.rules, key)
			return ok
		})
	case "states":
		p.try(what, func() error { _, err := p.SetStates(ctx, actor, app, r.State, nil); return err },
			func(m *model) outcome {
				for k, have := range m.rules {
					if have.State = r.State; k[0] == app {
						m.rules[k] = have
					}
				}
				return ok
			})
	case "replace", "terminate":
		p.replace(what, app)
	case "put record":
		p.try(what, func() error { return p.PutRecords(ctx, actor, []mec.Record{rec}) }, func(m *model) outcome {
			m.records[recordKey(rec)] = rec
			return ok
		})
	case "delete record":
		p.try(what, func() error { return p.DeleteRecord(ctx, actor, rec.Zone, rec.Name, rec.Type) }, func(m *model) outcome {
			if _, have := m.records[recordKey(rec)]; !have {
				return missing
			}
			delete(m.records, recordKey(rec))
			return ok
		})
	}
	return what
}

// replace replaces all rules of an application, possibly by none.
func (p *player) replace(what, app string) {
	p.t.Helper()
	var rules []mec.Rule
	if what == "replace" {
		for _, id := range []string{"r0", "r1", "r2"}[:p.rnd.IntN(4)] {
			r := p.rule()
			r.App, r.ID = app, id
			rules = append(rules, r)
		}
	}
	p.try(what, func() error {
		if what == "terminate" {
			_, err := p.Terminate(p.t.Context(), actor, app)
			return err
		}
		_, err := p.Replace(p.t.Context(), actor, app, rules, nil)
		return err
	}, func(m *model) outcome {
		maps.DeleteFunc(m.rules, func(k [2]string, _ mec.Rule) bool { return k[0] == app })
		for _, r := range rules {
			m.rules[[2]string{app, r.ID}] = r
		}
		return ok
	})
}

func (p *player) check(what string) {
	p.t.Helper()
	got := map[string]string{}
	for _, name := range modelNames {
		for _, t := range modelTypes {
			got[name+t.String()] = p.ask(name, t)
		}
	}
	if diff := cmp.Diff(p.m.served(), got); diff != "" {
		p.t.Fatalf("after %s the answers differ from the model (-model +served):\n%s", what, diff)
	}
}

func TestModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &player{start(t, mec.Options{}), t, rand.New(rand.NewPCG(seed, 5)),
				&model{map[[2]string]mec.Rule{}, map[string]mec.Record{}}}
			counts := map[string]int{}
			for i := range 200 {
				what := p.step()
				counts[what]++
				p.check(fmt.Sprintf("step %d, %s,", i, what))
				if i == 100 {
					p.rig = p.again(mec.Options{})
					p.check("the restart")
				}
			}
			if len(counts) < 9 {
				t.Errorf("only these steps were made: %v", counts)
			}
			for _, app := range []string{"app0", "app1", "app2"} {
				if _, err := p.Terminate(t.Context(), actor, app); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range p.m.records {
				if err := p.DeleteRecord(t.Context(), actor, r.Zone, r.Name, r.Type); err != nil {
					t.Fatal(err)
				}
			}
			if left := p.rows(); left != "" {
				t.Errorf("left at the end:\n%s", left)
			}
		})
	}
}

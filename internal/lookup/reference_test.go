package lookup_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// reference answers questions with the simplest code: maps, whole names, no wire form. Tests compare lookup with it.
type reference struct {
	zones map[dnsname.Name]map[dnsname.Name]map[rr.Type]rr.Set
}

type refAnswer struct {
	rcode  int
	aa     bool
	answer []string
	auth   []string
	glue   []string
}

func (a refAnswer) String() string {
	return fmt.Sprintf("rcode %d aa %v\nanswer %s\nauthority %s\nglue %s", a.rcode, a.aa,
		strings.Join(a.answer, " | "), strings.Join(a.auth, " | "), strings.Join(a.glue, " | "))
}

func newReference() *reference {
	return &reference{map[dnsname.Name]map[dnsname.Name]map[rr.Type]rr.Set{}}
}

func (f *reference) add(apex dnsname.Name, s rr.Set) {
	if f.zones[apex] == nil {
		f.zones[apex] = map[dnsname.Name]map[rr.Type]rr.Set{}
	}
	if f.zones[apex][s.Name] == nil {
		f.zones[apex][s.Name] = map[rr.Type]rr.Set{}
	}
	f.zones[apex][s.Name][s.Type] = s
}

func show(owner dnsname.Name, s rr.Set, ttl uint32) []string {
	var out []string
	for _, d := range s.Data {
		out = append(out, strings.ToLower(fmt.Sprintf("%s %d %s %s", owner, ttl, s.Type, rr.DataText(s.Type, d))))
	}
	return out
}

func (f *reference) zoneOf(n dnsname.Name, t rr.Type) (dnsname.Name, bool) {
	var child dnsname.Name
	for m := n; !m.IsZero(); m = m.Parent() {
		if f.zones[m] == nil {
			continue
		}
		if t == rr.TypeDS && m == n && !m.IsRoot() {
			child = m
			continue
		}
		return m, true
	}
	return child, !child.IsZero()
}

// exists reports whether a name or any name below it has records.
func exists(z map[dnsname.Name]map[rr.Type]rr.Set, n dnsname.Name) bool {
	for m := range z {
		if m.IsIn(n) {
			return true
		}
	}
	return false
}

func (f *reference) ask(n dnsname.Name, t rr.Type) refAnswer {
	a := refAnswer{rcode: 5}
	apex, ok := f.zoneOf(n, t)
	if !ok {
		return a
	}
	a.rcode, a.aa = 0, true
	seen := map[dnsname.Name]bool{n: true}
	for range 16 {
		next, more := f.step(&a, apex, n, t)
		if !more || seen[next] {
			break
		}
		n = next
		seen[n] = true
		if apex, ok = f.zoneOf(n, t); !ok {
			break
		}
	}
	sort.Strings(a.glue)
	return a
}

func (f *reference) step(a *refAnswer, apex, n dnsname.Name, t rr.Type) (dnsname.Name, bool) {
	z := f.zones[apex]
	var path []dnsname.Name // apex first, n last
	for m := n; m != apex; m = m.Parent() {
		path = append(path, m)
	}
	path = append(path, apex)
	slices.Reverse(path)
	encloser := apex
	for _, m := range path {
		if m != apex && !exists(z, m) {
			break
		}
		encloser = m
		if ns, ok := z[m][rr.TypeNS]; ok && m != apex && !(m == n && t == rr.TypeDS) {
			f.refer(a, z, apex, ns)
			return n, false
		}
		if d, ok := z[m][rr.TypeDNAME]; ok && m != n {
			return f.redirect(a, m, n, t, d)
		}
	}
	sets := z[n]
	if encloser != n {
		wild, err := encloser.Child("*")
		if err != nil || !exists(z, wild) {
			a.rcode = 3
			f.negative(a, z, apex)
			return n, false
		}
		sets = z[wild]
	}
	return f.at(a, z, apex, n, t, sets)
}

func (f *reference) at(a *refAnswer, z map[dnsname.Name]map[rr.Type]rr.Set, apex, n dnsname.Name, t rr.Type,
	sets map[rr.Type]rr.Set) (dnsname.Name, bool) {
	if t == rr.TypeANY && len(sets) > 0 {
		first := rr.Type(65535)
		for t := range sets {
			first = min(first, t)
		}
		t = first
	}
	if s, ok := sets[t]; ok {
		a.answer = append(a.answer, show(n, s, s.TTL)...)
		return n, false
	}
	if c, ok := sets[rr.TypeCNAME]; ok {
		a.answer = append(a.answer, show(n, c, c.TTL)...)
		target, _ := rr.Target(rr.TypeCNAME, c.Data[0])
		return target, true
	}
	f.negative(a, z, apex)
	return n, false
}

func (f *reference) negative(a *refAnswer, z map[dnsname.Name]map[rr.Type]rr.Set, apex dnsname.Name) {
	soa := z[apex][rr.TypeSOA]
	a.auth = append(a.auth, show(apex, soa, min(soa.TTL, 60))...)
}

func (f *reference) redirect(a *refAnswer, owner, n dnsname.Name, t rr.Type, d rr.Set) (dnsname.Name, bool) {
	if lines := show(owner, d, d.TTL); !slices.Contains(a.answer, lines[0]) {
		a.answer = append(a.answer, lines...)
	}
	target, _ := rr.Target(rr.TypeDNAME, d.Data[0])
	labels := []string{}
	for m := n; m != owner; m = m.Parent() {
		labels = append(labels, m.Label())
	}
	var err error
	for i := len(labels) - 1; i >= 0; i-- {
		if target, err = target.Child(labels[i]); err != nil {
			a.rcode = 6
			return n, false
		}
	}
	made := rr.NewSet(n, rr.TypeCNAME, d.TTL, target.Wire())
	a.answer = append(a.answer, show(n, made, d.TTL)...)
	return target, t != rr.TypeCNAME && t != rr.TypeANY
}

func (f *reference) refer(a *refAnswer, z map[dnsname.Name]map[rr.Type]rr.Set, apex dnsname.Name, ns rr.Set) {
	a.aa = len(a.answer) > 0
	a.auth = append(a.auth, show(ns.Name, ns, ns.TTL)...)
	for _, d := range ns.Data {
		target, _ := rr.Target(rr.TypeNS, d)
		if !target.IsIn(apex) {
			continue
		}
		for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA} {
			if s, ok := z[target][t]; ok {
				a.glue = append(a.glue, show(target, s, s.TTL)...)
			}
		}
	}
}

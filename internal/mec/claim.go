package mec

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// claim states that an owner wants a name and type to have some addresses.
type claim struct {
	App     string       `json:"o,omitempty"` // empty: the platform
	Rule    string       `json:"r,omitempty"`
	Addrs   []netip.Addr `json:"a"` // sorted
	TTL     uint32       `json:"t"` // the TTL in answers
	Balance bool         `json:"b,omitempty"`
}

func (c claim) sameOwner(o claim) bool { return c.App == o.App && c.Rule == o.Rule }

// agrees reports whether two claims can be served together. When every pair of claims agrees, all have the same
// addresses or all allow loadBalance.
func (c claim) agrees(o claim) bool {
	return c.Balance && o.Balance || slices.Equal(c.Addrs, o.Addrs)
}

// claimKey identifies the record set that is claimed.
type claimKey struct {
	zone, name dnsname.Name
	typ        rr.Type
}

// id returns the key of the claims in the store. It needs no separators: a name in wire form ends with a zero byte.
func (k claimKey) id() string {
	return string([]byte{byte(k.typ >> 8), byte(k.typ)}) + k.zone.Wire() + k.name.Wire()
}

// claimEdit collects the claims that one edit adds and removes. apply checks only the result, so one edit can swap
// names.
type claimEdit struct {
	tx      *publish.Tx
	sets    map[claimKey]*claimSet
	order   []*claimSet
	checked func(claims int) // called with the number of claims that were checked; may be nil
}

// claimSet holds the claims on one key, before and after the edit.
type claimSet struct {
	key      claimKey
	was, now []claim
	made     []claim // the claims that this edit adds
}

func (l *claimEdit) set(k claimKey) (*claimSet, error) {
	if p := l.sets[k]; p != nil {
		return p, nil
	}
	p := &claimSet{key: k}
	if err := l.tx.Object(store.KindMECClaims, k.id(), &p.was); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	p.now = slices.Clone(p.was)
	l.sets[k] = p
	l.order = append(l.order, p)
	return p, nil
}

// put adds or changes the claim of an owner.
func (l *claimEdit) put(k claimKey, c claim) error {
	p, err := l.set(k)
	if err != nil {
		return err
	}
	p.drop(c)
	p.now = append(p.now, c)
	p.made = append(p.made, c)
	return nil
}

// drop removes the claim of an owner.
func (l *claimEdit) drop(k claimKey, owner claim) error {
	p, err := l.set(k)
	if err == nil {
		p.drop(owner)
	}
	return err
}

func (p *claimSet) drop(owner claim) {
	p.now = slices.DeleteFunc(p.now, owner.sameOwner)
	p.made = slices.DeleteFunc(p.made, owner.sameOwner)
}

// apply checks all claims, and writes the changed ones with the record sets that follow from them. It removes empty
// overlays last, so that an overlay which is empty only for a moment is not removed and created again.
func (l *claimEdit) apply() error {
	emptied := map[dnsname.Name]zone.Zone{}
	for _, p := range l.order {
		slices.SortFunc(p.now, func(a, b claim) int {
			return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Rule, b.Rule))
		})
		same := len(p.now) == len(p.was) && (len(p.now) == 0 || reflect.DeepEqual(p.now, p.was))
		if !same {
			if err := p.check(); err != nil {
				return err
			}
		}
		if l.checked != nil {
			l.checked(len(p.made))
		}
		if same {
			continue
		}
		z, err := l.tx.Overlay(p.key.zone)
		if err != nil {
			return fmt.Errorf("overlay: %w", err)
		}
		if err := l.write(p, z); err != nil {
			return err
		}
		if len(p.now) == 0 {
			emptied[z.Name] = z
		}
	}
	for _, z := range emptied {
		if err := l.removeEmpty(z); err != nil {
			return err
		}
	}
	return nil
}

func (p *claimSet) check() error {
	if len(p.now) > maxClaims && len(p.now) > len(p.was) {
		return &LimitError{"claims on one name and type", maxClaims}
	}
	for _, c := range p.made {
		for _, o := range p.now {
			if !c.agrees(o) {
				return &ConflictError{p.key.name, p.key.typ, c.App, o.App, o.Rule}
			}
		}
	}
	return nil
}

func (l *claimEdit) write(p *claimSet, z zone.Zone) error {
	id := p.key.id()
	if len(p.now) == 0 {
		if err := l.tx.DeleteObject(store.KindMECClaims, id); err != nil {
			return err
		}
		return l.tx.DeleteSet(z.ID, p.key.name, p.key.typ)
	}
	if err := l.tx.PutObject(store.KindMECClaims, id, p.now); err != nil {
		return err
	}
	s := zone.RecordSet{Zone: z.ID, Name: p.key.name, Type: p.key.typ}
	ttl := p.now[0].TTL
	for _, c := range p.now {
		ttl = min(ttl, c.TTL)
		for _, a := range c.Addrs {
			s.Data = append(s.Data, string(a.AsSlice()))
		}
	}
	s.TTL = &ttl
	write := l.tx.UpdateSet
	if len(p.was) == 0 {
		write = l.tx.CreateSet
	}
	_, err := write(s)
	return err
}

// removeEmpty removes an overlay that has no record sets left.
func (l *claimEdit) removeEmpty(z zone.Zone) error {
	empty := true
	err := l.tx.RecordSets(z.ID, func(zone.RecordSet) (bool, error) {
		empty = false
		return false, nil
	})
	if err != nil || !empty {
		return err
	}
	return l.tx.DeleteZone(z.ID)
}

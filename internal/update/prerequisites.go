package update

import (
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// prerequisites checks what must hold before an update (RFC 2136 §3.2). Sets that must have exactly some records are
// collected first and compared at the end.
func (d *desk) prerequisites(list []Record) error {
	z := d.z
	exact := map[store.SetRef][]string{}
	var order []store.SetRef
	for _, p := range list {
		if p.TTL != 0 || p.Type != rr.TypeANY && !p.Type.IsData() {
			return refuse(wire.RcodeFormErr, "a prerequisite about %s %s is not well formed", p.Name, p.Type)
		}
		if !p.Name.IsIn(z.Name) {
			return refuse(wire.RcodeNotZone, "%s is not in zone %s", p.Name, z.Name)
		}
		switch p.Class {
		case wire.ClassANY, wire.ClassNONE:
			if p.Data != "" {
				return refuse(wire.RcodeFormErr, "a prerequisite of class %d about %s has data", p.Class, p.Name)
			}
			if err := d.exists(p); err != nil {
				return err
			}
		case wire.ClassIN:
			if p.Type == rr.TypeANY {
				return refuse(wire.RcodeFormErr, "a prerequisite about %s has type ANY and data", p.Name)
			}
			if err := rr.Check(p.Type, p.Data); err != nil {
				return refuse(wire.RcodeFormErr, "%v", err)
			}
			o := store.SetRef{Name: p.Name, Type: p.Type}
			if exact[o] == nil {
				order = append(order, o)
			}
			exact[o] = append(exact[o], p.Data)
		default:
			return refuse(wire.RcodeFormErr, "a prerequisite about %s has class %d", p.Name, p.Class)
		}
	}
	for _, o := range order {
		if err := d.equals(o, exact[o]); err != nil {
			return err
		}
	}
	return nil
}

// onWire are the sets of a name that an asker could see.
func (d *desk) onWire(n dnsname.Name) (out []zone.RecordSet, err error) {
	sets, err := d.at(n)
	for _, s := range sets {
		if len(s.set.Served(d.z.TTL).Data) > 0 {
			out = append(out, s.set)
		}
	}
	return out, err
}

// exists checks whether a name or a set is there, or is not, as the class wants.
func (d *desk) exists(p Record) error {
	sets, err := d.onWire(p.Name)
	if err != nil {
		return err
	}
	if p.Type == rr.TypeANY {
		switch {
		case p.Class == wire.ClassANY && len(sets) == 0:
			return refuse(wire.RcodeNXDomain, "%s is not in use", p.Name)
		case p.Class == wire.ClassNONE && len(sets) > 0:
			return refuse(wire.RcodeYXDomain, "%s is in use", p.Name)
		}
		return nil
	}
	there := slices.ContainsFunc(sets, func(s zone.RecordSet) bool { return s.Type == p.Type })
	switch {
	case p.Class == wire.ClassANY && !there:
		return refuse(wire.RcodeNXRRSet, "%s has no %s records", p.Name, p.Type)
	case p.Class == wire.ClassNONE && there:
		return refuse(wire.RcodeYXRRSet, "%s has %s records", p.Name, p.Type)
	}
	return nil
}

// equals checks whether a set has exactly these records.
func (d *desk) equals(o store.SetRef, data []string) error {
	sets, err := d.onWire(o.Name)
	if err != nil {
		return err
	}
	want := rr.Normal(o.Type, data)
	same := func(a, b string) bool { return rr.SameData(o.Type, a, b) }
	for _, s := range sets {
		if s.Type == o.Type && slices.EqualFunc(s.Data, want, same) { // both are in canonical order
			return nil
		}
	}
	return refuse(wire.RcodeNXRRSet, "%s has other %s records than the update expects", o.Name, o.Type)
}

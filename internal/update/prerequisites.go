package update

import (
	"fmt"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// prerequisites checks the prerequisites of an update (RFC 2136 §3.2). For sets that must have exactly the given
// records, it collects the records first and compares them at the end.
func (d *pendingUpdate) prerequisites(list []Record) error {
	z := d.z
	exact := map[store.SetRef][]string{}
	var order []store.SetRef
	for _, p := range list {
		if p.TTL != 0 || p.Type != rr.TypeANY && !p.Type.IsData() {
			return refuse(wire.RcodeFormErr, "the prerequisite for %s %s is malformed", p.Name, p.Type)
		}
		if !p.Name.IsIn(z.Name) {
			return refuse(wire.RcodeNotZone, "%s is not in zone %s", p.Name, z.Name)
		}
		switch p.Class {
		case wire.ClassANY, wire.ClassNONE:
			if p.Data != "" {
				return refuse(wire.RcodeFormErr, "the prerequisite of class %d for %s has data", p.Class, p.Name)
			}
			if err := d.exists(p); err != nil {
				return err
			}
		case wire.ClassIN:
			if p.Type == rr.TypeANY {
				return refuse(wire.RcodeFormErr, "the prerequisite for %s has type ANY and data", p.Name)
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
			return refuse(wire.RcodeFormErr, "the prerequisite for %s has class %d", p.Name, p.Class)
		}
	}
	// The order is that of the message, so that the reply to an update with several unmet prerequisites is always the
	// same.
	for _, o := range order {
		if err := d.equals(o, exact[o]); err != nil {
			return err
		}
	}
	return nil
}

// unmet returns the Error for a prerequisite that does not hold.
func unmet(rcode int, format string, a ...any) error {
	return &Error{Rcode: rcode, Reason: fmt.Sprintf(format, a...), Unmet: true}
}

// visible returns the sets of a name that queries can see.
func (d *pendingUpdate) visible(n dnsname.Name) (out []zone.RecordSet, err error) {
	sets, err := d.at(n)
	for _, s := range sets {
		if len(s.set.Served(d.z.TTL).Data) > 0 {
			out = append(out, s.set)
		}
	}
	return out, err
}

// exists checks whether a name or a set exists (class ANY) or does not exist (class NONE).
func (d *pendingUpdate) exists(p Record) error {
	sets, err := d.visible(p.Name)
	if err != nil {
		return err
	}
	if p.Type == rr.TypeANY {
		switch {
		case p.Class == wire.ClassANY && len(sets) == 0:
			return unmet(wire.RcodeNXDomain, "%s is not in use", p.Name)
		case p.Class == wire.ClassNONE && len(sets) > 0:
			return unmet(wire.RcodeYXDomain, "%s is in use", p.Name)
		}
		return nil
	}
	there := slices.ContainsFunc(sets, func(s zone.RecordSet) bool { return s.Type == p.Type })
	switch {
	case p.Class == wire.ClassANY && !there:
		return unmet(wire.RcodeNXRRSet, "%s has no %s records", p.Name, p.Type)
	case p.Class == wire.ClassNONE && there:
		return unmet(wire.RcodeYXRRSet, "%s has %s records", p.Name, p.Type)
	}
	return nil
}

// equals checks whether a set has exactly the given records.
func (d *pendingUpdate) equals(o store.SetRef, data []string) error {
	sets, err := d.visible(o.Name)
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
	return unmet(wire.RcodeNXRRSet, "%s does not have exactly the %s records that the update expects", o.Name, o.Type)
}

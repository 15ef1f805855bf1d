package store

import (
	"cmp"
	"errors"
	"slices"

	"github.com/google/uuid"
)

// Fold combines changes of one zone and one group, newest first, into one change. All of them became visible at once: a
// server never answered with a serial between the first and the last. The result has the number, time, actor and note
// of the newest change.
func Fold(changes []Change) Change {
	out := changes[0]
	if len(changes) == 1 {
		return out
	}
	first := changes[len(changes)-1]
	out.From = first.From
	ttl, damage := out.ZoneTTL, []error(nil)
	for _, c := range changes {
		out.Whole = out.Whole || c.Whole
		damage = append(damage, c.Damage)
		if c.Retimed {
			ttl = c.TTLFrom
		}
	}
	out.Damage = errors.Join(damage...)
	out.Sets, out.Retimed, out.TTLFrom = nil, false, 0
	if out.Whole {
		return out
	}
	if ttl != out.ZoneTTL {
		out.Retimed, out.TTLFrom = true, ttl
	}
	out.Sets = foldSets(changes)
	return out
}

// foldSets returns, for each record set of the changes, its state before the oldest and after the newest change. It
// leaves out sets that were both created and deleted.
func foldSets(changes []Change) []SetChange {
	var sets []SetChange
	at := map[SetRef]int{}
	for _, c := range slices.Backward(changes) {
		for _, s := range c.Sets {
			either := cmp.Or(s.After, s.Before)
			k := SetRef{either.Name, either.Type}
			if i, ok := at[k]; ok {
				sets[i].After = s.After
				continue
			}
			at[k] = len(sets)
			sets = append(sets, s)
		}
	}
	return slices.DeleteFunc(sets, func(s SetChange) bool { return s.Before == nil && s.After == nil })
}

// Steps calls fn for the changes of a zone like Changes, from the newest, with the changes of each group folded into
// one. So fn sees the states that were served.
func (v View) Steps(zoneID uuid.UUID, fn func(Change) (bool, error)) error {
	var group []Change
	ended := false
	err := v.Changes(zoneID, 0, func(c Change) (bool, error) {
		if len(group) > 0 && group[0].Group != c.Group {
			more, err := fn(Fold(group))
			if group = group[:0]; !more || err != nil {
				ended = true
				return false, err
			}
		}
		group = append(group, c)
		return true, nil
	})
	if err != nil || ended || len(group) == 0 {
		return err
	}
	_, err = fn(Fold(group))
	return err
}

package mec

import (
	"context"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// store.KindMECName has a row for the name of every rule, grant and record of the platform, in the order of names. Rows
// for inactive rules are included: otherwise a tenant could create a zone that silences such a rule for good. Without
// these rows the creation of a zone would have to read every rule of every application.
//
// The key of a row is the key of the name, a NUL, one of the letters below, and the owner. The keys of names below it
// do not continue with a NUL, so they are different.
const (
	forRule   = "r"
	forRecord = "p"
	forGrant  = "g"
)

func nameKey(n dnsname.Name) string { return string(n.AppendKey(nil)) }

func nameRow(n dnsname.Name, what, owner string) string { return nameKey(n) + "\x00" + what + owner }

// nameRows returns the keys of the rows of a rule.
func (r Rule) nameRows() []string {
	owner := r.App + "\x00" + r.ID
	rows := []string{nameRow(r.Name, forRule, owner)}
	if !r.Grant.IsZero() {
		rows = append(rows, nameRow(r.Grant, forGrant, owner))
	}
	return rows
}

func (r Record) nameRow() string {
	return nameRow(r.Name, forRecord, string([]byte{byte(r.Type >> 8), byte(r.Type)})+r.Zone.Wire())
}

// moveNames deletes the rows of the rule was and writes those of next. Either may be nil. It writes nothing when the
// names are equal, as after a change of the state.
func (e *edit) moveNames(was, next *Rule) error {
	if was != nil && next != nil && was.Name == next.Name && was.Grant == next.Grant {
		return nil
	}
	if was != nil {
		for _, id := range was.nameRows() {
			if err := e.tx.DeleteObject(store.KindMECName, id); err != nil {
				return err
			}
		}
	}
	if next != nil {
		for _, id := range next.nameRows() {
			if err := e.tx.PutObject(store.KindMECName, id, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// UsesNames reports whether a zone with this name would answer for names that the platform uses. These are the names of
// rules and records at or below it, names that a wildcard of the platform covers, and names in a granted domain.
func UsesNames(v store.View, zoneName dnsname.Name) (bool, error) {
	if used, err := hasRow(v, nameKey(zoneName)); used || err != nil {
		return used, err
	}
	for n := zoneName.Parent(); !n.IsZero(); n = n.Parent() {
		for _, prefix := range []string{nameKey(n) + "\x00" + forGrant, nameKey(n) + "*\x00\x00"} {
			if used, err := hasRow(v, prefix); used || err != nil {
				return used, err
			}
		}
	}
	return false, nil
}

// hasRow reports whether the key of a row begins with prefix.
func hasRow(v store.View, prefix string) (found bool, err error) {
	err = v.EachObjectAfter(store.KindMECName, prefix, func(id string, _ []byte) (bool, error) {
		found = strings.HasPrefix(id, prefix)
		return false, nil
	})
	return found, err
}

// listNames writes the rows for a store of an older version, which has rules or records but no rows for their names.
// Every commit calls it first. So a store that accepted no changes in Open gets its rows before the first change.
func (s *Service) listNames(ctx context.Context) error {
	if s.listed.Load() {
		return nil
	}
	missing, err := publish.Read(s.pub, unlistedNames)
	if err == nil && len(missing) > 0 {
		err = s.pub.Commit(ctx, ownActor, func(tx *publish.Tx) error {
			missing, err := unlistedNames(tx.View) // again: rules may have changed since
			for _, id := range missing {
				if err == nil {
					err = tx.PutObject(store.KindMECName, id, 1)
				}
			}
			return err
		})
	}
	if err == nil {
		s.listed.Store(true)
	}
	return err
}

// unlistedNames returns the keys of the rows of all rules and records, or none if the store has rows already.
func unlistedNames(v store.View) (ids []string, err error) {
	if listed, err := hasRow(v, ""); listed || err != nil {
		return nil, err
	}
	err = v.EachObject(store.KindMECApp, func(app string, _ []byte) (bool, error) {
		rules, err := readRules(v, app)
		for _, r := range rules {
			ids = append(ids, r.nameRows()...)
		}
		return true, err
	})
	if err != nil {
		return nil, err
	}
	err = inZones(v, dnsname.Name{}, func(z dnsname.Name) error {
		return store.EachOf(v, kindRecords(z), "", func(id string, row recordRow) (bool, error) {
			n, t, err := parseRecordID(id)
			ids = append(ids, row.record(z, n, t).nameRow())
			return true, err
		})
	})
	return ids, err
}

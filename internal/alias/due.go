package alias

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// maxInEdit is how many ALIAS one edit flattens because they depend on what it changes: 100 take about as long as a
// hundred small changes, some 5 ms. Where more depend on a name, Run flattens all of them in steps, with other edits
// between. A row of store.KindAliasDue keeps the name until then, because a crash must not leave old addresses behind.
//
// ALIAS whose own record set or zone an edit changes do not count: the edit names each of them, and what it takes away
// must be gone with it.
const maxInEdit = 100

// maxVisits is how many names an edit visits to find out how many ALIAS depend on names below one.
const maxVisits = 10 * maxInEdit

// dueName is a name that has changed, alone or with all names below it.
type dueName struct {
	name  dnsname.Name
	below bool
}

func (n dueName) id() string {
	if n.below {
		return "below " + n.name.String()
	}
	return "at " + n.name.String()
}

func parseDue(id string) (dueName, error) {
	where, text, _ := strings.Cut(id, " ")
	name, err := dnsname.Parse(text)
	return dueName{name, where == "below"}, err
}

// openDue reads the names that were due when the program ended.
func (s *Service) openDue(v store.View) error {
	return v.EachObject(store.KindAliasDue, func(id string, value []byte) (bool, error) {
		n, err := parseDue(id)
		if err != nil {
			return false, err
		}
		var mark int
		if err := json.Unmarshal(value, &mark); err != nil {
			return false, err
		}
		s.due[n], s.marks = mark, max(s.marks, mark)
		return true, nil
	})
}

// postpone leaves what depends on a name to Run.
func (d *derivation) postpone(n dueName) error {
	ed := d.s.edit(d.tx)
	if _, ok := ed.due[n]; ok {
		return nil
	}
	d.s.marks++
	ed.due[n] = d.s.marks
	return d.tx.PutObject(store.KindAliasDue, n.id(), d.s.marks)
}

// expand adds the ALIAS that depend on due names to keys. Callers hold s.mu.
func (s *Service) expand(due map[dueName]int, keys map[Key]bool) {
	add := func(e *entry) bool {
		keys[e.key] = true
		return true
	}
	for n := range due {
		if !n.below {
			for e := range s.index.byName[n.name] {
				add(e)
			}
			continue
		}
		visits := len(s.index.byName) + len(s.index.children) + 1
		s.index.below(n.name, &visits, add)
	}
}

// finish deletes the rows of due names whose ALIAS are flattened, unless an edit has written them again since.
func (s *Service) finish(ctx context.Context, due map[dueName]int) error {
	if len(due) == 0 {
		return nil
	}
	return s.publisher.Commit(ctx, actor, func(tx *publish.Tx) error {
		for n, mark := range due {
			var now int
			err := tx.Object(store.KindAliasDue, n.id(), &now)
			if err == nil && now == mark {
				err = tx.DeleteObject(store.KindAliasDue, n.id())
			}
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

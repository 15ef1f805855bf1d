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

// maxInEdit is the largest number of dependent aliases that one edit flattens. 100 take about as long as a hundred
// small changes, about 5 ms. Where more depend on a name, Run flattens all of them in steps, and other edits run
// between the steps. A row of store.KindAliasDue keeps the name until then, because a crash must not leave old
// addresses behind.
//
// Aliases whose own record set or zone the edit changes do not count: the edit names each of them, and the record sets
// that it removes must disappear in the same commit.
const maxInEdit = 100

// maxVisits is the largest number of names that an edit visits to count the aliases that depend on names below another.
const maxVisits = 10 * maxInEdit

// dueName is a changed name, with or without the names below it, whose dependents are not flattened yet.
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

// openDue reads the names that were due when the program stopped.
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

// postpone leaves the aliases that depend on a name to Run.
func (d *derivation) postpone(n dueName) error {
	ed := d.s.edit(d.tx)
	if _, ok := ed.due[n]; ok {
		return nil
	}
	d.s.marks++
	ed.due[n] = d.s.marks
	return d.tx.PutObject(store.KindAliasDue, n.id(), d.s.marks)
}

// expand adds the aliases that depend on due names to keys. Callers hold s.mu.
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

// finishDue deletes the rows of due names whose aliases are flattened, unless a later edit has written them again.
func (s *Service) finishDue(ctx context.Context, due map[dueName]int) error {
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

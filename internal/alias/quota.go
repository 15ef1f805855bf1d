package alias

import (
	"errors"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// setProject makes a project the owner of an ALIAS, which counts against its quota. The empty string is no project.
func (x *index) setProject(e *entry, project string) {
	if e.project == project {
		return
	}
	if x.byProject[e.project]--; x.byProject[e.project] <= 0 {
		delete(x.byProject, e.project)
	}
	if e.project = project; project != "" {
		x.byProject[project]++
	}
}

// checkQuotas refuses an edit that adds aliases to a project beyond its quota. Every new ALIAS passes this check: from
// the API, from an import, and in a zone that moves from another project.
func (f *flattener) checkQuotas() error {
	if f.tx.RecordQuotasLifted() {
		return nil
	}
	for project := range f.grown {
		q, err := f.s.publisher.QuotasOf(f.tx.View, project)
		if err != nil {
			return err
		}
		if n := f.s.countOf(project, f.edit); q.Aliases >= 0 && n > q.Aliases {
			return &publish.QuotaError{Resource: "aliases", N: n, Most: q.Aliases}
		}
	}
	return nil
}

// countOf returns the number of aliases that a project has after an edit.
func (s *Service) countOf(project string, ed *edit) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.index.byProject[project]
	for k, m := range ed.changes {
		if m.rec.Status == "" && s.index.entries[k].project == project {
			n-- // removed by this edit
		}
	}
	return n
}

// openOwners sets the projects of the aliases that Open has read.
func (s *Service) openOwners(v store.View) error {
	for id, names := range s.index.byZone {
		z, err := v.Zone(id)
		if errors.Is(err, store.ErrNotFound) {
			continue // the next edit of the ALIAS removes it
		}
		if err != nil {
			return err
		}
		for n := range names {
			e := s.index.entries[Key{id, n}]
			e.committedProject = z.Project
			s.index.setProject(e, z.Project)
		}
	}
	return nil
}

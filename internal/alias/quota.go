package alias

import (
	"errors"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// own makes a project the owner of an ALIAS: its quota counts it. Empty is no project.
func (x *index) own(e *entry, project string) {
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

// checkQuotas refuses an edit that leaves a project with more ALIAS than its quota allows, if it adds some. Every way to
// make an ALIAS leads through here: the API, an import, a zone that comes from another project.
func (f *flattener) checkQuotas() error {
	if f.tx.QuotasLifted() {
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

// countOf returns how many ALIAS a project has as an edit leaves them.
func (s *Service) countOf(project string, ed *edit) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.index.byProject[project]
	for k, m := range ed.made {
		if m.rec.Status == "" && s.index.entries[k].project == project {
			n-- // removed by this edit
		}
	}
	return n
}

// openOwners finds the projects of the aliases that Open has read.
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
			e.home = z.Project
			s.index.own(e, z.Project)
		}
	}
	return nil
}

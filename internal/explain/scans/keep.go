package scans

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// maxFacts is how large a record may be, compressed, to be kept, and maxText is how large it may be otherwise: records of zeros
// become very small. If it is larger, long replies are left out: what was made of them is in the facts.
const (
	maxFacts = 2 << 20
	maxText  = 32 << 20
	maxReply = 2 << 10
)

// factsRow are facts as they are kept: compressed, since most of them are messages.
type factsRow struct {
	Gzip []byte `json:"z"`
}

// keep writes a scan that has ended, and forgets those that are too old or too many.
func (s *Service) keep(ctx context.Context, actor store.Actor, scan *Scan, facts *explain.Facts) error {
	row, tooLarge := pack(facts)
	if tooLarge != nil {
		scan.fail(tooLarge)
	}
	surplus := s.surplus(*scan)
	// A scan that ended is kept even if the program is about to.
	err := s.publisher.Commit(context.WithoutCancel(ctx), actor, func(tx *publish.Tx) error {
		if err := tx.PutObject(store.KindScan, scan.ID, *scan); err != nil {
			return err
		}
		if row != nil {
			if err := tx.PutObject(store.KindFacts, scan.ID, row); err != nil {
				return err
			}
		}
		return drop(tx, surplus)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range surplus {
		delete(s.kept, id)
		s.documents.forget(id)
	}
	return nil
}

func drop(tx *publish.Tx, ids []string) error {
	for _, id := range ids {
		for _, kind := range []store.Kind{store.KindScan, store.KindFacts} {
			if err := tx.DeleteObject(kind, id); err != nil && !errors.Is(err, store.ErrNotFound) {
				return err // another scan that ended at the same time may have dropped it
			}
		}
	}
	return nil
}

func pack(facts *explain.Facts) (*factsRow, error) {
	if facts == nil {
		return nil, nil
	}
	row, err := packed(facts)
	if errors.Is(err, errLarge) {
		row, err = packed(withoutLong(facts))
	}
	return row, err
}

var errLarge = errors.New("there is too much evidence")

func withoutLong(facts *explain.Facts) *explain.Facts {
	short := *facts
	short.Exchanges = slices.Clone(facts.Exchanges)
	for i := range short.Exchanges {
		if e := &short.Exchanges[i]; len(e.Reply) > maxReply {
			e.Reply, e.Error = nil, "the reply is too long to be kept"
		}
	}
	return &short
}

func packed(facts *explain.Facts) (*factsRow, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	text, err := json.Marshal(facts)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(text)
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxText || b.Len() > maxFacts {
		return nil, errLarge
	}
	return &factsRow{b.Bytes()}, nil
}

func (r factsRow) unpack() (*explain.Facts, error) {
	z, err := gzip.NewReader(bytes.NewReader(r.Gzip))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxText))
	if err != nil {
		return nil, err
	}
	facts := new(explain.Facts)
	err = json.Unmarshal(text, facts)
	facts.Schema = explain.Schema // what else an earlier version has was not read
	return facts, err
}

// surplus are the oldest scans beyond the bounds, once scan is kept, too. Beyond the bound of all, whoever has the most loses one: a
// project cannot push out what others have.
func (s *Service) surplus(scan Scan) (ids []string) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.kept))
	s.mu.Unlock()
	slices.SortFunc(all, newest)
	same, count := 1, 1
	projects := map[string][]Scan{scan.Project: {scan}}
	for _, old := range all {
		if alike(old, scan) {
			same++
		}
		if alike(old, scan) && same > s.opts.Keep {
			ids = append(ids, old.ID)
			continue
		}
		projects[old.Project] = append(projects[old.Project], old)
		count++
	}
	for ; count > s.opts.KeepAll && count > 1; count-- {
		p := busiest(projects)
		last := len(projects[p]) - 1
		ids = append(ids, projects[p][last].ID)
		projects[p] = projects[p][:last]
	}
	return ids
}

func busiest(projects map[string][]Scan) (most string) {
	for _, p := range slices.Sorted(maps.Keys(projects)) {
		if len(projects[p]) > len(projects[most]) {
			most = p
		}
	}
	return most
}

func newest(a, b Scan) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) }

// alike reports whether two scans look at the same thing.
func alike(a, b Scan) bool {
	return a.Project == b.Project && a.Name == b.Name && a.Request.Kind == b.Request.Kind
}

// past is what earlier scans of the same have seen.
type past struct {
	id    string
	facts *explain.Facts // of the last one of its kind that was done
	looks []explain.Past
}

// maxLooks is how far back a scan looks.
const maxLooks = 5

// past is what there is to compare with. Who analyzes a name sees its records as who compares it does, so each knows what the other saw.
func (s *Service) past(scan Scan) (out past) {
	for _, old := range s.List(scan.Project, Filter{Name: scan.Name}) {
		same := old.Request.Kind == scan.Request.Kind
		if old.State != Done || old.ID == scan.ID || !same && (old.Request.Kind == explain.Scan || scan.Request.Kind == explain.Scan) {
			continue
		}
		if len(out.looks) >= maxLooks && (!same || out.facts != nil) {
			continue
		}
		facts, err := s.stored(old.ID)
		if err != nil {
			continue // without it, it is a look like the first one
		}
		if out.facts == nil && same {
			out.id, out.facts = old.ID, facts
		}
		out.looks = append(out.looks, explain.PastOf(facts))
	}
	return out
}

// Filter says which scans to list.
type Filter struct {
	Name  dnsname.Name // zero: all
	Kind  explain.Kind // empty: all
	Limit int          // default 100
}

// List are the scans of a project, the newest first.
func (s *Service) List(project string, f Filter) (out []Scan) {
	wanted := func(x Scan) bool {
		return x.Project == project && (f.Name.IsZero() || x.Name == f.Name) && (f.Kind == "" || x.Request.Kind == f.Kind)
	}
	s.mu.Lock()
	for _, r := range s.live {
		if wanted(r.scan) {
			out = append(out, r.scan)
		}
	}
	for _, x := range s.kept {
		if wanted(x) {
			out = append(out, x)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(out, newest)
	return out[:min(len(out), cmp.Or(f.Limit, 100))]
}

// Get is a scan of a project, or store.ErrNotFound, and a channel that is closed when it changes; nil if it has ended.
func (s *Service) Get(project, id string) (Scan, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.live[id]; r != nil && r.scan.Project == project {
		return r.scan, r.changed, nil
	}
	if x, ok := s.kept[id]; ok && x.Project == project {
		return x, nil, nil
	}
	return Scan{}, nil, fmt.Errorf("scan %s: %w", id, store.ErrNotFound)
}

// Facts are everything that a scan of a project has asked and heard.
func (s *Service) Facts(project, id string) (*explain.Facts, error) {
	if _, _, err := s.Get(project, id); err != nil {
		return nil, err
	}
	return s.stored(id)
}

func (s *Service) stored(id string) (*explain.Facts, error) {
	var row factsRow
	if err := s.publisher.View(func(v store.View) error { return v.Object(store.KindFacts, id, &row) }); err != nil {
		return nil, err
	}
	return row.unpack()
}

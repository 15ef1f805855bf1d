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
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/store"
)

// maxFacts limits the compressed size of stored facts. maxText limits the uncompressed size, since zeros compress
// very well. If facts are larger, replies above maxReply are left out: the facts derived from them remain. Replies that
// decide the DNSSEC state go last.
const (
	maxFacts = 2 << 20
	maxText  = 32 << 20
	maxReply = 2 << 10
)

// factsRow is the stored form of facts: compressed, since they consist mostly of messages.
type factsRow struct {
	Gzip []byte `json:"z"`
}

// keep stores a scan that has ended and deletes scans beyond the limits.
func (s *Service) keep(ctx context.Context, actor store.Actor, scan *Scan, facts *explain.Facts) error {
	row, tooLarge := pack(facts)
	if tooLarge != nil {
		scan.fail(tooLarge)
	}
	surplus := s.surplus(*scan)
	// A scan that has ended is stored even if the server is stopping.
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
				return err // a scan that ended at the same time may have deleted it
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
		row, err = packed(withoutLongReplies(facts, func(e iterate.Exchange) bool { return !facts.Decisive(e) }))
	}
	if errors.Is(err, errLarge) {
		short := withoutLongReplies(facts, func(iterate.Exchange) bool { return true })
		// With only some of the replies, a secure answer could be judged as bogus. Without anchors it is unknown.
		short.Anchors = nil
		row, err = packed(short)
	}
	return row, err
}

var errLarge = errors.New("the evidence is too large to be stored")

// withoutLongReplies returns a copy of facts without the long replies of the exchanges for which drop returns true.
func withoutLongReplies(facts *explain.Facts, drop func(iterate.Exchange) bool) *explain.Facts {
	short := *facts
	short.Exchanges = slices.Clone(facts.Exchanges)
	for i := range short.Exchanges {
		if e := &short.Exchanges[i]; len(e.Reply) > maxReply && drop(*e) {
			e.Reply, e.Error = nil, "the reply is too long to be stored"
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
	size := int64(min(sizeOf(r.Gzip), maxText)) // the caller has reserved memory for this size
	text := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	if _, err := text.ReadFrom(io.LimitReader(z, size+1)); err != nil { // beyond size, z verifies its checksum
		return nil, err
	}
	return explain.Unmarshal(text.Bytes())
}

// surplus returns the oldest scans beyond the limits, counting scan as stored. Beyond KeepAll, the project with the
// most scans loses one: no project can displace the scans of others.
func (s *Service) surplus(scan Scan) (ids []string) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.kept))
	s.mu.Unlock()
	slices.SortFunc(all, newest)
	same, count := 1, 1
	projects := map[string][]Scan{scan.Project: {scan}}
	for _, old := range all {
		if sameSubject(old, scan) {
			same++
		}
		if sameSubject(old, scan) && same > s.opts.Keep {
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

// sameSubject reports whether two scans have the same project, name and kind.
func sameSubject(a, b Scan) bool {
	return a.Project == b.Project && a.Name == b.Name && a.Request.Kind == b.Request.Kind
}

// past holds the results of earlier scans of a name.
type past struct {
	id      string         // ID of the last finished scan of the same kind; empty if there is none
	last    explain.Past   // its result
	history []explain.Past // all results, the newest first
}

// maxHistory limits the earlier scans that a scan is compared with.
const maxHistory = 5

// past returns the earlier results to compare with. Analyze and Compare see the same records, so each uses the
// results of the other.
func (s *Service) past(ctx context.Context, scan Scan) (out past) {
	for _, old := range s.List(scan.Project, Filter{Name: scan.Name}) {
		same := old.Request.Kind == scan.Request.Kind
		if old.State != Done || old.ID == scan.ID ||
			!same && (old.Request.Kind == explain.Scan || scan.Request.Kind == explain.Scan) {
			continue
		}
		if len(out.history) >= maxHistory && (!same || out.id != "") {
			continue
		}
		p, err := s.pastOf(ctx, old)
		if err != nil {
			continue // without its facts, or without memory for them, the earlier scan is ignored
		}
		if out.id == "" && same {
			out.id, out.last = old.ID, p
		}
		out.history = append(out.history, p)
	}
	return out
}

// Filter selects the scans to list.
type Filter struct {
	Name  dnsname.Name // zero: all
	Kind  explain.Kind // empty: all
	Limit int          // default 100
}

// List returns the scans of a project, the newest first.
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

// Get returns a scan of a project, or store.ErrNotFound. The channel is closed when the scan changes; it is nil if
// the scan has ended.
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

// stored reads the facts of a scan. The caller has reserved the memory with takeFacts.
func (s *Service) stored(id string) (*explain.Facts, error) {
	var row factsRow
	if err := s.publisher.View(func(v store.View) error { return v.Object(store.KindFacts, id, &row) }); err != nil {
		return nil, err
	}
	return row.unpack()
}

package dnsnameresolver

import (
	"slices"
	"time"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// write is the content of one write of an object.
type write struct {
	gen     uint64
	live    *v1alpha1.DNSNameResolver
	entries []learn.Entry // entries of live
	index   map[string]int
	ops     []operation
	want    []learn.Entry
	first   bool // nothing is stored yet
	pending map[string]learn.Pending
	changed map[string]learn.Entry // new entries of the pending names that the write changes
	omitted []string
}

// begin collects the pending changes of an object. It returns nil if the object was deleted.
func (o *object) begin(r learn.Rules, now time.Time) *write {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.deletedAt.IsZero() {
		return nil
	}
	known := map[string]*learn.Memory{}
	for n, m := range o.names {
		switch {
		case m.dirty, !m.due.IsZero() && !m.due.After(now):
			known[n] = &m.Memory
		case m.Idle(now):
			o.forgetLocked(n)
		}
	}
	if len(o.live.ManagedFields) > 0 {
		r.MaxBytes = r.MaxBytes * 5 / 9 // the rest is for the managed fields
	}
	res := r.Merge(o.entries, o.learnObject(), known, now)
	if res.Changed {
		res = o.coRenewLocked(r, res, known, now)
	}
	w := &write{gen: o.gen, live: o.live, entries: o.entries, index: o.index, want: res.Entries,
		pending: map[string]learn.Pending{}, omitted: res.Omitted}
	for n := range known {
		m := o.names[n]
		w.pending[n] = m.TakePending()
		m.dirty, m.due = false, time.Time{}
	}
	o.due = time.Time{}
	if !res.Changed {
		if !o.writing { // another client wrote the changes that were rejected before
			o.refused, o.failed = 0, 0
		}
		o.storedLocked(w.gen)
		o.rescheduleLocked(res.Due)
		return w
	}
	o.writing = true
	w.changed = o.changedLocked(res.Entries, known)
	w.first = len(o.live.Status.ResolvedNames) == 0 && !o.wildcard() && o.refused == 0
	switch w.ops = diff(o.live, o.entries, res.Entries); {
	case o.refused > 2, len(w.ops) > fetch.MaxOperations-1:
		w.ops = replaceAll(o.live, res.Entries)
	case res.Exclusive:
		w.ops = slices.Insert(w.ops, 0,
			operation{Op: "test", Path: "/metadata/resourceVersion", Value: o.live.ResourceVersion})
	}
	return w
}

// coRenewLocked merges again, and includes the names that are not due yet but can be renewed by the same write.
func (o *object) coRenewLocked(r learn.Rules, res learn.Result, known map[string]*learn.Memory,
	now time.Time) learn.Result {
	had := len(known)
	for n, m := range o.names {
		if !m.due.IsZero() {
			known[n] = &m.Memory
		}
	}
	if len(known) == had {
		return res
	}
	r.CoRenew = true
	return r.Merge(o.entries, o.learnObject(), known, now)
}

// changedLocked returns the entries for the given names that differ from the stored ones.
func (o *object) changedLocked(want []learn.Entry, names map[string]*learn.Memory) map[string]learn.Entry {
	out := map[string]learn.Entry{}
	at := indexByName(want)
	for n := range names {
		i, ok := at[n]
		if !ok {
			i, ok = at[o.text] // folded
		}
		if !ok {
			continue
		}
		if j, had := o.index[want[i].Name]; !had || !equal(o.entries[j], want[i]) {
			out[n] = want[i]
		}
	}
	return out
}

// rescheduleLocked schedules the earliest time at which a name must be evaluated again.
func (o *object) rescheduleLocked(at time.Time) {
	o.scheduleLocked(at)
	for _, m := range o.names {
		o.scheduleLocked(m.due)
	}
}

// done processes the result of a successful write.
func (o *object) done(w *write, got *v1alpha1.DNSNameResolver, r learn.Rules, now time.Time) {
	o.set(got, false, now)
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, e := range w.changed {
		if m := o.names[n]; m != nil {
			m.NoteWritten(e)
		}
	}
	o.refused, o.failed, o.writing = 0, 0, false
	o.storedLocked(w.gen)
	for n := range w.pending {
		m := o.names[n]
		if m == nil || m.dirty {
			continue
		}
		res := o.evaluateLocked(r, n, m, now)
		m.due = res.Due
		// another client removed it before the result of the write arrived
		if _, changed := w.changed[n]; changed && res.Changed {
			m.MarkUnwritten()
			m.due = now
		}
	}
	o.rescheduleLocked(time.Time{})
}

// undo restores the pending results of a failed write, except failures that another replica has counted meanwhile.
func (o *object) undo(w *write, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing = false
	for n, p := range w.pending {
		m := o.names[n]
		if m == nil {
			continue
		}
		m.RestorePending(p)
		m.dirty = true
		i, was := w.index[n]
		j, is := o.index[n]
		if was && is {
			m.NoteCounted(w.entries[i], o.entries[j], now)
		}
	}
}

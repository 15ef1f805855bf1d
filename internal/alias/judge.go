package alias

import (
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
)

// outcome is what is known of one family of a target now.
type outcome struct {
	known bool // it was looked up

	answer follow.Cause // Found with addrs, or NoData that is proven; empty: there never was one of these
	addrs  []netip.Addr
	ttl    time.Duration
	last   time.Time // success

	cause  follow.Cause // why there is nothing newer; empty: it is as new as can be
	detail string
	asked  string
}

// ofState is the outcome of what the tracker knows. The last good addresses stand until somebody who knows says that there
// are none: NXDOMAIN may be a mistake of a moment that would take the zone's apex down, and NOERROR without a SOA record
// proves nothing.
func ofState(s follow.State) outcome {
	o := outcome{known: s.Cause() != ""}
	gone := s.Answer == follow.NoData && s.Proven
	switch {
	case gone:
		o.answer = follow.NoData
	case s.Answer == follow.Found: // after other answers the State still has addresses, which may have been gone before
		o.answer, o.addrs, o.ttl, o.last = follow.Found, s.Addrs, s.TTL, s.LastSuccess
	}
	switch {
	case s.Err != nil:
		o.cause, o.detail, o.asked = s.Err.Cause, plain(s.Err.Cause), asked(s.Err)
	case s.Answer == follow.NXDomain:
		o.cause, o.detail = follow.NXDomain, "the target does not exist"
	case s.Answer == follow.NoData && !gone:
		o.cause, o.detail = follow.NoData, "the answer has no SOA record to prove that there are none"
	}
	return o
}

// ofWay is the outcome of a family of a way that ends in our zones.
func ofWay(w *way, family int, now time.Time) outcome {
	s := w.sets[family]
	switch {
	case len(s.Data) > 0:
		o := outcome{known: true, answer: follow.Found, ttl: time.Duration(s.TTL) * time.Second, last: now}
		for _, d := range s.Data {
			if a, ok := netip.AddrFromSlice([]byte(d)); ok {
				o.addrs = append(o.addrs, a)
			}
		}
		slices.SortFunc(o.addrs, netip.Addr.Compare)
		return o
	case w.missing:
		return outcome{known: true, cause: follow.NXDomain, detail: "the target does not exist"}
	}
	return outcome{known: true, answer: follow.NoData}
}

// judge is what becomes of a record when this is known of its target, and addresses may stay for the limit when nothing
// newer comes; 0: for ever. It is pure, but for the order of Since.
func (r Record) judge(w *way, outcomes [2]outcome, limit time.Duration, now time.Time) Record {
	for i, o := range outcomes {
		was := r.Families[i]
		r.Families[i] = was.after(o, w, now).bounded(was, w, limit, now)
	}
	before := r.Status
	r.status(w)
	if r.addresses() {
		for i := range r.Families { // of the former target: never mix addresses of two
			if r.Families[i].Answer == "" {
				r.Families[i].Addrs, r.Families[i].TTL, r.Families[i].Found = nil, 0, 0
			}
		}
	}
	if r.Status == statusActive || r.Status == statusStale {
		r.Action = actionNone
	}
	if r.Status != before || r.Since.IsZero() {
		r.Since = now
	}
	return r
}

// after is a family after an outcome. What was known before stays where that says nothing.
func (f Family) after(o outcome, w *way, now time.Time) Family {
	if !o.known {
		return f
	}
	was := f
	f.Cause, f.Detail, f.Asked = o.cause, o.detail, o.asked
	if o.cause != "" && f.Answer == "" && f.LastSuccess.IsZero() {
		o.answer = "" // STALE is what was good before; others may follow the target for longer, and have what was
	}
	switch o.answer {
	case follow.Found:
		f.Answer, f.Addrs, f.Found = o.answer, o.addrs, 0
		f.TTL = uint32(w.ttl(o.ttl) / time.Second)
		f.LastSuccess = o.last
		if len(f.Addrs) > maxAddrs {
			f.Addrs, f.Found = f.Addrs[:maxAddrs], len(f.Addrs)
		}
	case follow.NoData:
		f.Answer, f.Addrs, f.TTL, f.Found = o.answer, nil, 0, 0
	}
	if f.Answer != was.Answer || f.Cause != was.Cause || was.Since.IsZero() {
		f.Since = now
	}
	return f
}

// addresses reports whether the target has, or had when it was last known, any.
func (r Record) addresses() bool {
	return slices.ContainsFunc(r.Families[:], func(f Family) bool { return f.Answer == follow.Found && len(f.Addrs) > 0 })
}

// status makes the state of an ALIAS that of its families, and its reason that of the first that has one.
func (r *Record) status(w *way) {
	set := func(s Status, why Family) { r.Status, r.Cause, r.Detail, r.Asked = s, why.Cause, why.Detail, why.Asked }
	if w.cause != "" {
		set(statusError, Family{Cause: w.cause, Detail: w.detail})
		return
	}
	var why Family
	stale, failed := false, false
	for _, f := range r.Families {
		if f.Answer == "" && f.Cause == "" {
			set(statusPending, Family{})
			return
		}
		if why.Cause == "" || f.Cause == causeStaleLimit {
			why = f
		}
		stale = stale || f.Cause != "" && f.Answer != ""
		failed = failed || f.Cause == follow.Loop || f.Cause == follow.ChainTooLong || f.Cause == causeStaleLimit
	}
	switch {
	case failed:
		set(statusError, why)
	case !r.addresses() && why.Cause == "":
		set(statusError, Family{Cause: follow.NoData, Detail: "the target has no addresses"})
	case !r.addresses():
		set(statusError, why)
	case stale:
		set(statusStale, why)
	default:
		set(statusActive, why) // a cause here is of a family that never had an answer
	}
}

// chainText is the names from the ALIAS to the addresses.
func chainText(owner, target dnsname.Name, links []follow.Link) []string {
	out := []string{owner.String(), target.String()}
	for _, l := range links {
		out = append(out, l.Target.String())
	}
	return out
}

package alias

import (
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
)

// outcome is the current knowledge about one family of a target.
type outcome struct {
	known bool // the family was looked up

	answer follow.Cause // Found with addrs, or proven NoData; empty: neither was ever seen
	addrs  []netip.Addr
	ttl    time.Duration
	last   time.Time // time of the last success

	cause  follow.Cause // why answer is not current; empty: it is current
	detail string
	asked  string
}

// trackerOutcome returns the outcome for a state of the tracker. The last good addresses are kept until an authority
// proves that there are none. NXDOMAIN may be a momentary mistake that would take down the apex of the zone, and
// NOERROR without a SOA record proves nothing.
func trackerOutcome(s follow.State) outcome {
	o := outcome{known: s.Cause() != ""}
	gone := s.Answer == follow.NoData && s.Proven
	switch {
	case gone:
		o.answer = follow.NoData
	case s.Answer == follow.Found: // after another answer, State.Addrs may be older than an earlier withdrawal
		o.answer, o.addrs, o.ttl, o.last = follow.Found, s.Addrs, s.TTL, s.LastSuccess
	}
	switch {
	case s.Err != nil:
		o.cause, o.detail, o.asked = s.Err.Cause, causeText(s.Err.Cause), resolverText(s.Err)
	case s.Answer == follow.NXDomain:
		o.cause, o.detail = follow.NXDomain, "the target does not exist"
	case s.Answer == follow.NoData && !gone:
		o.cause, o.detail = follow.NoData, "the answer has no SOA record to prove that there are none"
	}
	return o
}

// pathOutcome returns the outcome of one family of a path that ends in our zones.
func pathOutcome(p *path, family int, now time.Time) outcome {
	s := p.sets[family]
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
	case p.missing:
		return outcome{known: true, cause: follow.NXDomain, detail: "the target does not exist"}
	}
	return outcome{known: true, answer: follow.NoData}
}

// assess returns the next version of a record. limit is how long addresses are kept after lookups start to fail; 0
// means forever. assess is a pure function, except that Since depends on the order of calls.
func (r Record) assess(p *path, outcomes [2]outcome, limit time.Duration, now time.Time) Record {
	for i, o := range outcomes {
		was := r.Families[i]
		r.Families[i] = was.update(o, p, now).applyStaleLimit(was, p, limit, now)
	}
	before := r.Status
	r.setStatus(p)
	if r.hasAddrs() {
		for i := range r.Families { // these belong to the previous target: never mix addresses of two targets
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

// update applies an outcome to a family. Fields about which the outcome says nothing keep their values.
func (f Family) update(o outcome, p *path, now time.Time) Family {
	if !o.known {
		return f
	}
	was := f
	f.Cause, f.Detail, f.Asked = o.cause, o.detail, o.asked
	if o.cause != "" && f.Answer == "" && f.LastSuccess.IsZero() {
		o.answer = "" // an ALIAS is STALE only if it was good before; another ALIAS may have followed the target for longer
	}
	switch o.answer {
	case follow.Found:
		f.Answer, f.Addrs, f.Found = o.answer, o.addrs, 0
		f.TTL = uint32(p.ttl(o.ttl) / time.Second)
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

// hasAddrs reports whether the target has addresses, or had some when it was last known.
func (r Record) hasAddrs() bool {
	return slices.ContainsFunc(r.Families[:], func(f Family) bool { return f.Answer == follow.Found && len(f.Addrs) > 0 })
}

// setStatus derives the status of an ALIAS from its families. The reason is that of the first family that has one.
func (r *Record) setStatus(p *path) {
	set := func(s Status, why Family) { r.Status, r.Cause, r.Detail, r.Asked = s, why.Cause, why.Detail, why.Asked }
	if p.cause != "" {
		set(statusError, Family{Cause: p.cause, Detail: p.detail})
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
	case !r.hasAddrs() && why.Cause == "":
		set(statusError, Family{Cause: follow.NoData, Detail: "the target has no addresses"})
	case !r.hasAddrs():
		set(statusError, why)
	case stale:
		set(statusStale, why)
	default:
		set(statusActive, why) // a cause here belongs to a family that never had an answer
	}
}

// chainText returns the names from the ALIAS to the addresses.
func chainText(owner, target dnsname.Name, links []follow.Link) []string {
	out := []string{owner.String(), target.String()}
	for _, l := range links {
		out = append(out, l.Target.String())
	}
	return out
}

package safeat

import (
	"fmt"
	"time"

	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/rr"
)

// lowTTL is the TTL during a change: five minutes are short enough to wait for and cause little load.
const lowTTL = 300

// Change describes a planned change. The role of Set selects its kind: a record, or the nameservers of a zone
// (ChildNS).
type Change struct {
	Create bool // Set does not exist yet
	Set    Link // as served now; Before are older versions that caches may still hold

	Parent Link  // nameservers only: the parent's NS set
	DS     *Link // nameservers only: the DS that does not match the keys at the new servers, or nil
	Zone   TTL   // nameservers only: the longest TTL in the zone, including DNSKEY and negative answers

	Start time.Time // time of the first step
}

// Do is the kind of a step.
type Do string

// The kinds of steps.
const (
	Lower    Do = "lower"
	Prepare  Do = "prepare"
	RemoveDS Do = "removeDS"
	Wait     Do = "wait"
	Make     Do = "change"
	Confirm  Do = "confirm"
	Raise    Do = "raise"
	AddDS    Do = "addDS"
	Retire   Do = "retire"
)

// Step is one step of a plan. Steps are in order of time; steps with the same time are done in the given order.
type Step struct {
	At      time.Time `json:"at"`
	Until   time.Time `json:"until,omitzero"` // end of a Wait step
	Do      Do        `json:"do"`
	Text    string    `json:"text"`
	Because string    `json:"because,omitempty"` // why not earlier
	Assumed bool      `json:"assumed"`
}

// Plan is a schedule for a change.
type Plan struct {
	Summary string    `json:"summary"`
	Subject string    `json:"subject"` // the record set that changes
	Change  time.Time `json:"changeAt"`
	Safe    time.Time `json:"safeAt"`   // every resolver gives the new answer
	Latest  time.Time `json:"atLatest"` // the same, if an assumption is wrong
	Assumed bool      `json:"assumed"`
	Steps   []Step    `json:"steps"`
}

// MakePlan schedules a change: lower the TTL, wait, change, confirm, raise the TTL again.
func MakePlan(c Change) Plan {
	p := &planner{Change: c, at: c.Start}
	switch {
	case c.Set.Role == ChildNS || c.Set.Role == ParentNS:
		p.nameservers()
	case c.Create:
		p.create()
	default:
		p.record()
	}
	p.Subject = c.Set.String()
	p.Summary = fmt.Sprintf("Change %s at %s; everyone sees it by %s%s.", c.Set, stamp(p.Plan.Change), stamp(p.Safe),
		assumption(p.Plan.Assumed, p.Safe, p.Latest))
	return p.Plan
}

// planner is a plan under construction.
type planner struct {
	Change
	Plan
	at time.Time // time of the next step
}

func (p *planner) step(do Do, format string, args ...any) {
	p.Steps = append(p.Steps, Step{At: p.at, Do: do, Text: fmt.Sprintf(format, args...)})
}

// expiry computes from when on no cache has an older version of any of the links.
func (p *planner) expiry(links ...Link) Report {
	return Compute(Facts{Now: p.at, Links: links})
}

// wait moves the next step to the time when the older versions have expired, in whole minutes.
func (p *planner) wait(what string, links ...Link) {
	r := p.expiry(links...)
	s := Step{At: p.at, Do: Wait, Until: ceil(r.At), Assumed: r.Assumed}
	if !s.Until.After(p.at) {
		return
	}
	if r.Slowest != nil {
		s.Because = r.Slowest.Because
	}
	s.Text = fmt.Sprintf("Wait until %s, when %s.", stamp(s.Until), what)
	p.Steps = append(p.Steps, s)
	p.Plan.Assumed = p.Plan.Assumed || r.Assumed
	p.at = s.Until
}

// change adds the step that makes the change.
func (p *planner) change(format string, args ...any) {
	p.Plan.Change = p.at
	p.step(Make, format, args...)
}

// confirm adds the step from which every resolver gives the new answer.
func (p *planner) confirm(links ...Link) {
	r := p.expiry(links...)
	p.at, p.Latest = ceil(r.At), ceil(r.Latest)
	p.Safe, p.Plan.Assumed = p.at, p.Plan.Assumed || r.Assumed
	s := Step{At: p.at, Do: Confirm, Assumed: r.Assumed,
		Text: "Confirm: all servers of the zone and all resolvers give the new answer from now on."}
	if r.Slowest != nil {
		s.Because = r.Slowest.Because
	}
	p.Steps = append(p.Steps, s)
}

// ceil rounds t up to the next whole minute, for readers.
func ceil(t time.Time) time.Time { return t.Add(time.Minute - time.Nanosecond).Truncate(time.Minute) }

// replaced returns l after one more change at the given time. ttl is the TTL until then.
func replaced(l Link, at time.Time, ttl TTL) Link {
	l.Seen, l.Unchanged = at, false
	l.Before = append([]Version{{Until: at, TTL: ttl}}, l.Before...)
	return l
}

// lower adds the step that lowers the TTL, and returns the link after it.
func (p *planner) lower(l Link) (Link, bool) {
	if l.TTL.known && l.TTL.seconds <= lowTTL {
		return l, false
	}
	p.step(Lower, "Lower the TTL of %s%s to %d s; leave its data as they are.", l, l.TTL.in(" from %d s"), lowTTL)
	return replaced(l, p.at, l.TTL), true
}

// in formats a part of a sentence about a TTL; empty if the TTL is unknown.
func (t TTL) in(format string) string {
	if !t.known {
		return ""
	}
	return fmt.Sprintf(format, t.seconds)
}

// lowered returns the TTL at the time of the change.
func lowered(l Link, low bool) TTL {
	if low {
		return Seconds(lowTTL)
	}
	return l.TTL
}

func (p *planner) record() {
	l, low := p.lower(p.Set)
	if l.Unchanged = !low && len(l.Before) == 0; !l.Unchanged {
		p.wait("every cache has the low TTL", l)
	}
	p.change("Change %s, and ask the zone's own servers whether all have it.", l)
	l.TTL = lowered(p.Set, low)
	p.confirm(replaced(l, p.at, l.TTL))
	if low {
		p.step(Raise, "Raise the TTL of %s again%s.", l, p.Set.TTL.in(", to %d s"))
	}
}

// create schedules the creation of a record. Until then, caches keep its absence for the zone's negative TTL.
func (p *planner) create() {
	l, old := p.Set, p.Set
	neg := l.Denial.TTL
	low := !neg.known || neg.seconds > lowTTL || l.Denial.NSEC.known && l.Denial.NSEC.seconds > lowTTL
	old.Unchanged = true
	if low {
		p.step(Lower, "Lower the SOA's MINIMUM, and so the negative TTL of the zone,%s to %d s.", neg.in(" from %d s"),
			lowTTL)
		old = replaced(l, p.at, TTL{})
		old.Before[0].Absent = true
		l.Denial.TTL, l.Denial.NSEC = Seconds(lowTTL), Seconds(lowTTL)
		p.wait("no cache keeps for longer that the name does not exist", old)
	}
	p.change("Create %s, and announce it only when all of the zone's own servers have it; do not ask resolvers before.", l)
	created := replaced(l, p.at, TTL{})
	created.Before[0].Absent = true
	p.confirm(created, old)
	if low {
		p.step(Raise, "Raise the SOA's MINIMUM again%s.", neg.in(", to %d s"))
	}
}

// nameservers schedules the move of a zone. The registry sets the parent's TTL, so it cannot be lowered. The move is
// safe because both sets of servers give the same answers as long as a cache may have the old set.
func (p *planner) nameservers() {
	child, parent := p.Set, p.Parent
	child.Role, child.OldServersUpdated = ChildNS, true
	parent.Owner, parent.Type, parent.Role, parent.OldServersUpdated = child.Owner, rr.TypeNS, ParentNS, true
	p.step(Prepare, "Load the zone into the new servers, and compare all of its records with the old ones by asking both.")
	child, low := p.lower(child)
	child.Unchanged = !low && len(child.Before) == 0
	waits, what := []Link{child}, "every cache has the low TTL"
	if p.DS != nil {
		p.step(RemoveDS, "Remove the DS of %s at the parent: the new servers sign with other keys.", words.Name(child.Owner))
		ds := replaced(*p.DS, p.at, p.DS.TTL)
		ds.Role = DS
		waits, what = append(waits, ds), "no cache has the DS or the longer TTL"
	}
	p.wait(what, waits...)
	p.change("Change the NS set of %s at the parent, at the new servers, and at the old ones. "+
		"The old servers must keep giving the same answers.", words.Name(child.Owner))
	child.TTL = lowered(p.Set, low)
	parent = replaced(parent, p.at, parent.TTL)
	data := Link{Owner: child.Owner, Type: rr.TypeSOA, Role: Data, TTL: p.Zone, Unchanged: true}
	p.confirm(parent, replaced(child, p.at, child.TTL), data)
	p.step(Retire, "Switch the old servers off when their logs show no further queries.")
	if low {
		p.step(Raise, "Raise the TTL of %s again%s.", child, p.Set.TTL.in(", to %d s"))
	}
	if p.DS != nil {
		// Until now resolvers queried the old servers, whose answers are signed with the old keys. A DS that is added too
		// early breaks the zone; one that is added late does no harm. So the worst case counts here.
		p.at = p.Latest
		data.Denial.Ranges = RangesNone
		p.wait("no cache has anything that the old keys signed", replaced(data, p.at, p.Zone))
		p.step(AddDS, "Put the DS of the new keys at the parent.")
	}
}

package safeat

import (
	"fmt"
	"time"

	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/rr"
)

// lowTTL is the TTL to change a record with: five minutes are short enough to wait for, and no load worth speaking of.
const lowTTL = 300

// Change is what somebody is about to do. The role of Set says of which kind it is: a record, or the nameservers of a zone
// (ChildNS).
type Change struct {
	Create bool // Set does not exist yet
	Set    Link // as it is served now; Before are older versions that caches may still hold

	Parent Link  // for nameservers: the parent's NS set
	DS     *Link // for nameservers: the DS that the keys at the new servers do not match, if there is one
	Zone   TTL   // for nameservers: the longest TTL in the zone, of its DNSKEY set and negative answers, too

	Start time.Time // of the first step
}

// Do is what a step is about.
type Do string

// What steps do.
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

// Step is one line of a plan. Steps are in the order of their moments; those of one moment are done in the order given.
type Step struct {
	At      time.Time `json:"at"`
	Until   time.Time `json:"until,omitzero"` // of Wait
	Do      Do        `json:"do"`
	Text    string    `json:"text"`
	Because string    `json:"because,omitempty"` // why not earlier
	Assumed bool      `json:"assumed"`
}

// Plan is a change with its dates.
type Plan struct {
	Summary string    `json:"summary"`
	Subject string    `json:"subject"` // what is changed
	Change  time.Time `json:"changeAt"`
	Safe    time.Time `json:"safeAt"`   // everyone sees the new answer
	Latest  time.Time `json:"atLatest"` // the same if what was assumed is wrong
	Assumed bool      `json:"assumed"`
	Steps   []Step    `json:"steps"`
}

// MakePlan dates the steps of a change: lower the TTL, wait, change, confirm, raise it again.
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
	p.Summary = fmt.Sprintf("Change %s at %s; everyone sees it by %s%s.", c.Set, stamp(p.Plan.Change), stamp(p.Safe), assumption(p.Plan.Assumed, p.Safe, p.Latest))
	return p.Plan
}

// planner is a plan while it is made.
type planner struct {
	Change
	Plan
	at time.Time // of the next step
}

func (p *planner) step(do Do, format string, args ...any) {
	p.Steps = append(p.Steps, Step{At: p.at, Do: do, Text: fmt.Sprintf(format, args...)})
}

// gone is the moment from which no cache has an older version of any of the links.
func (p *planner) gone(links ...Link) Report {
	return Compute(Facts{Now: p.at, Links: links})
}

// wait puts the next step after the older versions have gone, in whole minutes.
func (p *planner) wait(what string, links ...Link) {
	r := p.gone(links...)
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

// change is the step that all others are for.
func (p *planner) change(format string, args ...any) {
	p.Plan.Change = p.at
	p.step(Make, format, args...)
}

// confirm ends the plan's waiting: from here on everyone sees what the change made.
func (p *planner) confirm(links ...Link) {
	r := p.gone(links...)
	p.at, p.Latest = ceil(r.At), ceil(r.Latest)
	p.Safe, p.Plan.Assumed = p.at, p.Plan.Assumed || r.Assumed
	s := Step{At: p.at, Do: Confirm, Assumed: r.Assumed, Text: "Confirm: all servers of the zone and all resolvers give the new answer from now on."}
	if r.Slowest != nil {
		s.Because = r.Slowest.Because
	}
	p.Steps = append(p.Steps, s)
}

// ceil is t, or the next whole minute: dates for people.
func ceil(t time.Time) time.Time { return t.Add(time.Minute - time.Nanosecond).Truncate(time.Minute) }

// replaced is l after one more change of it, at a moment.
func replaced(l Link, at time.Time, ttl TTL) Link {
	l.Seen, l.Unchanged = at, false
	l.Before = append([]Version{{Until: at, TTL: ttl}}, l.Before...)
	return l
}

// lower adds the steps that make a TTL low, and returns the link as it is then.
func (p *planner) lower(l Link) (Link, bool) {
	if l.TTL.known && l.TTL.seconds <= lowTTL {
		return l, false
	}
	p.step(Lower, "Lower the TTL of %s%s to %d s; leave its data as they are.", l, l.TTL.in(" from %d s"), lowTTL)
	return replaced(l, p.at, l.TTL), true
}

// in is a sentence's part about a TTL; empty if that is not known.
func (t TTL) in(format string) string {
	if !t.known {
		return ""
	}
	return fmt.Sprintf(format, t.seconds)
}

// lowered is the TTL with which a link is changed.
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

// create is record for what does not exist yet: what caches keep then is its absence, for the zone's negative TTL.
func (p *planner) create() {
	l, old := p.Set, p.Set
	neg := l.Denial.TTL
	low := !neg.known || neg.seconds > lowTTL || l.Denial.NSEC.known && l.Denial.NSEC.seconds > lowTTL
	old.Unchanged = true
	if low {
		p.step(Lower, "Lower the SOA's MINIMUM, and so the negative TTL of the zone,%s to %d s.", neg.in(" from %d s"), lowTTL)
		old = replaced(l, p.at, TTL{})
		old.Before[0].Absent = true
		l.Denial.TTL, l.Denial.NSEC = Seconds(lowTTL), Seconds(lowTTL)
		p.wait("no cache keeps for longer that the name does not exist", old)
	}
	p.change("Create %s, and tell of it only when all of the zone's own servers have it; do not ask resolvers before.", l)
	created := replaced(l, p.at, TTL{})
	created.Before[0].Absent = true
	p.confirm(created, old)
	if low {
		p.step(Raise, "Raise the SOA's MINIMUM again%s.", neg.in(", to %d s"))
	}
}

// nameservers moves a zone. The parent's TTL is the registry's and cannot be lowered, so what makes the move safe is that
// both sets of servers answer alike for as long as the old set may be in a cache.
func (p *planner) nameservers() {
	child, parent := p.Set, p.Parent
	child.Role, child.LeftNew = ChildNS, true
	parent.Owner, parent.Type, parent.Role, parent.LeftNew = child.Owner, rr.TypeNS, ParentNS, true
	p.step(Prepare, "Load the zone into the new servers, and compare all of its records with the old ones by asking both.")
	child, low := p.lower(child)
	child.Unchanged = !low && len(child.Before) == 0
	waits, what := []Link{child}, "every cache has the low TTL"
	if p.DS != nil {
		p.step(RemoveDS, "Remove the DS of %s at the parent: the new servers sign with other keys.", words.Name(child.Owner))
		ds := replaced(*p.DS, p.at, p.DS.TTL)
		ds.Role = DS
		waits, what = append(waits, ds), "no cache has the DS or the longer TTL any more"
	}
	p.wait(what, waits...)
	p.change("Change the NS set of %s at the parent, at the new servers, and at the old ones, which go on answering alike.", words.Name(child.Owner))
	child.TTL = lowered(p.Set, low)
	parent = replaced(parent, p.at, parent.TTL)
	data := Link{Owner: child.Owner, Type: rr.TypeSOA, Role: Data, TTL: p.Zone, Unchanged: true}
	p.confirm(parent, replaced(child, p.at, child.TTL), data)
	p.step(Retire, "Switch the old servers off, if their logs show no more questions.")
	if low {
		p.step(Raise, "Raise the TTL of %s again%s.", child, p.Set.TTL.in(", to %d s"))
	}
	if p.DS != nil {
		// The old servers were asked until now, and what they sent is signed with their keys. A DS too early makes the zone
		// fail, one too late does no harm, so here the worst case counts.
		p.at = p.Latest
		data.Denial.Ranges = RangesNone
		p.wait("no cache has anything that the old keys signed", replaced(data, p.at, p.Zone))
		p.step(AddDS, "Put the DS of the new keys at the parent.")
	}
}

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// LinkLine is the state of one link between the objects of a service and its page.
type LinkLine struct {
	Link  explain.ServiceLink `json:"link"`
	State string              `json:"state"` // one of the states below
	Words string              `json:"words,omitempty"`
}

// The states of a link.
const (
	linkHolds    = "holds"
	linkBroken   = "broken"         // the one to repair first
	linkImpaired = "impaired"       // it fails for a part of the requests
	linkWaits    = "not judged yet" // a link before it is broken
	linkUnknown  = "unknown"
	linkAbsent   = "not checked" // no objects, or no connection was made
)

// Entry is a record to enter at a DNS host, as its form wants it.
type Entry struct {
	Zone    string        `json:"zone"`
	Host    string        `json:"host"` // relative to the zone; "@" for the zone itself
	Type    string        `json:"type"`
	Value   string        `json:"value"`
	TTL     uint32        `json:"ttl"`
	Actor   explain.Actor `json:"actor"`
	Servers []string      `json:"nameservers,omitempty"` // of the DNS host, by which people recognize it
	Visible time.Time     `json:"visibleBy,omitzero"`    // when everyone sees a record that is entered now
}

// service adds the links of a service and the records to enter. Findings of links after the first broken one become
// unknown: what they show may be the result of the broken link.
func (r *Report) service(f *explain.Facts) {
	if f.Service == nil {
		return
	}
	r.host = f.Service.Host
	broken := explain.FirstBroken(r.Findings)
	for i := range r.Findings {
		x := &r.Findings[i]
		if broken != "" && x.Status == explain.Fail && x.Severity.AtLeast(explain.Warning) &&
			explain.ServiceLinkOf(x.ID).After(broken) {
			x.Status, x.Fix, x.Actor = explain.NotKnown, "", ""
			x.Words = fmt.Sprintf("Cannot be judged before the %s is repaired. Now: %s", broken, x.Words)
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b explain.Finding) int { return statusOrder(a) - statusOrder(b) })
	for _, l := range explain.ServiceLinks {
		r.Links = append(r.Links, r.linkLine(l, broken))
	}
	if broken == explain.LinkOwnership && f.Service.Proof != nil {
		r.entries(f, []service.Record{*f.Service.Proof}, "OWN01", "OWN02", "OWN03", "OWN05")
	} else {
		r.entries(f, explain.EntryRecords(f), "SVC20", "SVC21", "SVC22", "SVC23", "SVC25", "SVC26", "SVC27")
	}
}

// statusOrder orders failures before unknown results before passes.
func statusOrder(f explain.Finding) int {
	return slices.Index([]explain.Status{explain.Fail, explain.NotKnown, explain.Pass}, f.Status)
}

// linkLine returns the state of a link. Only checks of the service count as evidence that a link holds.
func (r *Report) linkLine(l explain.ServiceLink, broken explain.ServiceLink) LinkLine {
	find := func(status explain.Status) *explain.Finding {
		return r.first(func(f explain.Finding) bool {
			own := explain.IsServiceCheck(f.ID)
			return explain.ServiceLinkOf(f.ID) == l && f.Status == status &&
				(own || status == explain.Fail && f.Severity.AtLeast(explain.Error))
		})
	}
	fail, unknown, pass := find(explain.Fail), find(explain.NotKnown), find(explain.Pass)
	switch {
	case l == explain.LinkCertificate && pass != nil: // readable CAA records are no certificate
		pass = r.passed("TLS01")
	case l == explain.LinkRoute && pass != nil && pass.ID == "SVC16": // a hostname without objects has no route
		pass = nil
	}
	switch {
	case fail != nil && l == broken:
		return LinkLine{Link: l, State: linkBroken, Words: fail.Words}
	case fail != nil && fail.Severity.AtLeast(explain.Error):
		return LinkLine{Link: l, State: linkImpaired, Words: fail.Words}
	case broken != "" && l.After(broken) && (unknown != nil || pass != nil || l.After(explain.LinkOwnership)):
		return LinkLine{Link: l, State: linkWaits}
	case unknown != nil && pass == nil:
		return LinkLine{Link: l, State: linkUnknown, Words: unknown.Words}
	case pass != nil:
		return LinkLine{Link: l, State: linkHolds, Words: pass.Words}
	}
	return LinkLine{Link: l, State: linkAbsent}
}

// passed returns the first pass of a check, or nil.
func (r *Report) passed(id string) *explain.Finding {
	return r.first(func(f explain.Finding) bool { return f.ID == id && f.Status == explain.Pass })
}

// entries adds the records to enter, if one of the checks failed for lack of them.
func (r *Report) entries(f *explain.Facts, want []service.Record, ids ...string) {
	x := r.failed(ids...)
	if x == nil || !x.Severity.AtLeast(explain.Error) {
		return
	}
	var servers []string
	if z := f.ZoneAt(f.Zone); z != nil {
		names, _ := iterate.Join(z.ParentNS)
		servers = words.Each(names, words.Name)
	}
	for _, w := range want {
		for _, d := range w.Data {
			r.Entries = append(r.Entries, Entry{Zone: words.Name(f.Zone), Host: service.HostField(w.Owner, f.Zone),
				Type: w.Type.String(), Value: service.Typed(w.Type, d), TTL: w.TTL, Actor: explain.DNSHost,
				Servers: servers, Visible: x.Visible})
		}
	}
}

// serviceWords returns what a working service was seen to do.
func (r *Report) serviceWords() string {
	var said []string
	for _, l := range r.Links {
		if l.State != linkHolds {
			continue
		}
		switch l.Link {
		case explain.LinkDNS:
			said = append(said, "leads to the service")
		case explain.LinkCertificate:
			said = append(said, "has a valid certificate")
		case explain.LinkBackend:
			if r.passed("HTTP02") != nil {
				said = append(said, "is answered by a backend")
			}
		}
	}
	if len(said) == 0 {
		return "has no broken link"
	}
	return words.List(said)
}

// links writes the links and the records to enter.
func (p *page) links() {
	p.part("From the object to the page", rowsOf(p.r.Links, LinkLine.row))
	if len(p.r.Entries) > 0 {
		p.part("Enter at the DNS host", append([][]string{entryHead}, rowsOf(p.r.Entries, Entry.row)...))
		p.wrap("  ", "  ", p.r.Entries[0].who(p.r.At))
	}
}

// links writes the same as Markdown.
func (d *document) links() {
	cells := func(row []string) []string { return words.Each(row, md) }
	d.table("From the object to the page", []string{"link", "state", "what"}, rowsOf(d.r.Links, func(l LinkLine) []string {
		return cells(l.row())
	}))
	if len(d.r.Entries) > 0 {
		d.table("Enter at the DNS host", entryHead, rowsOf(d.r.Entries, func(e Entry) []string { return cells(e.row()) }))
		fmt.Fprintf(d, "\n%s\n", md(d.r.Entries[0].who(d.r.At)))
	}
}

func (l LinkLine) row() []string { return []string{string(l.Link), l.State, short(l.Words)} }

var entryHead = []string{"zone", "host", "type", "value", "TTL"}

func (e Entry) row() []string { return []string{e.Zone, e.Host, e.Type, e.Value, fmt.Sprint(e.TTL)} }

// who says who can enter the record, and when everyone sees it.
func (e Entry) who(now time.Time) string {
	said := fmt.Sprintf("Who: the person who manages %s at its DNS host", e.Zone)
	if len(e.Servers) > 0 {
		said += fmt.Sprintf(", which has the nameservers %s", words.Some(e.Servers))
	}
	said += "."
	if !e.Visible.IsZero() {
		said += " If it is entered now, everyone sees it by " + words.Moment(e.Visible, now) + "."
	}
	return said
}

// short returns the first sentence of a text.
func short(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return s
}

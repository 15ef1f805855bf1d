package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// LinkLine is the state of one link between the objects of a service and its page.
type LinkLine struct {
	Link  explain.ServiceLink `json:"link"`
	State string              `json:"state"` // one of the states below
	Words string              `json:"words,omitempty"`
}

// The states of a link.
const (
	linkHolds   = "holds"
	linkBroken  = "broken"
	linkWaits   = "not judged yet" // a link before it is broken
	linkUnknown = "unknown"
	linkAbsent  = "not checked" // no objects, or no connection was made
)

// Entry is a record to enter at a DNS host, as its form wants it.
type Entry struct {
	Zone  string `json:"zone"`
	Host  string `json:"host"` // relative to the zone; "@" for the zone itself
	Type  string `json:"type"`
	Value string `json:"value"`
	TTL   uint32 `json:"ttl"`
}

// service adds the links of a service and the records to enter. Findings of links after the first broken one become
// unknown: what they show may be the result of the broken link.
func (r *Report) service(f *explain.Facts) {
	if f.Service == nil {
		return
	}
	r.host = f.Service.Host
	broken := r.brokenLink()
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
	if r.failed("SVC20", "SVC21", "SVC25", "OWN01") != nil {
		r.entries(f)
	}
}

// statusOrder orders failures before unknown results before passes.
func statusOrder(f explain.Finding) int {
	return slices.Index([]explain.Status{explain.Fail, explain.NotKnown, explain.Pass}, f.Status)
}

// brokenLink returns the first link with a failure, or "".
func (r *Report) brokenLink() explain.ServiceLink {
	for _, l := range explain.ServiceLinks {
		if r.first(func(f explain.Finding) bool {
			return f.Status == explain.Fail && f.Severity.AtLeast(explain.Error) && explain.ServiceLinkOf(f.ID) == l
		}) != nil {
			return l
		}
	}
	return ""
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
	case fail != nil && fail.Severity.AtLeast(explain.Error):
		return LinkLine{Link: l, State: linkBroken, Words: fail.Words}
	case broken != "" && l.After(broken) && (unknown != nil || pass != nil):
		return LinkLine{Link: l, State: linkWaits}
	case unknown != nil && pass == nil:
		return LinkLine{Link: l, State: linkUnknown, Words: unknown.Words}
	case pass != nil:
		return LinkLine{Link: l, State: linkHolds, Words: pass.Words}
	}
	return LinkLine{Link: l, State: linkAbsent}
}

// entries adds the records to enter.
func (r *Report) entries(f *explain.Facts) {
	want := explain.ExpectedRecords(f)
	if r.failed("OWN01") != nil {
		want = []service.Record{*f.Service.Proof}
	}
	for _, w := range want {
		for _, d := range w.Data {
			r.Entries = append(r.Entries, Entry{Zone: words.Name(f.Zone), Host: service.HostField(w.Owner, f.Zone),
				Type: w.Type.String(), Value: d, TTL: w.TTL})
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
			said = append(said, "is answered by a backend")
		}
	}
	if len(said) == 0 {
		return "has no broken link"
	}
	return words.List(said)
}

// links writes the links and the records to enter.
func (p *page) links() {
	p.part("From the object to the page", rowsOf(p.r.Links, func(l LinkLine) []string {
		return []string{string(l.Link), l.State, short(l.Words)}
	}))
	if len(p.r.Entries) > 0 {
		rows := [][]string{{"zone", "host", "type", "value", "TTL"}}
		for _, e := range p.r.Entries {
			rows = append(rows, []string{e.Zone, e.Host, e.Type, e.Value, fmt.Sprint(e.TTL)})
		}
		p.part("Enter at the DNS host", rows)
	}
}

// short returns the first sentence of a text.
func short(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	return s
}

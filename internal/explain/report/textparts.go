package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// negative explains the negative TTL, because users often query a new name too early.
func (p *page) negative() {
	n := p.r.Negative
	if n == nil {
		return
	}
	p.title(fmt.Sprintf("New records: \"does not exist\" is remembered for %s", words.Seconds(n.TTL)))
	for _, w := range n.Words {
		p.wrap("  ", "  ", w)
	}
}

// answerRows returns a row for each alias and for each set at the end: name, record, TTL, zone, and the number of
// servers that have it.
func answerRows(r *Report) (rows [][]string) {
	for _, h := range r.Chain {
		agree := fmt.Sprintf("%d of %s", h.Agree, words.Count(h.Servers, "server", "servers"))
		rows = append(rows, []string{words.Name(h.From), h.Type + " " + words.Name(h.To), "TTL " + words.Seconds(h.TTL),
			"zone " + words.Name(h.Zone), agree})
	}
	for _, o := range r.Outcomes {
		// A type without records is a result too.
		if len(o.Sets) == 0 {
			rows = append(rows, []string{words.Name(o.End), o.Type.String() + ": " + outcome(o.Result), "",
				"zone " + words.Name(o.Zone)})
		}
		for _, s := range o.Sets {
			rows = append(rows, []string{words.Name(s.Name), s.Type.String() + " " + strings.Join(s.Data, ", "),
				"TTL " + words.Seconds(s.TTL), "zone " + words.Name(o.Zone)})
		}
	}
	return rows
}

// differences groups servers by their answer: a row for each server would hide which one differs.
func (p *page) differences() {
	var rows [][]string
	for _, d := range p.r.Differences {
		rows = append(rows, []string{d.Question, d.Manner})
		for _, g := range d.Groups {
			rows = append(rows, []string{"  " + g.Answer, words.List(g.Servers)})
		}
	}
	p.part("Where answers differ", rows)
}

// caches writes the state of each resolver, and what the computed time does not cover.
func (p *page) caches() {
	if len(p.r.Caches) == 0 {
		return
	}
	p.title("Resolvers")
	rows := [][]string{{"RESOLVER", "ADDRESS", "REGION", "STATE", "UNTIL", "ANSWER"}}
	for _, c := range p.r.Caches {
		rows = append(rows, []string{c.Resolver, c.Addr, c.Region, c.state(), c.until(p.r.At), c.remark()})
	}
	p.table(rows)
	if n, at := cachesSeen(p.r); n > 0 {
		p.wrap("  ", "  ", fmt.Sprintf("At least %s answered behind %s; an address can have many more.",
			words.Count(n, "cache", "caches"), words.Count(at, "address", "addresses")))
	}
	if s := p.r.Safe; s != nil {
		p.wrap("  ", "  ", s.Summary+basis(s))
		for _, n := range s.NotCovered {
			p.line(faint, "  not covered: "+n)
		}
	}
}

// until returns when the resolver drops its older answer, or "" if it has none.
func (c CacheLine) until(now time.Time) string {
	if c.Until.IsZero() {
		return ""
	}
	return words.Moment(c.Until, now)
}

// remark returns the answer with its explanation.
func (c CacheLine) remark() string {
	text := c.Answer
	if c.Why != "" {
		text = strings.TrimSpace(text + " (" + c.Why + ")")
	}
	if c.Flush != "" {
		text += "; empty its cache: " + c.Flush
	}
	return text
}

// cachesSeen returns the least number of caches that answered, and the number of their addresses.
func cachesSeen(r *Report) (caches, addresses int) {
	for _, c := range r.Caches {
		if c.Caches > 0 {
			caches, addresses = caches+c.Caches, addresses+1
		}
	}
	return caches, addresses
}

// plan writes the steps of a change, each with its time and the reason for it.
func (p *page) plan() {
	if p.r.Plan == nil {
		return
	}
	p.title("How to change it without an interruption")
	p.wrap("  ", "  ", p.r.Plan.Summary)
	for _, s := range p.r.Plan.Steps {
		text := s.Text
		if s.Because != "" {
			text += " (" + s.Because + ")"
		}
		p.wrap("  "+s.At.UTC().Format("2006-01-02 15:04 UTC")+"  ", strings.Repeat(" ", 24), text)
	}
}

// marks has NO in upper case, so that the missing entry is seen in a column of "yes".
var marks = map[explain.Fact]string{explain.Yes: "yes", explain.No: "NO", explain.Unknown: "?", explain.Unasked: "-"}

// delegation writes the nameservers with the TTLs of both NS sets, because resolvers may use either set.
func (p *page) delegation() {
	d := p.r.Delegation
	if d == nil {
		return
	}
	p.title("Nameservers of " + words.Name(d.Zone))
	p.nameservers(d.Servers)
	fmt.Fprintf(p, "  TTL of the NS records: %s at the parent, %s in the zone\n", d.nsTTL(0), d.nsTTL(1))
}

// nsTTL returns the TTL of the NS records at the parent (0) or in the zone (1), if they were read.
func (d *Delegation) nsTTL(i int) string {
	read := func(s Nameserver) bool { return [2]explain.Fact{s.Parent, s.Child}[i] != explain.Unknown }
	if !slices.ContainsFunc(d.Servers, read) {
		return "not known"
	}
	return words.Seconds(d.NSTTL[i])
}

// planned writes the planned nameservers.
func (p *page) planned() {
	if len(p.r.Planned) > 0 {
		p.title("Planned nameservers")
		p.nameservers(p.r.Planned)
	}
}

// nameservers writes where each nameserver is listed, and the state of each of its addresses.
func (p *page) nameservers(all []Nameserver) {
	rows := [][]string{{"NAME", "REGISTRY", "PARENT", "CHILD", "ADDRESS", "STATE", "SERIAL", "TIME"}}
	for _, s := range all {
		row := []string{words.Name(s.Name), marks[s.Registry], marks[s.Parent], marks[s.Child]}
		for _, a := range s.Addrs {
			serial, rtt := "", ""
			if a.Serial > 0 {
				serial = fmt.Sprint(a.Serial)
			}
			if a.RTT > 0 {
				rtt = words.Length(a.RTT)
			}
			rows = append(rows, append(row, a.Addr, a.State, serial, rtt))
			// Name and lists are printed once, in the row of the first address.
			row = []string{"", "", "", ""}
		}
		if len(s.Addrs) == 0 {
			rows = append(rows, append(row, "-", "no address"))
		}
	}
	p.table(rows)
}

// registration explains the statuses in words: registrars show the same ones under other names.
func (p *page) registration() {
	r := p.r.Registration
	if r == nil {
		return
	}
	p.title("Registration of " + words.Name(r.Domain))
	p.table(r.rows())
	for _, s := range r.Statuses {
		p.wrap("  "+clean(s.Value)+": ", "    ", s.Meaning)
	}
}

// rows returns the facts of a registration, except its statuses.
func (r *Registration) rows() [][]string {
	rows := [][]string{{"state", strings.TrimSpace(r.State + " " + r.Problem)}}
	if !r.Owner.IsZero() {
		rows = append(rows, []string{"whose",
			fmt.Sprintf("names below %s belong to different customers: %s belongs to one of them", words.Name(r.Owner.Parent()),
				words.Name(r.Owner))})
	}
	if r.Registrar != "" {
		rows = append(rows, []string{"registrar", r.Registrar})
	}
	if !r.Created.IsZero() {
		rows = append(rows, []string{"created", r.Created.UTC().Format("2006-01-02")})
	}
	if !r.Expires.IsZero() {
		when := "in " + words.Count(r.Days, "day", "days")
		switch {
		case r.Days == 0:
			when = "within a day"
		case r.Days < 0:
			when = words.Count(-r.Days, "day", "days") + " ago"
		}
		rows = append(rows, []string{"expires", r.Expires.UTC().Format("2006-01-02") + ", " + when})
	}
	return rows
}

// foot writes the number of queries, and the limits that make the report incomplete.
func (p *page) foot() {
	r := p.r
	fmt.Fprintln(p)
	text := fmt.Sprintf("%s in %s; %s passed, %s could not be run.", words.Count(r.Queries, "query", "queries"),
		words.Length(r.Took),
		words.Count(r.Counts.Passed, "check", "checks"), words.Count(r.Counts.Unknown, "check", "checks"))
	if len(r.Unfinished) > 0 {
		text += " Not complete: " + strings.Join(r.Unfinished, ", ") + "."
	}
	for _, family := range r.NoRoute {
		text += fmt.Sprintf(" No queries over %s: this machine has no route.", family)
	}
	p.line(faint, text)
}

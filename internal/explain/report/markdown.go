package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// escapeMarkdown escapes text of third parties in records, so that it does not become markup.
var escapeMarkdown = strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]",
	"\\]", "<", "&lt;", ">", "&gt;", "#", "\\#", "!", "\\!", "~", "\\~")

// md returns text of third parties as safe Markdown.
func md(s string) string { return escapeMarkdown.Replace(clean(s)) }

// document is the Markdown output of a report, before it is written.
type document struct {
	strings.Builder
	r *Report
}

// markdown writes the report for a ticket or a page, in the order of Text.
func (r *Report) markdown(w io.Writer) error {
	d := &document{r: r}
	fmt.Fprintf(d, "# %s: %s\n\n%s\n", md(words.Name(r.Target)), r.Verdict, md(r.Summary))
	d.links()
	d.steps()
	d.findings()
	d.negative()
	d.answer()
	d.caches()
	d.plan()
	d.delegation()
	soa := rowsOf(r.SOA, func(l Line) []string { return []string{l.Name, md(l.Value), md(l.Meaning)} })
	d.table("SOA, in words", []string{"field", "value", "meaning"}, soa)
	d.registration()
	evidence := rowsOf(r.Evidence, func(e Evidence) []string { return []string{e.ID, md(e.Dig), md(e.Result)} })
	d.table("Evidence", []string{"", "query", "result"}, evidence)
	fmt.Fprintf(d, "\nScanned at %s, %s in %s.\n", r.At.Format("2006-01-02 15:04:05 UTC"),
		words.Count(r.Queries, "query", "queries"), words.Length(r.Took))
	if len(r.Unfinished) > 0 {
		fmt.Fprintf(d, "\nNot complete: %s.\n", md(strings.Join(r.Unfinished, ", ")))
	}
	for _, family := range r.NoRoute {
		fmt.Fprintf(d, "\nNo queries over %s: this machine has no route.\n", family)
	}
	_, err := io.WriteString(w, d.String())
	return err
}

// table writes rows under a title, if there are any. The caller escapes cells with text of third parties.
func (d *document) table(title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(d, "\n## %s\n\n| %s |\n|%s\n", title, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		fmt.Fprintf(d, "| %s |\n", strings.Join(row, " | "))
	}
}

// steps comes before the evidence, because most readers of a ticket want to know only what to do.
func (d *document) steps() {
	if len(d.r.Do) > 0 {
		d.WriteString("\n## What to do\n\n")
	}
	for i, s := range d.r.Do {
		fmt.Fprintf(d, "%d. %s %s\n", i+1, md(s.words(d.r.At)), strings.Join(s.Findings, " "))
	}
}

// findings writes failures and unknown results. Passed checks are only counted: a ticket needs the problems.
func (d *document) findings() {
	var rows [][]string
	for _, f := range d.r.Findings {
		if f.Status != explain.Pass {
			rows = append(rows, []string{f.ID, string(f.Severity), string(f.Status), md(f.Words)})
		}
	}
	d.table("Findings", []string{"check", "severity", "result", "what"}, rows)
	fmt.Fprintf(d, "\n%s passed.\n", words.Count(d.r.Counts.Passed, "check", "checks"))
}

// negative comes before the answer: with a missing name, it is the reason why a new record is not visible yet.
func (d *document) negative() {
	if n := d.r.Negative; n != nil {
		fmt.Fprintf(d, "\n## New records: \"does not exist\" is remembered for %s\n\n%s\n", words.Seconds(n.TTL),
			md(strings.Join(n.Words, " ")))
	}
}

// answer writes the aliases and records, and the questions to which servers give different answers.
func (d *document) answer() {
	var rows [][]string
	for _, row := range answerRows(d.r) {
		// The columns have headings here, so the prefixes of the text output are removed.
		row[2], row[3] = strings.TrimPrefix(row[2], "TTL "), strings.TrimPrefix(row[3], "zone ")
		for i := range row {
			row[i] = md(row[i])
		}
		rows = append(rows, append(row, make([]string, 5-len(row))...))
	}
	d.table("Answer", []string{"name", "record", "TTL", "zone", "servers that have it"}, rows)
	rows = nil
	for _, x := range d.r.Differences {
		for _, g := range x.Groups {
			rows = append(rows, []string{md(x.Question), x.Manner, md(g.Answer), md(words.List(g.Servers))})
		}
	}
	d.table("Where answers differ", []string{"question", "how", "answer", "servers"}, rows)
}

func (d *document) caches() {
	rows := rowsOf(d.r.Caches, func(c CacheLine) []string {
		return []string{fmt.Sprintf("%s (%s)", md(c.Resolver), c.Addr), c.state(), c.until(d.r.At), md(c.remark())}
	})
	d.table("Resolvers", []string{"resolver", "state", "until", "answer"}, rows)
	if s := d.r.Safe; s != nil && len(rows) > 0 {
		fmt.Fprintf(d, "\n%s\n", md(s.Summary+basis(s)))
	}
}

// plan writes times in UTC: the readers of a ticket may be in several time zones.
func (d *document) plan() {
	if d.r.Plan == nil {
		return
	}
	rows := rowsOf(d.r.Plan.Steps, func(s safeat.Step) []string {
		return []string{s.At.UTC().Format("2006-01-02 15:04 UTC"), md(s.Text), md(s.Because)}
	})
	d.table("How to change it without an interruption", []string{"when", "what", "why not earlier"}, rows)
}

func (d *document) delegation() {
	if d.r.Delegation != nil {
		d.nameservers("Nameservers of "+md(words.Name(d.r.Delegation.Zone)), d.r.Delegation.Servers)
	}
	d.nameservers("Planned nameservers", d.r.Planned)
}

// nameservers writes one row for each nameserver, with all of its addresses in one cell.
func (d *document) nameservers(title string, all []Nameserver) {
	rows := rowsOf(all, func(s Nameserver) []string {
		addrs := words.Each(s.Addrs, func(a ServerLine) string { return strings.TrimSpace(a.Addr + " " + a.State) })
		return []string{md(words.Name(s.Name)), marks[s.Registry], marks[s.Parent], marks[s.Child], md(words.List(addrs))}
	})
	d.table(title, []string{"name", "registry", "parent", "child", "addresses"}, rows)
}

func (d *document) registration() {
	r := d.r.Registration
	if r == nil {
		return
	}
	rows := append(rowsOf(r.rows(), func(row []string) []string { return []string{row[0], md(row[1])} }),
		rowsOf(r.Statuses, func(s Line) []string { return []string{md(s.Value), md(s.Meaning)} })...)
	d.table("Registration of "+md(words.Name(r.Domain)), []string{"", ""}, rows)
}

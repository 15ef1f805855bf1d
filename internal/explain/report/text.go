package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// TextOptions controls the text output.
type TextOptions struct {
	Color bool
	All   bool // also shows checks that passed, and all evidence
	Width int  // width of lines; default 100
}

// page is the text output of a report, before it is written.
type page struct {
	bytes.Buffer
	r *Report
	TextOptions
}

// Text writes the report for people: the verdict in the first line, then what to do, then the findings and the
// evidence.
func (r *Report) Text(w io.Writer, o TextOptions) error {
	if o.Width < 40 {
		o.Width = 100
	}
	p := &page{r: r, TextOptions: o}
	p.line(verdictColor[r.Verdict], r.Summary)
	p.links()
	p.steps()
	p.findings("Problems", explain.Fail)
	p.findings("Could not be checked", explain.NotKnown)
	if o.All {
		p.findings("Passed", explain.Pass)
	}
	p.negative()
	if len(r.Outcomes) > 0 {
		p.part("Answer", answerRows(r))
	}
	p.differences()
	p.caches()
	p.plan()
	p.delegation()
	p.planned()
	p.part("SOA, in words", rowsOf(r.SOA, func(l Line) []string { return []string{l.Name, l.Value, l.Meaning} }))
	p.registration()
	if o.All {
		row := func(e Evidence) []string { return []string{e.ID, e.Dig, e.Result, words.Length(e.RTT)} }
		p.part("Evidence", rowsOf(r.Evidence, row))
	}
	p.foot()
	_, err := w.Write(p.Bytes())
	return err
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
	faint  = "2"
)

var verdictColor = map[Verdict]string{Working: green, Soon: yellow, NotWorking: red, Undecided: yellow}

var severityColor = map[explain.Severity]string{explain.Critical: red, explain.Error: red, explain.Warning: yellow}

// paint adds a color, unless the output is not a terminal or colors are off.
func (p *page) paint(color, s string) string {
	if !p.Color || color == "" || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// clean replaces control and format characters. Records contain text of third parties, which must not control the
// terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			return '?'
		}
		return r
	}, s)
}

// line writes one line. It cleans the text before it adds color codes, which clean would remove.
func (p *page) line(color, s string) { fmt.Fprintln(p, p.paint(color, clean(s))) }

func (p *page) title(s string) { fmt.Fprintf(p, "\n%s\n", p.paint(bold, s)) }

// wrap writes a paragraph. The first line starts with head, and the others with indent.
func (p *page) wrap(head, indent, s string) {
	width := p.Width - len(indent)
	if !strings.Contains(head, "\x1b") {
		width = p.Width - len(head) // color codes have no width: a head with colors is as wide as the indent
	}
	text, lead := "", head
	for _, word := range strings.Fields(clean(s)) {
		if text != "" && len(text)+1+len(word) > width {
			fmt.Fprintln(p, lead+text)
			text, lead, width = "", indent, p.Width-len(indent)
		}
		if text != "" {
			text += " "
		}
		text += word
	}
	if text != "" {
		fmt.Fprintln(p, lead+text)
	}
}

// table writes rows in columns.
func (p *page) table(rows [][]string) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = clean(row[i])
		}
		fmt.Fprintln(w, "  "+strings.TrimRight(strings.Join(row, "\t"), "\t "))
	}
	_ = w.Flush() // into memory
}

// part writes rows under a title, if there are any.
func (p *page) part(title string, rows [][]string) {
	if len(rows) > 0 {
		p.title(title)
		p.table(rows)
	}
}

// rowsOf returns the rows of a table, one for each element of all.
func rowsOf[T any](all []T, row func(T) []string) (out [][]string) {
	for _, x := range all {
		out = append(out, row(x))
	}
	return out
}

// steps writes the first three steps: findings are sorted, so these matter most. With All it writes every step.
func (p *page) steps() {
	if len(p.r.Do) == 0 {
		return
	}
	p.title("What to do")
	for i, s := range p.r.Do {
		if i == 3 && !p.All {
			p.line(faint, fmt.Sprintf("  and %s for the problems below; --all shows them",
				words.Count(len(p.r.Do)-3, "more thing", "more things")))
			return
		}
		p.wrap(fmt.Sprintf("  %d. ", i+1), "     ", s.words(p.r.At)+" ["+strings.Join(s.Findings, " ")+"]")
	}
}

// words says what to do, by which party, and when everyone sees it.
func (s Step) words(now time.Time) string {
	text := s.Text
	if s.Actor == explain.Nobody {
		text += " (nobody has to do anything)"
	} else if s.Actor != "" {
		text += fmt.Sprintf(" (who: %s)", s.Actor)
	}
	if !s.Visible.IsZero() {
		text += " Everyone sees it by " + words.Moment(s.Visible, now) + "."
	}
	return text
}

// findings writes the findings of one status. If the network intercepts DNS, nearly all checks are unknown for the same
// reason, which is written once.
func (p *page) findings(title string, status explain.Status) {
	if status == explain.NotKnown && p.r.failed(intercepted) != nil && !p.All {
		p.title(title)
		p.line(faint, "  all checks that use DNS, because a device on the network path answers instead of the servers; "+
			"see VAN01")
		return
	}
	first := true // the title is written only if a finding follows
	for _, f := range p.r.Findings {
		if f.Status != status || status == explain.Fail && f.Severity == explain.Info && !p.All {
			continue
		}
		if first {
			p.title(title)
			first = false
		}
		color, label := severityColor[f.Severity], string(f.Severity)
		if status != explain.Fail {
			color, label = faint, string(status)
		}
		p.wrap(fmt.Sprintf("  %s %s  ", p.paint(color, fmt.Sprintf("%-8s", label)), f.ID), "                  ", f.Words)
		if status == explain.Fail && len(f.Evidence) > 0 {
			ids := words.Each(f.Evidence[:min(len(f.Evidence), 6)], exchangeID)
			p.line(faint, "                  "+f.Subject+"; seen in "+strings.Join(ids, " "))
		}
	}
}

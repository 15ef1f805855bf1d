package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
)

// Formats are the ways a report can be written.
var Formats = []string{"text", "json", "markdown", "junit"}

// Write writes the report in one of the Formats.
func (r *Report) Write(w io.Writer, format string, o TextOptions) error {
	switch format {
	case "text":
		return r.Text(w, o)
	case "json":
		return r.JSON(w)
	case "markdown":
		return r.Markdown(w)
	case "junit":
		return r.JUnit(w)
	}
	return fmt.Errorf("%q is not a format; there are %s", format, list(Formats))
}

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// mark keeps what strangers wrote into records from becoming markup.
var mark = strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "#", "\\#", "!", "\\!", "~", "\\~")

func md(s string) string { return mark.Replace(clean(s)) }

// Markdown writes the report for a ticket or a page.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\n%s\n", md(bare(r.Target)), r.Verdict, md(r.Summary))
	if len(r.Do) > 0 {
		b.WriteString("\n## What to do\n\n")
	}
	for i, s := range r.Do {
		fmt.Fprintf(&b, "%d. %s (who: %s) %s\n", i+1, md(s.Text), s.Actor, strings.Join(s.Findings, " "))
	}
	b.WriteString("\n## Findings\n\n| check | severity | result | what |\n|---|---|---|---|\n")
	for _, f := range r.Findings {
		if f.Status != explain.Pass {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.ID, f.Severity, f.Status, md(f.Words))
		}
	}
	fmt.Fprintf(&b, "\n%s passed.\n", count(r.Counts.Passed, "check", "checks"))
	if len(r.Caches) > 0 {
		b.WriteString("\n## Resolvers\n\n| resolver | state | until | answer |\n|---|---|---|---|\n")
	}
	for _, c := range r.Caches {
		until := ""
		if !c.Until.IsZero() {
			until = moment(c.Until, r.At)
		}
		fmt.Fprintf(&b, "| %s (%s) | %s | %s | %s |\n", md(c.Resolver), c.Addr, c.State, until, md(c.Answer))
	}
	if len(r.Evidence) > 0 {
		b.WriteString("\n## Evidence\n\n| | asked | result |\n|---|---|---|\n")
	}
	for _, e := range r.Evidence {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.ID, md(e.Dig), md(e.Result))
	}
	fmt.Fprintf(&b, "\nAsked at %s, %s in %s.\n", r.At.Format("2006-01-02 15:04:05 UTC"), count(r.Queries, "query", "queries"), Length(r.Took))
	_, err := io.WriteString(w, b.String())
	return err
}

type suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr"`
	Stamp    string   `xml:"timestamp,attr"`
	Cases    []kase   `xml:"testcase"`
}

type kase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Failure *failure `xml:"failure,omitempty"`
	Skipped *failure `xml:"skipped,omitempty"`
}

type failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report for continuous integration: a check is a test, and one that could not be made is skipped. Notices
// are no failures.
func (r *Report) JUnit(w io.Writer) error {
	s := suite{Name: fmt.Sprintf("nameplane %s %s", r.Kind, bare(r.Target)), Tests: len(r.Findings), Time: fmt.Sprintf("%.3f", r.Took.Seconds()),
		Stamp: r.At.Format("2006-01-02T15:04:05")}
	for _, f := range r.Findings {
		c := kase{Class: "nameplane." + string(r.Kind), Name: strings.TrimSpace(f.ID + " " + clean(f.Subject))}
		switch {
		case f.Status == explain.NotKnown:
			c.Skipped = &failure{Message: clean(f.Words)}
			s.Skipped++
		case f.Status == explain.Fail && f.Severity.AtLeast(explain.Warning):
			c.Failure = &failure{Message: clean(f.Words), Type: string(f.Severity), Text: clean(f.Fix)}
			s.Failures++
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

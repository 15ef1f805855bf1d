package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// Calendar is the format that contains only the plan. Writing it returns ErrNoPlan if there is no plan.
const Calendar = "ics"

// Formats are the output formats of a report.
var Formats = []string{"text", "json", "markdown", "junit", Calendar}

// Write writes the report in one of the Formats.
func (r *Report) Write(w io.Writer, format string, o TextOptions) error {
	switch format {
	case "text":
		return r.Text(w, o)
	case "json":
		return r.JSON(w)
	case "markdown":
		return r.markdown(w)
	case "junit":
		return r.junit(w)
	case Calendar:
		return r.Calendar(w)
	}
	return fmt.Errorf("%q is not a format; the formats are %s", format, words.List(Formats))
}

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // keep "<" and "&" readable in a terminal
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// suite, testCase and failure are the elements of a JUnit XML file.
type suite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Time     string     `xml:"time,attr"`
	Stamp    string     `xml:"timestamp,attr"`
	Cases    []testCase `xml:"testcase"`
}

// testCase is one check. CI systems group the cases by Class and compare them between runs by Name.
type testCase struct {
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

// junit writes the report for continuous integration. A check is a test, and an unknown result is a skipped test.
// Notices are not failures.
func (r *Report) junit(w io.Writer) error {
	s := suite{Name: fmt.Sprintf("nameplane %s %s", r.Kind, words.Name(r.Target)), Tests: len(r.Findings),
		Time:  fmt.Sprintf("%.3f", r.Took.Seconds()),
		Stamp: r.At.Format("2006-01-02T15:04:05")}
	for _, f := range r.Findings {
		c := testCase{Class: "nameplane." + string(r.Kind), Name: strings.TrimSpace(f.ID + " " + clean(f.Subject))}
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

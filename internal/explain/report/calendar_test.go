package report_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
)

// component is a component of a calendar, with its properties and subcomponents.
type component struct {
	name  string
	props map[string]string
	parts []*component
}

// parse parses a calendar by the rules of RFC 5545 §3.1 and §3.6: lines end with CRLF and have at most 75 bytes, a line
// that starts with a space continues the one before, and components are nested.
func parse(t *testing.T, text string) *component {
	t.Helper()
	if !strings.HasSuffix(text, "\r\n") || strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		t.Fatal("lines do not end with CRLF")
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(line) > 75 || !strings.Contains(text, line) || strings.ToValidUTF8(line, "") != line {
			t.Errorf("a line of %d bytes, or with half a character: %q", len(line), line)
		}
	}
	top := &component{props: map[string]string{}}
	open := []*component{top}
	for line := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n ", ""), "\r\n"), "\r\n") {
		name, value, ok := strings.Cut(line, ":")
		here := open[len(open)-1]
		switch {
		case !ok || name == "":
			t.Fatalf("this is no property: %q", line)
		case name == "BEGIN":
			c := &component{name: value, props: map[string]string{}}
			here.parts = append(here.parts, c)
			open = append(open, c)
		case name == "END":
			if here.name != value || len(open) == 1 {
				t.Fatalf("%s ends within %s", value, here.name)
			}
			open = open[:len(open)-1]
		case here.props[name] != "":
			t.Errorf("%s has %s twice", here.name, name)
		default:
			here.props[name] = value
		}
	}
	if len(open) != 1 || len(top.parts) != 1 || top.parts[0].name != "VCALENDAR" {
		t.Fatalf("this is no calendar: %+v", top)
	}
	return top.parts[0]
}

// text unescapes a TEXT value (RFC 5545 §3.3.11).
func text(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == 'n' || s[i] == 'N' {
				b.WriteByte('\n')
				continue
			}
		} else if s[i] == ';' || s[i] == ',' {
			t.Errorf("%q has a %q that would end it", s, s[i])
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func moment(t *testing.T, s string) time.Time {
	t.Helper()
	at, err := time.Parse("20060102T150405Z", s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func calendar(t *testing.T, f *explain.Facts) (*report.Report, *component) {
	t.Helper()
	r := report.Make(f, nil)
	var out bytes.Buffer
	if err := r.Calendar(&out); err != nil {
		t.Fatal(err)
	}
	return r, parse(t, out.String())
}

func TestCalendar(t *testing.T) {
	f, _ := story(explain.Analyze)
	r, c := calendar(t, f)
	if c.props["VERSION"] != "2.0" || c.props["PRODID"] == "" || len(c.parts) != len(r.Plan.Steps) {
		t.Fatalf("%d events for %d steps, %v", len(c.parts), len(r.Plan.Steps), c.props)
	}
	seen := map[string]bool{}
	for i, s := range r.Plan.Steps {
		e := c.parts[i]
		if e.name != "VEVENT" || seen[e.props["UID"]] || !strings.Contains(e.props["UID"], "@") {
			t.Errorf("%s has the UID %q", e.name, e.props["UID"])
		}
		seen[e.props["UID"]] = true
		if start, end := moment(t, e.props["DTSTART"]),
			moment(t, e.props["DTEND"]); !start.Equal(s.At) || !end.After(start) || s.Do == safeat.Wait && !end.Equal(s.Until) {
			t.Errorf("%s is from %v to %v", s.Do, start, end)
		}
		if !moment(t, e.props["DTSTAMP"]).Equal(f.At) || !strings.HasSuffix(e.props["SUMMARY"], ": www.example.org") {
			t.Errorf("%v", e.props)
		}
		if got := text(t, e.props["DESCRIPTION"]); !strings.HasPrefix(got, s.Text) || !strings.Contains(got, s.Because) {
			t.Errorf("%q, want %q", got, s.Text)
		}
		if alarms := len(e.parts); (alarms == 1) == (s.Do == safeat.Wait) {
			t.Errorf("%s has %d alarms", s.Do, alarms)
		}
	}
}

// TestCalendarAgain checks that a newer plan replaces the older one for the same change, and no other plan.
func TestCalendarAgain(t *testing.T) {
	uids := func(f *explain.Facts) (out []string, sequence string) {
		_, c := calendar(t, f)
		for _, e := range c.parts {
			out, sequence = append(out, e.props["UID"]), e.props["SEQUENCE"]
		}
		return out, sequence
	}
	f, _ := story(explain.Analyze)
	first, one := uids(f)
	f.At = f.At.Add(time.Hour)
	f.Chain[0].TTL = 7200
	again, two := uids(f)
	if strings.Join(first, " ") != strings.Join(again, " ") || one >= two {
		t.Errorf("UIDs are %v and %v, sequences %s and %s", first, again, one, two)
	}
	f.PlanNS = []dnsname.Name{name("ns1.example.net"), name("ns2.example.net")}
	moved, _ := uids(f)
	for _, u := range moved {
		if strings.Contains(strings.Join(first, " "), u) {
			t.Errorf("%s is in both", u)
		}
	}
	f.Kind = explain.Scan
	if scanned, _ := uids(f); strings.Join(scanned, " ") != strings.Join(moved, " ") {
		t.Errorf("scan has %v, analyze %v", scanned, moved)
	}
}

func TestCalendarHostile(t *testing.T) {
	f, _ := story(explain.Analyze)
	r := report.Make(f, nil)
	r.Plan.Steps[0].Text = "one; two, three\\four\r\nEND:VEVENT ünï\x1b" + strings.Repeat("€", 90)
	var out bytes.Buffer
	if err := r.Calendar(&out); err != nil {
		t.Fatal(err)
	}
	c := parse(t, out.String())
	if got := text(t, c.parts[0].props["DESCRIPTION"]); !strings.HasPrefix(got,
		"one; two, three\\four?\nEND:VEVENT ünï?€€") {
		t.Errorf("%q", got)
	}
	for _, kind := range []explain.Kind{explain.Scan, explain.Compare} {
		f, _ := story(kind)
		if err := report.Make(f, nil).Calendar(&out); !errors.Is(err, report.ErrNoPlan) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

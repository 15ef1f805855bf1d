package report

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// ErrNoPlan is the error for a report without a plan, which has nothing to put into a calendar.
var ErrNoPlan = errors.New(
	"there is no plan: the record to change is not known, or the command does not plan changes (use analyze or --plan-ns)")

// stepLength is the length of the calendar event of a step. Events for waiting last as long as the wait.
const stepLength = 15 * time.Minute

// titles are the titles of calendar events; the name follows.
var titles = map[safeat.Do]string{safeat.Lower: "Lower the TTL", safeat.Prepare: "Prepare",
	safeat.RemoveDS: "Remove the DS", safeat.Wait: "Wait", safeat.Make: "Make the change",
	safeat.Confirm: "Confirm", safeat.Raise: "Raise the TTL", safeat.AddDS: "Add the DS",
	safeat.Retire: "Switch the old servers off"}

// Calendar writes the plan as a calendar (RFC 5545), with an event for each step. The UID of a step is stable, so that
// a newer plan for the same change replaces the events of the older one.
func (r *Report) Calendar(w io.Writer) error {
	if r.Plan == nil || len(r.Plan.Steps) == 0 {
		return ErrNoPlan
	}
	c := &calendar{}
	c.line("BEGIN", "VCALENDAR")
	c.line("VERSION", "2.0")
	c.line("PRODID", "-//nameplane//explain//EN")
	c.line("CALSCALE", "GREGORIAN")
	times := map[safeat.Do]int{}
	for _, s := range r.Plan.Steps {
		times[s.Do]++
		c.event(r, s, times[s.Do])
	}
	c.line("END", "VCALENDAR")
	_, err := io.WriteString(w, c.String())
	return err
}

// calendar collects the lines of a calendar.
type calendar struct{ strings.Builder }

// event writes the nth step of a kind. Waiting needs no reminder, so it gets no alarm.
func (c *calendar) event(r *Report, s safeat.Step, n int) {
	end := s.At.Add(stepLength)
	if s.Do == safeat.Wait {
		end = s.Until
	}
	title := cmp.Or(titles[s.Do], string(s.Do))
	text := s.Text
	if s.Because != "" {
		text += " (" + s.Because + ")"
	}
	if s.Assumed {
		text += "\nThis time is based on assumptions; nameplane analyze lists them."
	}
	c.line("BEGIN", "VEVENT")
	c.line("UID", uid(r, s.Do, n))
	c.line("DTSTAMP", utc(r.At))
	c.line("SEQUENCE", fmt.Sprint(r.At.Unix()/60)) // calendars keep the event with the highest number
	c.line("DTSTART", utc(s.At))
	c.line("DTEND", utc(end))
	c.line("SUMMARY", escape(title+": "+words.Name(r.Target)))
	c.line("DESCRIPTION", escape(text))
	c.line("TRANSP", "TRANSPARENT")
	if s.Do != safeat.Wait {
		c.line("BEGIN", "VALARM")
		c.line("ACTION", "DISPLAY")
		c.line("DESCRIPTION", escape(title+": "+words.Name(r.Target)))
		c.line("TRIGGER", "PT0S")
		c.line("END", "VALARM")
	}
	c.line("END", "VEVENT")
}

// uid returns the UID of the nth step of a kind. It depends on the change, not on the date of the step.
func uid(r *Report, do safeat.Do, n int) string {
	sum := sha256.Sum256([]byte(
		strings.Join([]string{r.Target.String(), r.Plan.Subject, string(do), fmt.Sprint(n)}, "\n")))
	return fmt.Sprintf("%x@nameplane.invalid", sum[:12])
}

func utc(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// escaper escapes TEXT values (RFC 5545 §3.3.11).
var escaper = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\n", `\n`)

// escape cleans each line separately, because clean replaces line breaks.
func escape(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = clean(lines[i])
	}
	return escaper.Replace(strings.Join(lines, "\n"))
}

// maxLine is the length in bytes above which a line is folded (RFC 5545 §3.1).
const maxLine = 75

// line writes a property. It folds long lines, and never inside a UTF-8 character.
func (c *calendar) line(name, value string) {
	rest, most := name+":"+value, maxLine
	for len(rest) > most {
		cut := most
		for !utf8.RuneStart(rest[cut]) {
			cut--
		}
		c.WriteString(rest[:cut] + "\r\n ")
		rest, most = rest[cut:], maxLine-1 // the space of the continuation counts
	}
	c.WriteString(rest + "\r\n")
}

package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// Format is a flag for the output format: "text" or "json".
type Format string

func (f *Format) String() string { return string(*f) }
func (f *Format) Type() string   { return "FORMAT" }

// Set parses the value of the flag.
func (f *Format) Set(s string) error {
	if s != "text" && s != "json" {
		return fmt.Errorf("%q is not a format; use text or json", s)
	}
	*f = Format(s)
	return nil
}

// AddFlag adds --output to a command.
func (f *Format) AddFlag(cmd *cobra.Command) {
	*f = "text"
	cmd.Flags().VarP(f, "output", "o", "form of the output: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// JSON reports whether the output format is JSON.
func (f Format) JSON() bool { return f == "json" }

// Say prints a sentence about what was done.
func Say(cmd *cobra.Command, format string, a ...any) error {
	_, err := io.WriteString(cmd.OutOrStdout(), Printable(strings.TrimSuffix(fmt.Sprintf(format, a...), "\n"))+"\n")
	return err
}

// Say prints v as JSON, or in text format a sentence about what was done.
func (f Format) Say(cmd *cobra.Command, v any, format string, a ...any) error {
	if f.JSON() {
		return PrintJSON(cmd.OutOrStdout(), v)
	}
	return Say(cmd, format, a...)
}

// PrintJSON prints one value as indented JSON, with its fields in their order.
func PrintJSON(w io.Writer, v any) error {
	var compact, out bytes.Buffer
	e := json.NewEncoder(&compact)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	if err := json.Indent(&out, bytes.TrimSpace(compact.Bytes()), "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err := w.Write(out.Bytes())
	return err
}

// JSONList prints a JSON array item by item.
type JSONList struct {
	w     io.Writer
	begun bool
}

// NewJSONList returns an empty list.
func NewJSONList(w io.Writer) *JSONList { return &JSONList{w: w} }

// Add prints items.
func (l *JSONList) Add(items ...json.RawMessage) error {
	for _, item := range items {
		var out bytes.Buffer
		out.WriteString(map[bool]string{false: "[\n  ", true: ",\n  "}[l.begun])
		l.begun = true
		if err := json.Indent(&out, item, "  ", "  "); err != nil {
			return err
		}
		if _, err := l.w.Write(out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// End closes the array.
func (l *JSONList) End() error {
	text := "\n]\n"
	if !l.begun {
		text = "[]\n"
	}
	_, err := io.WriteString(l.w, text)
	return err
}

// Table prints rows in columns. It holds one batch of rows at a time, so a list of a million rows needs only the memory
// of one page. Columns grow from batch to batch and never shrink.
type Table struct {
	w      io.Writer
	widths []int
	rows   [][]string
}

// NewTable returns a table with a header row.
func NewTable(w io.Writer, head ...string) *Table {
	return &Table{w: w, rows: [][]string{head}, widths: make([]int, len(head))}
}

// Row adds a row; an empty cell is printed as "-".
func (t *Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = cmp.Or(Printable(c), "-")
	}
	t.rows = append(t.rows, cells)
}

// Flush prints the rows added since the last Flush.
func (t *Table) Flush() error {
	for _, r := range t.rows {
		for i, c := range r {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		for i, c := range r {
			b.WriteString(c)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

// Printable replaces control characters. Text from a server was written by others and must not control the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Listing prints a list that arrives in pages, as a table or as a JSON array.
type Listing struct {
	w     io.Writer
	json  *JSONList
	table *Table
	count int
}

// NewListing returns a listing whose table has this header.
func NewListing(w io.Writer, f Format, head ...string) *Listing {
	l := &Listing{w: w}
	if f.JSON() {
		l.json = NewJSONList(w)
	} else {
		l.table = NewTable(w, head...)
	}
	return l
}

// Page prints items. rows returns the table rows of an item.
func (l *Listing) Page(items []json.RawMessage, rows func(json.RawMessage) ([][]string, error)) error {
	l.count += len(items)
	if l.json != nil {
		return l.json.Add(items...)
	}
	for _, item := range items {
		lines, err := rows(item)
		if err != nil {
			return err
		}
		for _, cells := range lines {
			l.table.Row(cells...)
		}
	}
	if l.count == 0 {
		return nil
	}
	return l.table.Flush()
}

// End closes the list. Instead of an empty table it prints the sentence none.
func (l *Listing) End(err error, none string) error {
	switch {
	case err != nil:
		return err
	case l.json != nil:
		return l.json.End()
	case l.count == 0:
		_, err = fmt.Fprintln(l.w, none)
	}
	return err
}

// PrintPairs prints the non-empty fields of one object.
func PrintPairs(w io.Writer, pairs [][2]string) error {
	for _, p := range pairs {
		if p[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-12s %s\n", p[0], Printable(p[1])); err != nil {
			return err
		}
	}
	return nil
}

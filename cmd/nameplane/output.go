package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// format is the form of what is printed: "text" or "json".
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "FORMAT" }

// Set reads the value of the flag.
func (f *format) Set(s string) error {
	if s != "text" && s != "json" {
		return fmt.Errorf("%q is not a format; there are text and json", s)
	}
	*f = format(s)
	return nil
}

func (f *format) addFlag(cmd *cobra.Command) {
	*f = "text"
	cmd.Flags().VarP(f, "output", "o", "form of the output: text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f format) json() bool { return f == "json" }

// say prints a sentence about what was done.
func say(cmd *cobra.Command, format string, a ...any) error {
	_, err := io.WriteString(cmd.OutOrStdout(), printable(strings.TrimSuffix(fmt.Sprintf(format, a...), "\n"))+"\n")
	return err
}

// printJSON prints one value, indented, fields in the order they came.
func printJSON(w io.Writer, v any) error {
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

// jsonList prints a JSON array as its items come.
type jsonList struct {
	w     io.Writer
	begun bool
}

func (l *jsonList) add(items ...json.RawMessage) error {
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

func (l *jsonList) end() error {
	text := "\n]\n"
	if !l.begun {
		text = "[]\n"
	}
	_, err := io.WriteString(l.w, text)
	return err
}

// table prints rows in columns. It holds one batch of rows at a time, so that a list of a million rows needs no more memory
// than a page of it; columns grow from batch to batch when they must, and never shrink.
type table struct {
	w      io.Writer
	widths []int
	rows   [][]string
}

// newTable begins with its head, which is not printed when no row follows.
func newTable(w io.Writer, head ...string) *table {
	return &table{w: w, rows: [][]string{head}, widths: make([]int, len(head))}
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
		if cells[i] == "" {
			cells[i] = "-"
		}
	}
	t.rows = append(t.rows, cells)
}

// flush prints the rows so far.
func (t *table) flush() error {
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

// printable replaces what could steer a terminal: text of the server is other people's text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// listing prints a list that comes in pages, as a table or as JSON.
type listing struct {
	w     io.Writer
	json  *jsonList
	table *table
	count int
}

func newListing(w io.Writer, f format, head ...string) *listing {
	l := &listing{w: w}
	if f.json() {
		l.json = &jsonList{w: w}
	} else {
		l.table = newTable(w, head...)
	}
	return l
}

// page prints items, each as rows makes it.
func (l *listing) page(items []json.RawMessage, rows func(json.RawMessage) ([][]string, error)) error {
	l.count += len(items)
	if l.json != nil {
		return l.json.add(items...)
	}
	for _, item := range items {
		lines, err := rows(item)
		if err != nil {
			return err
		}
		for _, cells := range lines {
			l.table.row(cells...)
		}
	}
	if l.count == 0 {
		return nil
	}
	return l.table.flush()
}

// end closes the list. An empty table is a sentence: nothing at all would leave people wondering.
func (l *listing) end(err error, none string) error {
	switch {
	case err != nil:
		return err
	case l.json != nil:
		return l.json.end()
	case l.count == 0:
		_, err = fmt.Fprintln(l.w, none)
	}
	return err
}

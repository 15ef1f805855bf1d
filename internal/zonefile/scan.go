package zonefile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/nameplane/nameplane/internal/rr"
)

// entry is a record or a directive as one line. Comments are removed. Blanks replace parentheses and the line breaks
// inside them. It is valid until the next call of next.
type entry struct {
	text  []byte
	marks []mark
}

// mark records that the bytes of an entry from off on were read from line.
type mark struct{ off, line int }

// position returns the line and column of the byte at off.
func (e entry) position(off int) (line, column int) {
	if len(e.marks) == 0 {
		return 1, 1
	}
	i := sort.Search(len(e.marks), func(i int) bool { return e.marks[i].off > off })
	m := e.marks[max(0, i-1)]
	return m.line, off - m.off + 1
}

// scanner divides a file into entries.
type scanner struct {
	br    *bufio.Reader
	line  int // the line read last
	spill []byte
	e     entry
	open  []int // offsets of the open parentheses

	aliases bool // comments of ALIAS records are records
}

// special marks the bytes that the scanner must handle.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = c != '\t'
	}
	for _, c := range "\"\\;()\x7f" {
		t[c] = true
	}
	return t
}()

// next returns the next entry that is not empty. At the end of the file the fault's cause is io.EOF.
func (s *scanner) next() (entry, *fault) {
	for {
		s.e.text, s.e.marks, s.open = s.e.text[:0], s.e.marks[:0], s.open[:0]
		for {
			line, bad := s.readLine()
			if bad != nil {
				if errors.Is(bad.err, io.EOF) && len(s.open) > 0 {
					bad = &fault{off: s.open[0], reason: "this parenthesis is never closed"}
				}
				return s.e, bad
			}
			if bad := s.add(line); bad != nil {
				return s.e, bad
			}
			if len(s.open) == 0 {
				break
			}
			s.e.text = append(s.e.text, ' ')
		}
		if len(bytes.Trim(s.e.text, " \t")) > 0 {
			return s.e, nil
		}
	}
}

// readLine returns the next line without its end, and marks it as part of the entry.
func (s *scanner) readLine() ([]byte, *fault) {
	s.spill = s.spill[:0]
	for {
		b, err := s.br.ReadSlice('\n')
		switch {
		case err == io.EOF && len(b)+len(s.spill) == 0:
			return nil, &fault{err: io.EOF}
		case len(s.spill) == 0:
			s.line++
			s.e.marks = append(s.e.marks, mark{len(s.e.text), s.line})
		}
		switch {
		case err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF):
			return nil, &fault{off: len(s.e.text), reason: "cannot read on: " + err.Error(), err: err}
		case len(s.e.text)+len(s.spill)+len(b) > maxEntry:
			return nil, &fault{off: s.e.marks[0].off, reason: fmt.Sprintf("this record has more than %d bytes", maxEntry)}
		case errors.Is(err, bufio.ErrBufferFull):
			s.spill = append(s.spill, b...)
			continue
		}
		if len(s.spill) > 0 {
			s.spill = append(s.spill, b...)
			b = s.spill
		}
		b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
		if s.line == 1 {
			b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) // the byte order mark that some editors write
		}
		if s.aliases && len(s.open) == 0 && len(b) > 0 && b[0] == ';' {
			if text := aliasComment(b); text != nil {
				return text, nil
			}
		}
		return b, nil
	}
}

// add appends one line to the entry.
func (s *scanner) add(line []byte) *fault {
	base := len(s.e.text) // offset in the entry, for faults and parentheses
	s.e.text = append(s.e.text, line...)
	text := s.e.text
	quote := -1
	for i := base; i < len(text); i++ {
		c := text[i]
		if !special[c] {
			continue
		}
		switch {
		case c == '\\':
			n, ok := rr.Escape(text[i+1:])
			if !ok {
				return &fault{off: i, reason: "broken escape",
					hint: "a backslash wants one character or three digits up to 255 after it"}
			}
			i += n
		case c == '"' && quote < 0:
			quote = i
		case c == '"':
			quote = -1
		case c < ' ' || c == 0x7f:
			return control(i, c)
		case quote >= 0:
		case c == ';':
			if n := bytes.IndexByte(text[i:], 0); n >= 0 {
				return control(i+n, 0)
			}
			s.e.text = text[:i]
			return nil
		default:
			if bad := s.parenthesis(i, c); bad != nil {
				return bad
			}
			text[i] = ' '
		}
	}
	if quote >= 0 {
		return &fault{off: quote, reason: "a quoted string is not closed on its line",
			hint: `a line break inside it is written \010`}
	}
	return nil
}

func (s *scanner) parenthesis(i int, c byte) *fault {
	switch {
	case c == '(' && i == 0:
		return &fault{off: i, reason: "a parenthesis begins the line", hint: "put the owner's name or a blank before it"}
	case c == '(':
		s.open = append(s.open, i)
	case len(s.open) == 0:
		return &fault{off: i, reason: "this parenthesis was never opened"}
	default:
		s.open = s.open[:len(s.open)-1]
	}
	return nil
}

func control(i int, c byte) *fault {
	hint := fmt.Sprintf(`in a name or string it is written \%03d`, c)
	switch c {
	case 0:
		hint = "is this a text file?"
	case '\r':
		hint = "lines end with a line feed, alone or after a carriage return"
	}
	return &fault{off: i, reason: fmt.Sprintf("control character 0x%02x", c), hint: hint}
}

package zonefile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// maxGenerated is the longest record that $GENERATE may produce. Together with the limit on their number it limits
// the work that one line can cause.
const maxGenerated = 2048

// maxGenerate limits the records that all $GENERATE lines of a file and its includes produce. It is one record for
// every address of a /16, the largest reverse zone that such lines are written for. Without a limit, a line of forty
// bytes fills the memory.
const maxGenerate = 65536

// generate reads BIND's `$GENERATE start-stop[/step] record`. In the record, $ or ${offset[,width[,base]]} is
// replaced by the number, and $$ or \$ by a dollar sign.
func (f *file) generate(e entry, w *words) *fault {
	word, off := w.next()
	start, stop, step, ok := parseRange(string(word))
	if !ok {
		return &fault{off: off, reason: fmt.Sprintf("%s is not a range of $GENERATE", show(word)),
			hint: "a range is start-stop or start-stop/step, with 0 <= start <= stop"}
	}
	if n := (stop-start)/step + 1; int64(maxGenerate-f.generated) < n {
		return &fault{off: off, reason: fmt.Sprintf("$GENERATE would make more than %d records in this file", maxGenerate)}
	}
	template := bytes.TrimLeft(e.text[w.at:], " \t")
	if len(template) == 0 {
		return &fault{off: w.at, reason: "$GENERATE wants a record after its range"}
	}
	at := len(e.text) - len(template)
	line, _ := e.position(0)
	var text []byte
	for i := start; i <= stop; i += step {
		var bad *fault
		if text, bad = expand(text[:0], template, i); bad != nil {
			bad.off += at
			return bad
		}
		rec, bad := f.record(text)
		if bad != nil {
			bad.reason = fmt.Sprintf("in %s, made by $GENERATE: %s", show(text), bad.reason)
			bad.off = at
			return bad
		}
		f.generated++
		rec.Line = line
		if bad := f.emit(rec); bad != nil {
			return bad
		}
	}
	return nil
}

// parseRange reads numbers of at most 31 bits, so that sums of them cannot overflow.
func parseRange(s string) (start, stop, step int64, ok bool) {
	s, stepText, hasStep := strings.Cut(s, "/")
	startText, stopText, ok := strings.Cut(s, "-")
	a, err1 := strconv.ParseUint(startText, 10, 31)
	b, err2 := strconv.ParseUint(stopText, 10, 31)
	c, err3 := uint64(1), error(nil)
	if hasStep {
		c, err3 = strconv.ParseUint(stepText, 10, 31)
	}
	ok = ok && err1 == nil && err2 == nil && err3 == nil && a <= b && c > 0
	return int64(a), int64(b), int64(c), ok
}

// expand appends template with the number i filled in.
func expand(dst, template []byte, i int64) ([]byte, *fault) {
	for at := 0; at < len(template); at++ {
		c := template[at]
		rest := template[at+1:]
		switch {
		case c == '\\' && len(rest) > 0:
			dst = append(dst, c, rest[0])
			at++
		case c != '$':
			dst = append(dst, c)
		case len(rest) > 0 && rest[0] == '$':
			dst = append(dst, `\$`...)
			at++
		case len(rest) > 0 && rest[0] == '{':
			end := bytes.IndexByte(rest, '}')
			if end < 0 {
				return nil, &fault{off: at, reason: "${ is not closed"}
			}
			s, ok := number(string(rest[1:end]), i)
			if !ok {
				return nil, &fault{off: at, reason: fmt.Sprintf("%q is not a form of $GENERATE's number", template[at:at+1+end+1]),
					hint: "it is ${offset,width,base}, with base d, o, x, X, n or N"}
			}
			dst = append(dst, s...)
			at += end + 1
		default:
			dst = strconv.AppendInt(dst, i, 10)
		}
		if len(dst) > maxGenerated {
			return nil, &fault{reason: fmt.Sprintf("$GENERATE makes a record of more than %d bytes", maxGenerated)}
		}
	}
	return dst, nil
}

// number formats i as offset[,width[,base]] says.
func number(form string, i int64) (string, bool) {
	part := strings.Split(form, ",")
	if len(part) > 3 {
		return "", false
	}
	offset, err := strconv.ParseInt(part[0], 10, 32)
	if i += offset; err != nil || i < 0 {
		return "", false
	}
	width, base := 0, "d"
	if len(part) > 1 {
		w, err := strconv.ParseUint(part[1], 10, 8)
		if err != nil {
			return "", false
		}
		width = int(w)
	}
	if len(part) > 2 {
		base = part[2]
	}
	switch base {
	case "d", "o", "x", "X":
		return fmt.Sprintf("%0"+strconv.Itoa(width)+base, i), true
	case "n", "N":
		return nibbles(i, width, base == "N"), true
	}
	return "", false
}

// nibbles writes i as labels of one hexadecimal digit, the last one first, as in names under ip6.arpa. Width counts
// the dots too.
func nibbles(i int64, width int, upper bool) string {
	digits := "0123456789abcdef"
	if upper {
		digits = "0123456789ABCDEF"
	}
	var b []byte
	for {
		b = append(b, digits[i&15])
		i >>= 4
		if i == 0 && len(b)+1 >= width {
			return string(b)
		}
		b = append(b, '.')
	}
}

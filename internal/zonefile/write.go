package zonefile

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Write writes a zone as a file: $ORIGIN, $TTL, then one record per line with its owner relative to origin, its TTL,
// and absolute names in its data. The sets of a name must come together, and names in canonical order, as zones keep
// them. So Write needs no memory in proportion to the zone; any other order is an error. The types of one name may
// come in any order. Write sorts them by number, with SOA and NS first.
//
// Equal zones give equal files, and Parse returns exactly the given sets. An ALIAS is written as a comment, which
// needs Options.ReviveAlias.
func Write(w io.Writer, origin dnsname.Name, defaultTTL uint32, sets iter.Seq2[rr.Set, error]) error {
	if origin.IsZero() || defaultTTL > rr.MaxTTL {
		return fmt.Errorf("write zone file: origin %q or default TTL %d is not valid", origin, defaultTTL)
	}
	out := &writer{w: bufio.NewWriterSize(w, readSize), origin: origin, suffix: "." + origin.String()}
	if origin.IsRoot() {
		out.suffix = "."
	}
	fmt.Fprintf(out.w, "$ORIGIN %s\n$TTL %d\n", origin, defaultTTL)
	for set, err := range sets {
		if err == nil {
			err = out.add(set)
		}
		if err != nil {
			return fmt.Errorf("write zone file: %w", err)
		}
	}
	if err := out.flush(); err != nil {
		return fmt.Errorf("write zone file: %w", err)
	}
	return out.w.Flush()
}

type writer struct {
	w      *bufio.Writer
	origin dnsname.Name
	suffix string   // suffix of names below the origin
	sets   []rr.Set // sets of the current name
	line   []byte
}

func (o *writer) add(set rr.Set) error {
	if len(o.sets) > 0 && o.sets[0].Name != set.Name {
		if o.sets[0].Name.Compare(set.Name) > 0 {
			return fmt.Errorf("%s comes after %s", set.Name, o.sets[0].Name)
		}
		if err := o.flush(); err != nil {
			return err
		}
	}
	o.sets = append(o.sets, set)
	return nil
}

// flush writes the sets of the current name.
func (o *writer) flush() error {
	slices.SortFunc(o.sets, func(a, b rr.Set) int { return cmp.Compare(rank(a.Type), rank(b.Type)) })
	for i, set := range o.sets {
		if i > 0 && o.sets[i-1].Type == set.Type {
			return fmt.Errorf("%s %s comes twice", set.Name, set.Type)
		}
		if err := o.write(set); err != nil {
			return err
		}
	}
	o.sets = o.sets[:0]
	return nil
}

func rank(t rr.Type) int {
	switch t {
	case rr.TypeALIAS: // before the addresses
		return 0
	case rr.TypeSOA:
		return -2
	case rr.TypeNS:
		return -1
	}
	return int(t)
}

func (o *writer) write(set rr.Set) error {
	if set.Name.IsZero() || !set.Type.IsData() || set.TTL > rr.MaxTTL {
		return fmt.Errorf("%q %s with TTL %d cannot be written", set.Name, set.Type, set.TTL)
	}
	if set.Type == rr.TypeALIAS {
		return o.writeAlias(set)
	}
	o.line = append(o.line[:0], o.owner(set.Name)...)
	o.line = append(o.line, ' ')
	o.line = strconv.AppendUint(o.line, uint64(set.TTL), 10)
	o.line = append(o.line, " IN "...)
	o.line = append(o.line, set.Type.String()...)
	o.line = append(o.line, ' ')
	head := len(o.line)
	for _, d := range set.Data {
		text := rr.DataText(set.Type, d)
		if strings.HasPrefix(text, `\#`) { // the type has no better text, or the data is malformed
			if err := rr.Check(set.Type, d); err != nil {
				return fmt.Errorf("%s: %w", set.Name, err)
			}
		}
		o.line = append(append(o.line[:head], text...), '\n')
		if _, err := o.w.Write(o.line); err != nil {
			return err
		}
	}
	return nil
}

// owner returns n relative to the origin, or absolute when it is outside.
func (o *writer) owner(n dnsname.Name) string {
	switch {
	case n == o.origin:
		return "@"
	case n.IsIn(o.origin):
		return strings.TrimSuffix(n.String(), o.suffix)
	}
	return n.String()
}

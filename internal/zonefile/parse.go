// Package zonefile reads and writes master files (RFC 1035 §5).
//
// Record data is read by the DNS library, through package rr. Lines, parentheses, directives and what stands before
// the data are read here, because the library's reader of whole files joins words around a line break inside
// parentheses, takes "m" for a TTL of 0, ignores $TTL in $GENERATE, and opens any file of the system for a $GENERATE
// that makes $INCLUDE lines.
package zonefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Record is one record of a file, of class IN.
type Record struct {
	Name dnsname.Name
	Type rr.Type
	TTL  uint32
	Data string // RDATA in uncompressed wire form
	File string // where it was read
	Line int
}

// Options say how to read a file. The zero value reads a file that says everything itself, and includes nothing.
type Options struct {
	File string // name of the file in errors; its last element is the file's name in Include

	// Origin is what relative names are relative to until $ORIGIN. The zero Name: the file says $ORIGIN, or begins
	// with a SOA record whose owner is absolute.
	Origin dnsname.Name

	// DefaultTTL is for records that have no TTL, in files that have no $TTL, before the first record that has one
	// (RFC 1035 §5.1: the last one stated holds). Zero: such a record is an error.
	DefaultTTL uint32

	// Include is the folder of the file, for $INCLUDE: os.Root's FS keeps links inside it, which os.DirFS does not.
	// nil: $INCLUDE is an error.
	Include fs.FS

	// ReviveAlias reads comments that Write made of ALIAS records as such. The addresses that follow them are read too.
	ReviveAlias bool
}

// Error is a mistake in a file, with its place. Columns count octets.
type Error struct {
	File         string
	Line, Column int
	Reason       string
	Hint         string // what to do; may be empty
	err          error  // the cause, when it came from elsewhere
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason)
	if e.File != "" {
		s = e.File + ":" + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.err }

// Bounds that no real file comes near.
const (
	// maxEntry is the longest record or directive: TXT data of 65535 octets, each written \DDD, is 256 KiB.
	maxEntry = 512 << 10
	maxDepth = 8    // files open at once through $INCLUDE
	maxFiles = 4096 // files included in all: eight levels of ten $INCLUDE lines would be 100 million
	readSize = 64 << 10
)

// Parse calls fn with each record of r, in order and as it is read, so that a file of any size needs little memory.
// Mistakes are *Error, and so is what fn returns, with the line of its record. Records outside the origin are for fn to judge.
func Parse(r io.Reader, o Options, fn func(Record) error) error {
	p := &parser{o: o, fn: fn}
	f := &file{
		parser: p, path: path.Base(o.File), name: o.File, origin: o.Origin,
		ttl: o.DefaultTTL, hasTTL: o.DefaultTTL != 0,
	}
	return f.parse(r)
}

// parser is what the files of one Parse share.
type parser struct {
	o         Options
	fn        func(Record) error
	generated int
	files     int
}

// file is one file being read, and the state that ends with it.
type file struct {
	*parser
	in     scanner
	path   string // in Options.Include
	name   string // in errors
	up     *file  // the one that includes this one
	depth  int
	origin dnsname.Name
	owner  dnsname.Name // of the record before
	said   owner
	ttl    uint32
	hasTTL bool
	fixed  bool // ttl is from $TTL, so that a record's own does not change it
}

// owner remembers a spelling, because files name the same owner line after line.
type owner struct {
	text   string
	origin dnsname.Name
	name   dnsname.Name
}

// fault is an Error that does not know yet where its text stands.
type fault struct {
	off          int
	reason, hint string
	err          error
}

func (f *file) parse(r io.Reader) error {
	f.in = scanner{br: bufio.NewReaderSize(r, readSize), aliases: f.o.ReviveAlias}
	for {
		e, bad := f.in.next()
		if bad != nil {
			if errors.Is(bad.err, io.EOF) {
				return nil
			}
			return f.fail(e, bad)
		}
		if e.text[0] == '$' {
			if err := f.directive(e); err != nil {
				return err
			}
			continue
		}
		rec, bad := f.record(e.text)
		if bad == nil {
			rec.Line, _ = e.place(0)
			bad = f.emit(rec)
		}
		if bad != nil {
			return f.fail(e, bad)
		}
	}
}

func (f *file) fail(e entry, bad *fault) error {
	line, column := e.place(bad.off)
	return &Error{File: f.name, Line: line, Column: column, Reason: bad.reason, Hint: bad.hint, err: bad.err}
}

func (f *file) emit(rec Record) *fault {
	rec.File = f.name
	if err := f.fn(rec); err != nil {
		return &fault{reason: err.Error(), err: err}
	}
	return nil
}

// showName is how errors call an included file: beside the file that Options names.
func (p *parser) showName(includePath string) string {
	if i := strings.LastIndexByte(p.o.File, '/'); i >= 0 {
		return p.o.File[:i+1] + includePath
	}
	return includePath
}

// Package zonefile reads and writes master files (RFC 1035 §5).
//
// Start with Parse in parse.go and Write in write.go. A Stage in stage.go sorts the records of a large file on disk.
//
// The DNS library reads record data, through package rr. This package reads lines, parentheses, directives and the
// fields before the data. It does not use the library's reader of whole files, because that reader
//   - joins words around a line break inside parentheses,
//   - reads "m" as a TTL of 0,
//   - ignores $TTL in $GENERATE, and
//   - opens any file of the system for a $GENERATE that produces $INCLUDE lines.
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

	Spelling string // owner as in the file, made absolute; "" when it has no upper-case letter

	File string // file that contains it
	Line int
}

// Options control the reading of a file. The zero value reads a complete file without $INCLUDE.
type Options struct {
	File string // name of the file in errors; its last element is the file's name in Include

	// Origin is the origin of relative names until $ORIGIN. When it is zero, the file must have $ORIGIN, or begin with
	// an SOA record with an absolute owner.
	Origin dnsname.Name

	// DefaultTTL is the TTL of records without one, in files without $TTL, before the first record with a TTL (RFC 1035
	// §5.1: the last stated TTL is used). When it is zero, such a record is an error.
	DefaultTTL uint32

	// Include is the folder of the file, for $INCLUDE. The FS of an os.Root keeps symbolic links inside it; os.DirFS
	// does not. When it is nil, $INCLUDE is an error.
	Include fs.FS

	// ReviveAlias reads ALIAS records from the comments that Write writes for them. The addresses after them are read
	// too.
	ReviveAlias bool
}

// Error is an error in a file, with its position. Columns count bytes.
type Error struct {
	File         string
	Line, Column int
	Reason       string
	Hint         string // what to do; may be empty
	err          error  // the cause, when there is one
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

// Limits that no real file reaches.
const (
	// maxEntry is the longest record or directive: TXT data of 65,535 bytes, each written \DDD, is 256 KiB.
	maxEntry = 512 << 10
	maxDepth = 8    // number of files open at once through $INCLUDE
	maxFiles = 4096 // number of included files: eight levels of ten $INCLUDE lines would be 100 million
	readSize = 64 << 10
)

// Parse calls fn with each record of r in order while it reads, so a file of any size needs little memory. Errors in
// the file are *Error. An error of fn becomes an *Error with the line of its record. Parse passes records outside the
// origin to fn, which must check them.
func Parse(r io.Reader, o Options, fn func(Record) error) error {
	p := &parser{o: o, fn: fn}
	f := &file{
		parser: p, path: path.Base(o.File), name: o.File, origin: spelledName{Name: o.Origin},
		ttl: o.DefaultTTL, hasTTL: o.DefaultTTL != 0,
	}
	return f.parse(r)
}

// parser is the state that all files of one Parse share.
type parser struct {
	o         Options
	fn        func(Record) error
	generated int
	files     int
}

// file is the state of one file that is being read.
type file struct {
	*parser
	in         scanner
	path       string // path in Options.Include
	name       string // name in errors
	includedBy *file  // the file that includes this one
	depth      int
	origin     spelledName
	owner      spelledName // owner of the previous record
	lastOwner  cachedOwner
	ttl        uint32
	hasTTL     bool
	ttlFixed   bool // ttl is from $TTL, so that the TTL of a record does not change it
}

// spelledName is a name with its spelling as in Record.
type spelledName struct {
	dnsname.Name
	spelling string
}

// cachedOwner is a parsed owner name. Files repeat the same owner line after line.
type cachedOwner struct {
	text   string
	origin spelledName
	name   spelledName
}

// fault is an Error whose position is still an offset in the entry.
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
			rec.Line, _ = e.position(0)
			bad = f.emit(rec)
		}
		if bad != nil {
			return f.fail(e, bad)
		}
	}
}

func (f *file) fail(e entry, bad *fault) error {
	line, column := e.position(bad.off)
	return &Error{File: f.name, Line: line, Column: column, Reason: bad.reason, Hint: bad.hint, err: bad.err}
}

func (f *file) emit(rec Record) *fault {
	rec.File = f.name
	if err := f.fn(rec); err != nil {
		return &fault{reason: err.Error(), err: err}
	}
	return nil
}

// showName returns the name of an included file for errors: relative to the folder of Options.File.
func (p *parser) showName(includePath string) string {
	if i := strings.LastIndexByte(p.o.File, '/'); i >= 0 {
		return p.o.File[:i+1] + includePath
	}
	return includePath
}

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// zoneUpload reads and checks a zone file and writes it to the body of a request in a normal form: one complete record
// per line, without directives other than $ORIGIN and $TTL at the top. Reading and sending run at the same time, so
// that the client and the server work in parallel. An error in the file aborts the request, and the server drops what
// it has received. A file that fits into the buffer is sent only after all of it was checked.
type zoneUpload struct {
	zone    dnsname.Name
	records int              // number of records that were read
	seen    map[uint64]uint8 // kinds of records by the hash of their owner name

	body      *io.PipeReader // the body of the request
	pipe      *io.PipeWriter
	started   chan struct{} // closed when the zone and the first bytes are known, or reading has failed
	startOnce sync.Once
	done      chan struct{} // closed when reading has ended
	err       error         // error of reading; valid after done is closed

	out       *bufio.Writer
	line      []byte       // buffer for one line
	owner     dnsname.Name // owner name of the previous line
	ownerText string
	soa       string // data of the SOA record
	seed      maphash.Seed
}

// Kinds of records at a name. A CNAME excludes all other kinds.
const (
	hasCNAME = 1 << iota
	hasOthers
	hasNS
)

// readZoneFile starts to read and check the zone file at path, or in if path is "-". o.Origin is the zero Name if the
// file defines the origin itself. The caller reads the body and calls end.
func readZoneFile(ctx context.Context, path string, in io.Reader, o zonefile.Options,
	p *cli.Progress) (*zoneUpload, error) {
	o.File = path
	f, root, err := openSource(ctx, path, in, p)
	if err != nil {
		return nil, err
	}
	if root == nil {
		o.File = "standard input"
	} else {
		o.Include = root.FS()
	}
	size := int64(0)
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	p.Begin("sending", size)
	s := newZoneUpload(o.Origin)
	go func() {
		defer f.Close()
		if root != nil {
			defer root.Close()
		}
		s.finish(s.read(bufio.NewReaderSize(p.Reader(ctx, f), 64<<10), o))
	}()
	<-s.started
	select {
	case <-s.done:
		return s, s.err
	default:
		return s, nil
	}
}

// openSource opens a zone file and its directory, which limits $INCLUDE. The directory is nil for standard input.
func openSource(ctx context.Context, path string, in io.Reader, p *cli.Progress) (*os.File, *os.Root, error) {
	if path == "-" {
		f, err := spoolInput(ctx, in, p)
		return f, nil, err
	}
	f, err := openZoneFile(path)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		f.Close()
		return nil, nil, cli.Fail("", "cannot open the directory of the zone file: %s", err)
	}
	return f, root, nil
}

// spoolInput copies standard input to a temporary file. A slow writer could exceed the time that the server waits for a
// request.
func spoolInput(ctx context.Context, in io.Reader, p *cli.Progress) (*os.File, error) {
	f, err := os.CreateTemp("", "nameplane-import-*")
	if err != nil {
		return nil, cli.Fail("TMPDIR sets the directory for temporary files", "cannot create a temporary file: %s", err)
	}
	os.Remove(f.Name()) // the data exists until the file is closed, and no crash leaves it behind
	p.Begin("reading", 0)
	_, err = io.Copy(f, p.Reader(ctx, in))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, context.Canceled) {
		return nil, interrupted(err)
	}
	return nil, cli.Fail("is the disk full? TMPDIR sets the directory for temporary files",
		"cannot copy standard input: %s", err)
}

// openZoneFile refuses a directory here. Reading it would fail later, with a message about the first line.
func openZoneFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Fail("set FILE to the path of a zone file, or to - for standard input",
			"cannot read the zone file: %s", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", path)
	}
	if err != nil {
		f.Close()
		return nil, cli.Fail("set FILE to the path of a zone file", "cannot read the zone file: %s", err)
	}
	return f, nil
}

func newZoneUpload(zone dnsname.Name) *zoneUpload {
	s := &zoneUpload{zone: zone, started: make(chan struct{}), done: make(chan struct{}), seen: map[uint64]uint8{},
		seed: maphash.MakeSeed()}
	s.body, s.pipe = io.Pipe()
	// 256 KiB hold most zones completely, so an error in a small file is found before anything is sent.
	s.out = bufio.NewWriterSize(s, 256<<10)
	return s
}

// Write sends the content of the buffer. It implements io.Writer for the field out.
func (s *zoneUpload) Write(b []byte) (int, error) {
	s.startOnce.Do(func() { close(s.started) })
	return s.pipe.Write(b)
}

// finish ends the body of the request. An error of the file aborts the request.
func (s *zoneUpload) finish(err error) {
	s.err = err
	_ = s.pipe.CloseWithError(err)
	close(s.done)
	s.startOnce.Do(func() { close(s.started) })
}

// end discards the unsent part, waits until reading has ended, and returns the error in the file.
func (s *zoneUpload) end() error {
	_ = s.body.Close()
	<-s.done
	if errors.Is(s.err, io.ErrClosedPipe) {
		return nil // the request ended first, with an error of its own
	}
	return s.err
}

// names returns the number of names in the zone.
func (s *zoneUpload) names() int { return len(s.seen) }

// read parses and checks the file, and writes its records.
func (s *zoneUpload) read(in *bufio.Reader, o zonefile.Options) error {
	// Only the beginning of the file matters for $TTL: the server needs the default before the first record.
	head, _ := in.Peek(4096) // Parse reports a read error
	ttl, hasTTL := headTTL(head)
	err := zonefile.Parse(in, o, func(rec zonefile.Record) error {
		if s.records == 0 {
			if err := s.begin(rec, ttl, hasTTL); err != nil {
				return err
			}
		}
		if err := s.check(rec); err != nil {
			return err
		}
		return s.write(rec)
	})
	if err != nil {
		return fileFailure(err)
	}
	switch {
	case s.soa == "":
		return cli.Fail("a zone needs a SOA record; `nameplane zone create` creates an empty zone with one",
			"%s: the file has no SOA record", o.File)
	case s.seen[s.hash(s.zone)]&hasNS == 0:
		return cli.Fail("add the name servers of the zone, such as: @ NS ns1.example.net.",
			"%s: zone %s has no NS record at its apex", o.File, s.zone)
	}
	return s.out.Flush()
}

// fileFailure returns an error in the file with its position first and the hint on its own line.
func fileFailure(err error) error {
	e, ok := errors.AsType[*zonefile.Error](err)
	if !ok || errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return interrupted(err)
	}
	return cli.Fail(cmp.Or(e.Hint, "nothing was imported"), "%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// interrupted has the status unknown, as for every command that ended before the server replied.
func interrupted(err error) error {
	return &cli.Failure{Code: cli.ExitUnknown, Text: "interrupted", Hint: "nothing was imported", Err: err}
}

// begin writes the $ORIGIN and $TTL directives before the first record.
func (s *zoneUpload) begin(rec zonefile.Record, ttl uint32, hasTTL bool) error {
	if s.zone.IsZero() {
		if rec.Type != rr.TypeSOA {
			return errors.New("the first record is not a SOA record; set the name of the zone with --zone")
		}
		s.zone = rec.Name
	}
	fmt.Fprintf(s.out, "$ORIGIN %s\n", s.zone)
	if hasTTL {
		fmt.Fprintf(s.out, "$TTL %d\n", ttl)
	}
	return nil
}

// check returns an error for a record that the server would refuse. Only here is its position in the file known.
func (s *zoneUpload) check(rec zonefile.Record) error {
	if !rec.Name.IsIn(s.zone) {
		return fmt.Errorf("%s is not in the zone %s", rec.Name, s.zone)
	}
	// A hash instead of the name: a zone with ten million names would need a gigabyte for their texts.
	h := s.hash(rec.Name)
	kinds := s.seen[h]
	switch rec.Type {
	case rr.TypeCNAME:
		kinds |= hasCNAME
	case rr.TypeRRSIG, rr.TypeNSEC: // RFC 4034 §2.5: allowed beside a CNAME
	case rr.TypeNS:
		kinds |= hasNS | hasOthers
	case rr.TypeSOA:
		switch {
		case rec.Name != s.zone:
			return fmt.Errorf("the SOA record of %s is not at the apex of the zone %s", rec.Name, s.zone)
		case s.soa != "" && s.soa != rec.Data: // dig AXFR prints the SOA record twice
			return errors.New("the zone already has a different SOA record")
		}
		s.soa = rec.Data
		kinds |= hasOthers
	default:
		kinds |= hasOthers
	}
	if kinds&hasCNAME != 0 && kinds&hasOthers != 0 {
		return fmt.Errorf("a CNAME cannot stand beside other records at %s", rec.Name)
	}
	s.seen[h] = kinds
	return nil
}

func (s *zoneUpload) hash(n dnsname.Name) uint64 { return maphash.String(s.seed, n.Wire()) }

// write writes one record as a line.
func (s *zoneUpload) write(rec zonefile.Record) error {
	if rec.Name != s.owner {
		s.owner, s.ownerText = rec.Name, rec.Name.String()
	}
	s.records++
	b := append(s.line[:0], s.ownerText...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, uint64(rec.TTL), 10)
	b = append(b, " IN "...)
	b = append(b, rec.Type.String()...)
	b = append(b, ' ')
	b = append(b, rr.DataText(rec.Type, rec.Data)...)
	s.line = append(b, '\n')
	_, err := s.out.Write(s.line)
	return err
}

var (
	ttlDirective = regexp.MustCompile(`(?mi)^\$TTL[ \t]+([0-9a-z]+)[ \t\r]*(;.*)?$`)
	comment      = regexp.MustCompile(`(?m);.*$`)
)

// headTTL returns the $TTL before the first record, and whether there is one. It becomes the TTL of the zone, which
// record sets without their own TTL use.
func headTTL(head []byte) (uint32, bool) {
	m := ttlDirective.FindSubmatchIndex(head)
	if m == nil {
		return 0, false
	}
	for line := range bytes.Lines(comment.ReplaceAll(head[:m[0]], nil)) {
		if text := strings.TrimSpace(string(line)); text != "" && text[0] != '$' {
			return 0, false
		}
	}
	ttl, ok := uint32(0), false
	probe := fmt.Sprintf("$TTL %s\n. A 192.0.2.1\n", head[m[2]:m[3]])
	err := zonefile.Parse(strings.NewReader(probe), zonefile.Options{}, func(rec zonefile.Record) error {
		ttl, ok = rec.TTL, true
		return nil
	})
	return ttl, ok && err == nil
}

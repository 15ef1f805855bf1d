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

// outgoing is a zone file that is being sent to the server in normal form: one complete record per line, without
// directives. It is read and checked while it is sent, so that client and server work at the same time. A mistake ends
// the request, and the server drops what it has received; a file that fits the buffer is sent only after all of it was
// checked.
type outgoing struct {
	zone    dnsname.Name
	records int
	seen    map[uint64]uint8 // by hash of a name: which kinds of records it has

	body    *io.PipeReader
	pipe    *io.PipeWriter
	begun   chan struct{} // closed when zone and the first bytes are known, or reading has failed
	beginOf sync.Once
	done    chan struct{} // closed when reading has ended
	err     error         // of reading; valid once done is closed

	out   *bufio.Writer
	line  []byte
	owner dnsname.Name // of the line before
	text  string       // of owner
	soa   string       // data
	seed  maphash.Seed
}

// The kinds of records that exclude each other at a name.
const (
	hasCNAME = 1 << iota
	hasOthers
	hasNS
)

// readZoneFile starts to read and check a zone file; "-" is in. The origin is the zero Name if the file itself has it.
// The caller reads the body and calls end.
func readZoneFile(ctx context.Context, path string, in io.Reader, o zonefile.Options, p *cli.Progress) (*outgoing, error) {
	o.File = path
	f, root, err := openZone(ctx, path, in, p)
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
	s := newOutgoing(o.Origin)
	go func() {
		defer f.Close()
		if root != nil {
			defer root.Close()
		}
		s.finish(s.read(bufio.NewReaderSize(p.Reader(ctx, f), 64<<10), o))
	}()
	<-s.begun
	select {
	case <-s.done:
		return s, s.err
	default:
		return s, nil
	}
}

// openZone opens a zone file, and its directory for $INCLUDE, which standard input does not have.
func openZone(ctx context.Context, path string, in io.Reader, p *cli.Progress) (*os.File, *os.Root, error) {
	if path == "-" {
		f, err := keepInput(ctx, in, p)
		return f, nil, err
	}
	f, err := openZoneFile(path)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		f.Close()
		return nil, nil, cli.Fail("", "cannot open the folder of the zone file: %s", err)
	}
	return f, root, nil
}

// keepInput copies standard input to a file, because its writer may be slow, and the server does not wait.
func keepInput(ctx context.Context, in io.Reader, p *cli.Progress) (*os.File, error) {
	f, err := os.CreateTemp("", "nameplane-import-*")
	if err != nil {
		return nil, cli.Fail("TMPDIR says where temporary files go", "cannot make a temporary file: %s", err)
	}
	os.Remove(f.Name()) // the open file stays until it is closed
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
	return nil, cli.Fail("is the disk full? TMPDIR says where temporary files go", "cannot keep standard input: %s", err)
}

func openZoneFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, cli.Fail("give the path of a zone file, or - for standard input", "cannot read the zone file: %s", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", path)
	}
	if err != nil {
		f.Close()
		return nil, cli.Fail("give the path of a zone file", "cannot read the zone file: %s", err)
	}
	return f, nil
}

func newOutgoing(zone dnsname.Name) *outgoing {
	s := &outgoing{zone: zone, begun: make(chan struct{}), done: make(chan struct{}), seen: map[uint64]uint8{}, seed: maphash.MakeSeed()}
	s.body, s.pipe = io.Pipe()
	s.out = bufio.NewWriterSize(s, 256<<10)
	return s
}

// Write passes the buffer of out on to the request.
func (s *outgoing) Write(b []byte) (int, error) {
	s.beginOf.Do(func() { close(s.begun) })
	return s.pipe.Write(b)
}

// finish ends the body, with the error of the file if there is one.
func (s *outgoing) finish(err error) {
	s.err = err
	_ = s.pipe.CloseWithError(err)
	close(s.done)
	s.beginOf.Do(func() { close(s.begun) })
}

// end drops what was not sent, waits until reading has ended, and returns the error of the file.
func (s *outgoing) end() error {
	_ = s.body.Close()
	<-s.done
	if errors.Is(s.err, io.ErrClosedPipe) {
		return nil // the request ended first, and has its own error
	}
	return s.err
}

// names returns the number of names in the zone.
func (s *outgoing) names() int { return len(s.seen) }

func (s *outgoing) read(in *bufio.Reader, o zonefile.Options) error {
	head, _ := in.Peek(4096) // Parse reports its error
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
		return cli.Fail("a zone begins with a SOA record; `nameplane zone create` makes one for an empty zone", "%s: the file has no SOA record", o.File)
	case s.seen[s.hash(s.zone)]&hasNS == 0:
		return cli.Fail("add the zone's name servers, such as: @ NS ns1.example.net.", "%s: zone %s has no NS record at its apex", o.File, s.zone)
	}
	return s.out.Flush()
}

// fileFailure returns a mistake in the file with its position first and the hint on its own line.
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

func interrupted(err error) error {
	return &cli.Failure{Code: cli.ExitUnknown, Text: "interrupted", Hint: "nothing was imported", Err: err}
}

// begin writes the directives above the records.
func (s *outgoing) begin(rec zonefile.Record, ttl uint32, hasTTL bool) error {
	if s.zone.IsZero() {
		if rec.Type != rr.TypeSOA {
			return errors.New("the first record is not the zone's SOA record; name the zone with --zone")
		}
		s.zone = rec.Name
	}
	fmt.Fprintf(s.out, "$ORIGIN %s\n", s.zone)
	if hasTTL {
		fmt.Fprintf(s.out, "$TTL %d\n", ttl)
	}
	return nil
}

// check refuses what the server would refuse, while the position is known.
func (s *outgoing) check(rec zonefile.Record) error {
	if !rec.Name.IsIn(s.zone) {
		return fmt.Errorf("%s is not in the zone %s", rec.Name, s.zone)
	}
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
			return fmt.Errorf("the SOA record of %s is not the zone's, %s", rec.Name, s.zone)
		case s.soa != "" && s.soa != rec.Data: // the same one twice is how transfers are written down
			return errors.New("the zone has a SOA record already, and this is another")
		}
		s.soa = rec.Data
		kinds |= hasOthers
	default:
		kinds |= hasOthers
	}
	if kinds&hasCNAME != 0 && kinds&hasOthers != 0 {
		return fmt.Errorf("a CNAME cannot stand beside other records, and %s has both", rec.Name)
	}
	s.seen[h] = kinds
	return nil
}

func (s *outgoing) hash(n dnsname.Name) uint64 { return maphash.String(s.seed, n.Wire()) }

func (s *outgoing) write(rec zonefile.Record) error {
	if rec.Name != s.owner {
		s.owner, s.text = rec.Name, rec.Name.String()
	}
	s.records++
	b := append(s.line[:0], s.text...)
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

// headTTL returns the $TTL above the first record. It becomes the TTL of the zone, which record sets without their own
// TTL use.
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

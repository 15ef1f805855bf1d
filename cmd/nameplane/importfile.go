package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// spool is a zone file in normal form: a record per line, with nothing left out and nothing to include. It is on disk, so that
// a zone of any size needs little memory, and the server is asked only when the whole file was found good.
type spool struct {
	file    *os.File
	zone    dnsname.Name
	records int
	size    int64
	seen    map[uint64]uint8 // by hash of a name: which kinds of records it has

	out   *bufio.Writer
	line  []byte
	owner dnsname.Name // of the line before
	text  string       // of owner
	soa   string       // data
	seed  maphash.Seed
}

// The kinds of records that cannot stand together at a name.
const (
	hasCNAME = 1 << iota
	hasOthers
	hasNS
)

// readZoneFile reads and checks a zone file; "-" is in. origin is the zero Name when the file says it itself. The caller closes
// the spool.
func readZoneFile(ctx context.Context, path string, in io.Reader, origin dnsname.Name, p *progress) (*spool, error) {
	o := zonefile.Options{File: path, Origin: origin}
	size := int64(0)
	if path == "-" {
		o.File = "standard input"
	} else {
		f, info, err := openZoneFile(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		root, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			return nil, fail("", "cannot open the folder of the zone file: %s", err)
		}
		defer root.Close()
		in, size, o.Include = f, info.Size(), root.FS()
	}
	s, err := newSpool(origin)
	if err != nil {
		return nil, err
	}
	p.begin("reading", size)
	if err := s.read(bufio.NewReaderSize(p.reader(ctx, in), 64<<10), o); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func openZoneFile(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fail("give the path of a zone file, or - for standard input", "cannot read the zone file: %s", err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, fail("give the path of a zone file", "cannot read the zone file: %s", err)
	}
	return f, info, nil
}

func newSpool(zone dnsname.Name) (*spool, error) {
	f, err := os.CreateTemp("", "nameplane-import-*")
	if err != nil {
		return nil, fail("TMPDIR says where temporary files go", "cannot make a temporary file: %s", err)
	}
	os.Remove(f.Name()) // it lives on until it is closed; where that cannot be, Close removes it
	return &spool{file: f, zone: zone, out: bufio.NewWriterSize(f, 256<<10), seen: map[uint64]uint8{}, seed: maphash.MakeSeed()}, nil
}

// Close removes the spool.
func (s *spool) Close() {
	s.file.Close()
	os.Remove(s.file.Name())
}

// names is how many names the zone has.
func (s *spool) names() int { return len(s.seen) }

func (s *spool) read(in *bufio.Reader, o zonefile.Options) error {
	head, _ := in.Peek(4096) // what is wrong with it, Parse will tell
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
		return fail("a zone begins with a SOA record; `nameplane zone create` makes one for an empty zone", "%s: the file has no SOA record", o.File)
	case s.seen[s.hash(s.zone)]&hasNS == 0:
		return fail("add the zone's name servers, such as: @ NS ns1.example.net.", "%s: zone %s has no NS record at its apex", o.File, s.zone)
	}
	if err := s.out.Flush(); err != nil {
		return fail("is the disk full? TMPDIR says where temporary files go", "cannot write a temporary file: %s", err)
	}
	s.size, err = s.file.Seek(0, io.SeekCurrent)
	return err
}

// fileFailure is a mistake in the file as people read it: its place first, what to do on a line of its own.
func fileFailure(err error) error {
	e, ok := errors.AsType[*zonefile.Error](err)
	if !ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return &failure{code: exitUnknown, text: "interrupted", hint: "nothing was imported", err: err}
	}
	hint := e.Hint
	if hint == "" {
		hint = "nothing was imported"
	}
	return fail(hint, "%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// begin writes what stands above the records.
func (s *spool) begin(rec zonefile.Record, ttl uint32, hasTTL bool) error {
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

// check refuses what the server would, while it is known where it stands.
func (s *spool) check(rec zonefile.Record) error {
	if !rec.Name.IsIn(s.zone) {
		return fmt.Errorf("%s is not in the zone %s", rec.Name, s.zone)
	}
	h := s.hash(rec.Name)
	kinds := s.seen[h]
	switch rec.Type {
	case rr.TypeCNAME:
		kinds |= hasCNAME
	case rr.TypeRRSIG, rr.TypeNSEC: // RFC 4034 §2.5: they may stand beside a CNAME
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

func (s *spool) hash(n dnsname.Name) uint64 { return maphash.String(s.seed, n.Wire()) }

func (s *spool) write(rec zonefile.Record) error {
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

// body is the spool to be sent.
func (s *spool) body() io.Reader { return io.NewSectionReader(s.file, 0, s.size) }

var (
	ttlDirective = regexp.MustCompile(`(?mi)^\$TTL[ \t]+([0-9a-z]+)[ \t\r]*(;.*)?$`)
	comment      = regexp.MustCompile(`(?m);.*$`)
)

// headTTL is the $TTL that stands above the first record: it becomes the zone's own, and is what records without a TTL follow
// from then on.
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

package designate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// Bounds on the zone files that come in. They are read as they come, so that the server works while the client sends,
// and their records wait in files: a zone takes many times its file in memory while it is committed, which Run does one
// after the other. A client may send slowly, so no project gets all places.
const (
	maxUploads        = 16 // at a time, and the same number may wait for Run
	maxProjectUploads = 4

	// maxJSONImport is for a zone file inside JSON, which is read in memory, several copies of it.
	maxJSONImport = 16 << 20
)

// upload is a zone file that came in.
type upload struct {
	records    *os.File // in the form of zonefile.AppendKept
	attributes map[string]string
	head       []byte // of the file
	soa        *zonefile.Record
	lowest     uint32                // TTL
	bad        error                 // what is wrong with the file: the import fails with it
	aliases    map[dnsname.Name]bool // revived: their addresses are not the file's own
}

// receive reads the zone file of the request, and keeps its records in a file without a name, which is gone when it is
// closed or we are.
func (c *call) receive() (*upload, error) {
	if !c.api.uploads.Take(c.scope.project, maxProjectUploads) {
		return nil, &fault{status: http.StatusServiceUnavailable, kind: "service_unavailable",
			message: "Too many zone files are being sent; try again later."}
	}
	defer c.api.uploads.Return(c.scope.project)
	body, attributes, err := c.importBody()
	if err != nil {
		return nil, err
	}
	most, err := c.mostRecords()
	if err != nil {
		return nil, err
	}
	f, err := spoolFile(c.settings.Spool)
	if err != nil {
		return nil, noRoom(err)
	}
	u := &upload{records: f, attributes: attributes, lowest: rr.MaxTTL, aliases: map[dnsname.Name]bool{}}
	if err := u.read(bodyReader{body}, zonefile.Options{DefaultTTL: c.settings.DefaultTTL, MaxRecords: most,
		ReviveAlias: isTrue(c.r.URL.Query().Get("revive_alias"))}); err != nil {
		_ = f.Close()
		return nil, err
	}
	return u, nil
}

// read reads a zone file. What is wrong with the file is kept, for the import to fail with; an error is the request's
// or the disk's.
func (u *upload) read(r io.Reader, o zonefile.Options) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(4096) // what is wrong with it, Parse will tell
	u.head = bytes.Clone(head)
	out := bufio.NewWriterSize(u.records, 256<<10)
	var b []byte
	err := zonefile.Parse(in, o, func(rec zonefile.Record) error {
		if rec.Type == rr.TypeSOA && u.soa == nil {
			u.soa = new(rec)
		}
		if rec.Type == rr.TypeALIAS && o.ReviveAlias {
			u.aliases[rec.Name] = true
		}
		u.lowest = min(u.lowest, rec.TTL)
		b = zonefile.AppendKept(b[:0], rec)
		_, err := out.Write(b)
		return err
	})
	if full := out.Flush(); full != nil { // Flush returns the error of any Write before it
		return noRoom(full)
	}
	if err == nil {
		return nil
	}
	u.bad = err
	_, rest := io.Copy(io.Discard, in) // else the client would see a broken connection instead of a reply
	if e := (errBody{}); errors.As(errors.Join(err, rest), &e) {
		return readError(e.err)
	}
	return nil
}

// imported is the zone of the file, with its records in order.
func (u *upload) imported() (in imported, err error) {
	switch {
	case u.bad != nil:
		return in, badRequest("%v", u.bad)
	case u.soa == nil:
		return in, badRequest("the zone file has no SOA record")
	}
	size, err := u.records.Seek(0, io.SeekEnd)
	if err != nil {
		return in, err
	}
	var records strings.Builder
	records.Grow(int(size))
	if _, err := io.Copy(&records, io.NewSectionReader(u.records, 0, size)); err != nil {
		return in, err
	}
	content, err := zonefile.NewContent(records.String())
	return imported{zoneOf(*u.soa, u.head), content, u.lowest, u.aliases}, err
}

// spoolFile is a file without a name in a folder.
func spoolFile(dir *os.Root) (*os.File, error) {
	name := "import-" + uuid.NewString()
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := dir.Remove(name); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// noRoom is 503 where a full or read-only disk keeps a file from being written.
func noRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return fmt.Errorf("keep the zone file: %w", err)
}

// importBody is the zone file of a request: the body itself, or a string in a JSON object.
func (c *call) importBody() (io.Reader, map[string]string, error) {
	if c.wantMedia("text/dns") == nil {
		return http.MaxBytesReader(c.w, c.r.Body, c.settings.MaxImport), nil, nil
	}
	if c.wantMedia("application/json") != nil {
		return nil, nil, &fault{status: http.StatusUnsupportedMediaType, kind: "unsupported_content_type",
			message: "Content-type must be text/dns or application/json"}
	}
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, min(c.settings.MaxImport, maxJSONImport)))
	if err != nil {
		return nil, nil, readError(err)
	}
	in, err := parseInput("import", b)
	if err != nil {
		return nil, nil, err
	}
	if err := in.known("zonefile", "attributes", "pool_id"); err != nil {
		return nil, nil, err
	}
	in.require("zonefile")
	attributes := in.dictionary("attributes")
	var text string
	in.get("zonefile", "string", &text)
	return strings.NewReader(text), attributes, in.err()
}

// errBody wraps a failure to read the request, which is no fault of the disk.
type errBody struct{ err error }

func (e errBody) Error() string { return e.err.Error() }

// bodyReader marks the errors of the request's body.
type bodyReader struct{ r io.Reader }

func (b bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBody{err}
	}
	return n, err
}

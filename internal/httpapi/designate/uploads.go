package designate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// Bounds on uploads of zone files. The server parses a file while the client sends it, and stages the records on disk:
// a commit takes many times the size of the file in memory, so files wait for Run there. A client may send slowly, so
// no project may use all slots.
const (
	uploadBytes = 2 << 20 // the memory for reading one file: zonefile.Stage and buffers
	jsonCopies  = 5       // the copies of a JSON body in memory while it is decoded
	stagedBytes = 15      // the bytes that zonefile.Stage adds to the name, data and spelling of a record

	maxUploads        = 16 // uploads at a time
	maxProjectUploads = 4

	// maxJSONImport bounds a zone file inside JSON, because the server reads it into memory and copies it several times.
	maxJSONImport = 16 << 20
)

// upload is a zone file that the server has received.
type upload struct {
	stage      *zonefile.Stage // the records of the file
	attributes map[string]string
	pool       uuid.UUID // the pool that the request names; zero: none
	head       []byte    // the first bytes of the file, which may contain $TTL
	soa        *zonefile.Record
	lowest     uint32                // the lowest TTL
	bad        error                 // the first error in the file: the import fails with it
	aliases    map[dnsname.Name]bool // the names of revived ALIAS records: their addresses are derived
}

// receive reads the zone file of the request and stages its records on disk.
func (c *call) receive() (*upload, error) {
	if !c.api.uploads.Take(c.scope.project, maxProjectUploads) {
		return nil, errTooManyUploads()
	}
	defer c.api.uploads.Return(c.scope.project)
	release, err := c.reserveUpload()
	if err != nil {
		return nil, err
	}
	defer release()
	u := &upload{lowest: rr.MaxTTL, aliases: map[dnsname.Name]bool{}}
	body, err := c.importBody(u)
	if err != nil {
		return nil, err
	}
	if u.stage, err = zonefile.NewStage(c.settings.Spool); err != nil {
		return nil, spoolError(err)
	}
	if err := c.read(u, bodyReader{body}); err != nil {
		_ = u.stage.Close()
		return nil, err
	}
	return u, nil
}

func errTooManyUploads() *fault {
	return &fault{status: http.StatusServiceUnavailable, kind: "service_unavailable",
		message: "Too many zone files are being sent; try again later."}
}

// reserveUpload waits for the memory that reading the body takes.
func (c *call) reserveUpload() (release func(), err error) {
	n := int64(uploadBytes)
	if c.wantMedia("application/json") == nil {
		size := c.jsonLimit()
		if c.r.ContentLength >= 0 {
			size = min(size, c.r.ContentLength)
		}
		n += size * jsonCopies
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), memoryPatience)
	defer cancel()
	release, err = c.api.Budget.Take(ctx, c.scope.project, n)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errTooManyUploads()
	}
	return release, err
}

// read reads a zone file. It stores an error in the file in u.bad, with which the import fails later. It returns only
// errors of the request and of the disk.
func (c *call) read(u *upload, r io.Reader) error {
	q, err := c.zoneQuotas()
	if err != nil {
		return err
	}
	o := zonefile.Options{DefaultTTL: c.settings.DefaultTTL, ReviveAlias: isTrue(c.r.URL.Query().Get("revive_alias"))}
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(4096) // Parse returns the error
	u.head = bytes.Clone(head)
	var disk error
	err = zonefile.Parse(in, o, func(rec zonefile.Record) error {
		if rec.Type == rr.TypeSOA && u.soa == nil {
			u.soa = new(rec)
		}
		if rec.Type == rr.TypeALIAS && o.ReviveAlias {
			u.aliases[rec.Name] = true
		}
		u.lowest = min(u.lowest, rec.TTL)
		if disk = u.stage.Add(rec); disk != nil {
			return disk
		}
		return c.checkSize(u.stage, q)
	})
	if disk != nil {
		return spoolError(disk)
	}
	if err == nil {
		return nil
	}
	u.bad = err
	_, rest := io.Copy(io.Discard, in) // otherwise the client would see a broken connection instead of a reply
	if e := (errBody{}); errors.As(errors.Join(err, rest), &e) {
		return readError(e.err)
	}
	return nil
}

// checkSize refuses a file as soon as it has more records than the quota of a zone, or than the server has memory for.
// The rest of the file is then not staged.
func (c *call) checkSize(s *zonefile.Stage, q publish.Quotas) error {
	if n, most := s.Records(), q.ZoneRecords; most >= 0 && n > most {
		return &publish.QuotaError{Resource: "zone_records", N: n, Most: most}
	}
	if n, most := s.Bytes(), q.ZoneBytes(); most >= 0 && n > int64(most)+int64(s.Records()*stagedBytes) {
		return &publish.QuotaError{Resource: "bytes of a zone", N: int(n), Most: most}
	}
	return c.api.Budget.Fits(budget.ZoneBytes(s.Records(), s.Bytes()))
}

// imported returns the zone of the file, with its records in order.
func (u *upload) imported() (in imported, err error) {
	switch {
	case u.bad != nil:
		return in, badRequest("%v", u.bad)
	case u.soa == nil:
		return in, badRequest("the zone file has no SOA record")
	}
	return imported{zoneOf(*u.soa, u.head), u.stage, u.lowest, u.aliases}, nil
}

// spoolError returns the error for a file that could not be written. A full or read-only disk becomes 503.
func spoolError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) {
		err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return fmt.Errorf("stage the zone on disk: %w", err)
}

func (c *call) jsonLimit() int64 { return min(c.settings.MaxImport, maxJSONImport) }

// importBody returns the zone file of a request: the body itself, as in Designate, or a string in a JSON object. The
// object can also have the attributes and the pool of the zone; a pool that the caller cannot use is refused here,
// before the file is read.
func (c *call) importBody(u *upload) (io.Reader, error) {
	if c.wantMedia("text/dns") == nil {
		return http.MaxBytesReader(c.w, c.r.Body, c.settings.MaxImport), nil
	}
	if c.wantMedia("application/json") != nil {
		return nil, &fault{status: http.StatusUnsupportedMediaType, kind: "unsupported_content_type",
			message: "Content-type must be text/dns or application/json"}
	}
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.jsonLimit()))
	if err != nil {
		return nil, readError(err)
	}
	in, err := parseInput("import", b)
	if err != nil {
		return nil, err
	}
	if err := in.known("zonefile", "attributes", "pool_id"); err != nil {
		return nil, err
	}
	in.require("zonefile")
	u.attributes, u.pool = in.dictionary("attributes"), in.poolID()
	var text string
	in.get("zonefile", "string", &text)
	if err := in.err(); err != nil {
		return nil, err
	}
	_, err = viewed(c, func(v store.View) (pool, error) {
		return c.schedule(v, zone.Zone{Attributes: u.attributes, Pool: u.pool})
	})
	return strings.NewReader(text), err
}

// errBody wraps an error of reading the request, to distinguish it from errors of the disk.
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

package scans

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/report"
)

// Document is a report in one format, as it is sent.
type Document struct {
	Body []byte
	Tag  string // digest of Body
}

// maxDocuments limits the total size in bytes of cached documents. Most have less than 100,000 bytes.
const maxDocuments = 8 << 20

// documents is an LRU cache of rendered reports. Concurrent requests for one document render it once.
type documents struct {
	mu   sync.Mutex // guards the fields below
	all  map[form]*document
	last list.List // of *document, the most recently used first; only those that are rendered
	size int       // total size of the documents in last, in bytes
}

// form is a scan ID and a format.
type form struct{ id, format string }

type document struct {
	Document
	form    form
	made    chan struct{} // closed when the document is rendered, or err is set
	err     error
	element *list.Element
}

// Document returns the report of a scan of a project, in one of report.Formats. It is rendered from the facts, so it
// includes checks that were added after the scan. The caller must call release when it no longer uses the document.
func (s *Service) Document(ctx context.Context, project, id, format string) (_ Document, release func(), err error) {
	if _, _, err := s.Get(project, id); err != nil {
		return Document{}, nil, err
	}
	d, mine := s.documents.find(form{id, format})
	if mine {
		// Other requests wait for this document, so it is rendered even if this client disconnects.
		release = s.make(context.WithoutCancel(ctx), d, project)
		return d.Document, release, d.err
	}
	<-d.made
	if d.err != nil {
		return Document{}, nil, d.err
	}
	release, err = s.take(ctx, project, int64(len(d.Body))*bodyMemory)
	return d.Document, release, err
}

// make renders a document, or sets its error. If it has no error, the caller must call release.
func (s *Service) make(ctx context.Context, d *document, project string) (release func()) {
	defer close(d.made)
	release, d.err = s.takeFacts(ctx, project, d.form.id)
	if d.err == nil {
		if d.Body, d.err = s.render(d.form.id, d.form.format); d.err != nil {
			release()
		}
	}
	d.Tag = TagOf(d.Body)
	s.documents.keep(d)
	return release
}

// TagOf returns the digest of a body.
func TagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

func (s *Service) render(id, format string) (body []byte, err error) {
	defer recoverCheck(&err)
	facts, err := s.stored(id)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = report.Make(facts, check.Run(facts)).Write(&b, format, report.TextOptions{})
	return b.Bytes(), err
}

// find returns a document, and whether the caller must render it.
func (c *documents) find(f form) (d *document, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.all[f]; d != nil {
		if d.element != nil {
			c.last.MoveToFront(d.element)
		}
		return d, false
	}
	if c.all == nil {
		c.all = map[form]*document{}
	}
	d = &document{form: f, made: make(chan struct{})}
	c.all[f] = d
	return d, true
}

// keep adds a document to the cache and evicts the least recently used ones.
func (c *documents) keep(d *document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.err != nil || len(d.Body) > maxDocuments || c.all[d.form] != d {
		c.dropLocked(d)
		return
	}
	d.element = c.last.PushFront(d)
	c.size += len(d.Body)
	for c.size > maxDocuments {
		c.dropLocked(c.last.Back().Value.(*document))
	}
}

// forget evicts the documents of a scan that is no longer stored.
func (c *documents) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, format := range report.Formats {
		if d := c.all[form{id, format}]; d != nil {
			c.dropLocked(d)
		}
	}
}

func (c *documents) dropLocked(d *document) {
	if c.all[d.form] == d {
		delete(c.all, d.form)
	}
	if d.element != nil {
		c.last.Remove(d.element)
		c.size -= len(d.Body)
		d.element = nil
	}
}

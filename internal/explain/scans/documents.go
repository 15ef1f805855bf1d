package scans

import (
	"bytes"
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/report"
)

// Document is a report in one of its forms, as it is sent.
type Document struct {
	Body []byte
	Tag  string // a digest of Body
}

// maxDocuments is how many octets of documents are kept for the next reader. Most have less than 100,000.
const maxDocuments = 8 << 20

// documents are those that were read last. They are made once for all who ask at the same time.
type documents struct {
	mu   sync.Mutex // guards the following
	all  map[form]*document
	last list.List // of *document, the last that was asked for in front; only those that are made
	size int       // of those
}

// form is a scan and a format.
type form struct{ id, format string }

type document struct {
	Document
	form  form
	made  chan struct{} // closed when it is, or cannot be
	err   error
	place *list.Element
}

// Document is what a scan of a project says, in one of report.Formats. It is made of the facts, so that what checks have learned since
// is in it.
func (s *Service) Document(project, id, format string) (Document, error) {
	if _, _, err := s.Get(project, id); err != nil {
		return Document{}, err
	}
	d, mine := s.documents.find(form{id, format})
	if !mine {
		<-d.made
		return d.Document, d.err
	}
	d.Body, d.err = s.render(id, format)
	d.Tag = TagOf(d.Body)
	s.documents.keep(d)
	close(d.made)
	return d.Document, d.err
}

// TagOf is the digest of what is sent.
func TagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

func (s *Service) render(id, format string) (body []byte, err error) {
	defer tripped(&err)
	facts, err := s.stored(id)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = report.Make(facts, check.Run(facts)).Write(&b, format, report.TextOptions{})
	return b.Bytes(), err
}

// find is a document, and whether it has to be made.
func (c *documents) find(f form) (d *document, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.all[f]; d != nil {
		if d.place != nil {
			c.last.MoveToFront(d.place)
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

// keep keeps a document, and lets go of those that were not read for the longest time.
func (c *documents) keep(d *document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.err != nil || len(d.Body) > maxDocuments || c.all[d.form] != d {
		c.dropLocked(d)
		return
	}
	d.place = c.last.PushFront(d)
	c.size += len(d.Body)
	for c.size > maxDocuments {
		c.dropLocked(c.last.Back().Value.(*document))
	}
}

// forget lets go of the documents of a scan that is not kept any more.
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
	if d.place != nil {
		c.last.Remove(d.place)
		c.size -= len(d.Body)
		d.place = nil
	}
}

package powerdns

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"net/http"
	"strings"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// large is a reply whose size depends on the zone.
type large struct {
	media  string
	memory int64 // the memory that the whole reply takes

	// write writes the body and returns the entity tag of the zone that it shows. It may be called twice.
	write func(io.Writer) (tag string, err error)
}

const (
	// smallReply is the memory of a reply up to which it is built in memory: about two thousand record sets.
	smallReply = 8 << 20
	// streamMemory is the memory of a larger reply: buffers, and the largest record set.
	streamMemory = 1 << 20
)

// send sends a large reply. It is complete before the first byte is sent. A body that is sent while it is produced
// would hold a View of the store open for as long as a slow client reads.
func (c *call) send(rep reply) {
	sum := sha256.New()
	if rep.large.memory <= smallReply {
		var b bytes.Buffer
		err := httpapi.Reserve(c.r.Context(), rep.large.memory)
		if err == nil {
			rep.tag, err = rep.large.write(io.MultiWriter(&b, sum))
		}
		if err != nil {
			c.fail(err)
			return
		}
		c.sendBody(rep, sum, &b)
		return
	}
	if !c.api.downloads.Take(c.rules.Project(), maxProjectDownloads) {
		c.fail(&fault{http.StatusServiceUnavailable, "Too many zones are being read; try again later."})
		return
	}
	defer c.api.downloads.Return(c.rules.Project())
	if err := httpapi.Reserve(c.r.Context(), streamMemory); err != nil {
		c.fail(err)
		return
	}
	f, err := zonefile.TempFile(c.api.Spool)
	if err != nil {
		c.fail(err)
		return
	}
	defer f.Close()
	if rep.tag, err = rep.large.write(io.MultiWriter(f, sum)); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.sendBody(rep, sum, f)
}

// sendBody sends a complete body. Its entity tag has two parts: the tag of the zone, which If-Match compares, and the
// sum of this representation, which only If-None-Match compares.
func (c *call) sendBody(rep reply, sum hash.Hash, body io.Reader) {
	h := c.w.Header()
	if rep.tag != "" {
		tag := strings.TrimSuffix(rep.tag, `"`) + "-" + hex.EncodeToString(sum.Sum(nil)[:12]) + `"`
		h.Set("ETag", tag)
		if none := c.r.Header.Values("If-None-Match"); len(none) > 0 && httpapi.HasWeakTag(none, tag) {
			c.w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", rep.large.media)
	c.w.WriteHeader(rep.status)
	if _, err := io.Copy(c.w, body); err != nil {
		c.api.Log.Debug("reply ended early", "path", c.r.URL.Path, "err", err)
		panic(http.ErrAbortHandler) // the client must not mistake half a zone for a whole one
	}
}

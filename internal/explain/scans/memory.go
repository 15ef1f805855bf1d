package scans

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/store"
)

// ErrMemory reports that the memory budget has no room for the facts or the report of a scan now.
var ErrMemory = errors.New("the server has no memory for this request now: try again later")

// Memory for the results of a scan. Reading facts and writing them again as indented JSON allocated 9 to 19 bytes for
// each byte of that JSON. This includes garbage, which the collector frees when memory is short. Before that,
// validation holds the records of all replies: up to 7 bytes for each byte, if the replies consist of small records.
const (
	factsMemory = 12 // for each byte of the JSON of facts
	bodyMemory  = 4  // for each byte of a rendered report: the scan that contains it is encoded and compacted
)

// take reserves n bytes of the memory budget for a project. The caller must call release.
func (s *Service) take(ctx context.Context, project string, n int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Patience)
	defer cancel()
	release, err = s.opts.Budget.Take(ctx, project, n)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrMemory, err)
	}
	return release, nil
}

// takeFacts reserves the memory to read the facts of some scans of a project.
func (s *Service) takeFacts(ctx context.Context, project string, ids ...string) (release func(), err error) {
	var n int64
	for _, id := range ids {
		size, err := s.factsSize(id)
		if err != nil {
			return nil, err
		}
		n += size * factsMemory
	}
	return s.take(ctx, project, n)
}

// factsSize returns the size of the JSON of stored facts. It does not copy the stored row, which may have 3 MiB: many
// requests may wait for memory at the same time.
func (s *Service) factsSize(id string) (int64, error) {
	var row struct {
		Size gzipSize `json:"z"`
	}
	err := s.publisher.View(func(v store.View) error { return v.Object(store.KindFacts, id, &row) })
	return int64(row.Size), err
}

// gzipSize is the uncompressed size of gzip data, which is in its last four bytes (RFC 1952 §2.3.1).
type gzipSize uint32

var errGzip = errors.New("the stored facts are not gzip data")

// sizeOf returns the uncompressed size of gzip data of which end is the last part.
func sizeOf(end []byte) gzipSize {
	return gzipSize(binary.LittleEndian.Uint32(end[max(0, len(end)-4):]))
}

// UnmarshalJSON reads the end of a factsRow.Gzip.
func (n *gzipSize) UnmarshalJSON(text []byte) error {
	const quoted = 8 + 1 // base64 of the last 4 to 6 bytes, and a quotation mark
	if len(text) <= quoted {
		return errGzip
	}
	end, err := base64.StdEncoding.AppendDecode(nil, text[len(text)-quoted:len(text)-1])
	if err != nil || len(end) < 4 {
		return errors.Join(errGzip, err)
	}
	*n = sizeOf(end)
	return nil
}

// Facts returns the facts of scans of a project. It reserves their memory first; the caller must call release when it
// no longer uses them. The error is ErrMemory if the budget has no room.
func (s *Service) Facts(ctx context.Context, project string, ids ...string) (
	all []*explain.Facts, release func(), err error) {
	for _, id := range ids {
		if _, _, err := s.Get(project, id); err != nil {
			return nil, nil, err
		}
	}
	// One reservation for all: a second one could wait for memory that the first one holds.
	release, err = s.takeFacts(ctx, project, ids...)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		facts, err := s.stored(id)
		if err != nil {
			release()
			return nil, nil, err
		}
		all = append(all, facts)
	}
	return all, release, nil
}

// pastOf returns the summary of an earlier scan. The memory of its facts is free again when pastOf returns.
func (s *Service) pastOf(ctx context.Context, x Scan) (explain.Past, error) {
	all, release, err := s.Facts(ctx, x.Project, x.ID)
	if err != nil {
		return explain.Past{}, err
	}
	defer release()
	return explain.PastOf(all[0]), nil
}

package transfer

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/zonefile"
)

// spools keep on disk what the transfers that are under way have read, and a mark for each of them: an empty file in
// the data directory. A mark that is there when the program starts is of a transfer that the program did not survive.
type spools struct {
	dir *os.Root
	max int64 // bytes that the transfers of one project may have at once

	mu      sync.Mutex // guards the rest
	held    map[string]int64
	crashes map[uuid.UUID]int // transfers of a zone in a row that the program did not survive
}

// maxSpooled is how many bytes the transfers of one project may have on disk. Quotas and memory are the nearer limits.
const maxSpooled = 1 << 30

const markPrefix = "transfer-"

// markName is the name of a zone's mark. It holds the number of transfers in a row that ended the program, with the one
// that is under way: nothing must be written into the file.
func markName(id uuid.UUID, n int) string { return markPrefix + id.String() + "." + strconv.Itoa(n) }

func newSpools(dir *os.Root, most int) *spools {
	return &spools{dir: dir, max: int64(most), held: map[string]int64{}, crashes: map[uuid.UUID]int{}}
}

// recover reads the marks that a process before this one left.
func (s *spools) recover() error {
	files, err := fs.ReadDir(s.dir.FS(), ".")
	for _, f := range files {
		name, ok := strings.CutPrefix(f.Name(), markPrefix)
		zone, count, _ := strings.Cut(name, ".")
		id, err := uuid.Parse(zone)
		n, err2 := strconv.Atoi(count)
		if ok && err == nil && err2 == nil {
			s.crashes[id] = max(s.crashes[id], n)
		}
	}
	return err
}

// forget removes the mark of a zone.
func (s *spools) forget(id uuid.UUID) {
	s.mu.Lock()
	n := s.crashes[id]
	delete(s.crashes, id)
	s.mu.Unlock()
	for ; n > 0; n-- { // begin leaves that of the crash before
		_ = s.dir.Remove(markName(id, n))
	}
}

// begin makes the mark of a transfer and a spool for it. The caller calls end.
func (s *spools) begin(id uuid.UUID, project string) (*spool, error) {
	s.mu.Lock()
	s.crashes[id]++
	n := s.crashes[id]
	s.mu.Unlock()
	mark, err := s.dir.OpenFile(markName(id, n), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		s.forget(id)
		return nil, fmt.Errorf("mark the transfer: %w", err)
	}
	_ = mark.Close() // nothing was written
	stage, err := zonefile.NewStage(s.dir)
	if err != nil {
		s.forget(id)
		return nil, fmt.Errorf("keep the transfer: %w", err)
	}
	return &spool{Stage: stage, spools: s, zone: id, project: project}, nil
}

// spool is what one transfer has read.
type spool struct {
	*zonefile.Stage
	spools  *spools
	zone    uuid.UUID
	project string
}

// put keeps a record.
func (s *spool) put(r zonefile.Record) error {
	before := s.Bytes()
	err := s.Add(r)
	all, most := s.spools.count(s.project, s.Bytes()-before), s.spools.max // of a record that fails, too: end takes it off
	switch {
	case err != nil:
		return fmt.Errorf("keep the transfer: %w", err)
	case s.Bytes() > most:
		return refuse("the zone has more than %d bytes, which is the limit", most)
	case all > most:
		return refuse("the transfers of the project that run now have more than %d bytes together, which is the limit; "+
			"the zone is tried again later", most)
	}
	return nil
}

// count adds to the bytes that the transfers of a project have, and returns them.
func (s *spools) count(project string, n int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[project] += n
	all := s.held[project]
	if all == 0 {
		delete(s.held, project)
	}
	return all
}

// end removes all of it: the program has survived the transfer.
func (s *spool) end() {
	_ = s.Close()
	s.spools.count(s.project, -s.Bytes())
	s.spools.forget(s.zone)
}

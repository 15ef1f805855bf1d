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

// spools keeps the records that running transfers have read on disk, and a mark for each transfer: an empty file in the
// data directory. A mark that exists when the program starts belongs to a transfer during which the program crashed.
type spools struct {
	dir *os.Root
	max int64 // maximum number of bytes of the running transfers of one project

	mu      sync.Mutex // guards the rest
	held    map[string]int64
	crashes map[uuid.UUID]int // number of transfers of a zone in a row during which the program crashed
}

// maxSpooled is the maximum number of bytes that the transfers of one project may have on disk. Quotas and memory
// usually apply first.
const maxSpooled = 1 << 30

const markPrefix = "transfer-"

// markName returns the file name of a zone's mark. It includes the number of crashes in a row, with the running
// transfer counted as one, so that the file needs no content.
func markName(id uuid.UUID, n int) string { return markPrefix + id.String() + "." + strconv.Itoa(n) }

func newSpools(dir *os.Root, most int) *spools {
	return &spools{dir: dir, max: int64(most), held: map[string]int64{}, crashes: map[uuid.UUID]int{}}
}

// recoverMarks reads the marks of an earlier process.
func (s *spools) recoverMarks() error {
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

// removeMark removes the marks of a zone.
func (s *spools) removeMark(id uuid.UUID) {
	s.mu.Lock()
	n := s.crashes[id]
	delete(s.crashes, id)
	s.mu.Unlock()
	for ; n > 0; n-- { // begin does not remove the mark of the crash before
		_ = s.dir.Remove(markName(id, n))
	}
}

// begin creates the mark of a transfer and a spool for it. The caller must call end.
func (s *spools) begin(id uuid.UUID, project string) (*spool, error) {
	s.mu.Lock()
	s.crashes[id]++
	n := s.crashes[id]
	s.mu.Unlock()
	mark, err := s.dir.OpenFile(markName(id, n), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		s.removeMark(id)
		return nil, fmt.Errorf("mark the transfer: %w", err)
	}
	_ = mark.Close() // nothing was written
	stage, err := zonefile.NewStage(s.dir)
	if err != nil {
		s.removeMark(id)
		return nil, fmt.Errorf("keep the transfer: %w", err)
	}
	return &spool{Stage: stage, spools: s, zone: id, project: project}, nil
}

// spool holds the records that one transfer has read.
type spool struct {
	*zonefile.Stage
	spools  *spools
	zone    uuid.UUID
	project string
}

// put adds a record.
func (s *spool) put(r zonefile.Record) error {
	before := s.Bytes()
	err := s.Add(r)
	// also for a record that fails: end subtracts it
	all, most := s.spools.count(s.project, s.Bytes()-before), s.spools.max
	switch {
	case err != nil:
		return fmt.Errorf("keep the transfer: %w", err)
	case s.Bytes() > most:
		return refuse("the zone is larger than the limit of %d bytes", most)
	case all > most:
		return refuse("the running transfers of the project are together larger than the limit of %d bytes; "+
			"the zone is tried again later", most)
	}
	return nil
}

// count adds n to the bytes of the transfers of a project, and returns the sum.
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

// end removes the spool and the mark: the program has survived the transfer.
func (s *spool) end() {
	_ = s.Close()
	s.spools.count(s.project, -s.Bytes())
	s.spools.removeMark(s.zone)
}

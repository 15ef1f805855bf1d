package designate_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
)

// upload starts the upload of a zone file. It returns the writer for the file, and a channel with the status.
func (s *server) upload(who httpapi.Caller) (*io.PipeWriter, <-chan int) {
	r, w := io.Pipe()
	req := httptest.NewRequest("POST", "http://dns.test/v2/zones/tasks/imports", r)
	req.Header.Set("Content-Type", "text/dns")
	status := make(chan int, 1)
	go func() {
		rec := httptest.NewRecorder()
		as(who, s.handler).ServeHTTP(rec, req)
		status <- rec.Code
	}()
	return w, status
}

// TestSlowUploads checks that slow uploads use only the slots of their own project, and that an unfinished upload does
// not delay imports.
func TestSlowUploads(t *testing.T) {
	s := newServer(t, designate.Settings{})
	var pipes []*io.PipeWriter
	var replies []<-chan int
	for range 4 {
		w, status := s.upload(alice)
		if _, err := io.WriteString(w, "$ORIGIN slow.test.\n"); err != nil { // returns when the server reads
			t.Fatal(err)
		}
		pipes, replies = append(pipes, w), append(replies, status)
	}
	file := strings.ReplaceAll(zoneText, "example.org.", "bob.test.")
	s.want(503, request{alice, "POST /v2/zones/tasks/imports", file, []string{"Content-Type: text/dns"}})
	if res := s.imports(bob, file, ""); res.str("status") != "COMPLETE" {
		t.Errorf("bob's import: %s", res.Body)
	}
	for i, w := range pipes {
		w.CloseWithError(io.ErrUnexpectedEOF)
		if got := <-replies[i]; got != 400 {
			t.Errorf("a file that breaks off = %d, want 400", got)
		}
	}
	s.imports(alice, file, "")
}

func TestImportLeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	spool, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.Close()
	s := newServer(t, designate.Settings{Spool: spool})
	if res := s.imports(alice, zoneText, ""); res.str("status") != "COMPLETE" {
		t.Errorf("import: %s", res.Body)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestImportStopsAtQuota checks that the server stops staging a file with more records than the quota allows.
func TestImportStopsAtQuota(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.ZoneRecords = 3 }), nil)
	if res := s.imports(alice, zoneText+"not a record", ""); !strings.Contains(res.str("message"),
		"Quota exceeded for zone_records: 4 would be more than 3") {
		t.Errorf("import: %s", res.Body)
	}
}

// TestImportReadsOn checks that the server reads a bad file to its end: a client that is still sending sees the reply
// only then.
func TestImportReadsOn(t *testing.T) {
	s := newServer(t, designate.Settings{})
	body := strings.NewReader("this is no zone file\n" + strings.Repeat("; more of it\n", 100_000))
	req := httptest.NewRequest("POST", "http://dns.test/v2/zones/tasks/imports", body)
	req.Header.Set("Content-Type", "text/dns")
	rec := httptest.NewRecorder()
	as(alice, s.handler).ServeHTTP(rec, req)
	if rec.Code != 202 || body.Len() > 0 {
		t.Errorf("status %d with %d bytes unread, want 202 and none", rec.Code, body.Len())
	}
}

// TestImportBomb sends a file that the server has not enough memory for. The server refuses the file while it reads,
// with advice, and the import of another project continues.
func TestImportBomb(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{},
		quotas(func(q *publish.Quotas) { q.ZoneRecords, q.ZoneRecordsets = -1, -1 }),
		budget.New(64<<20))
	var file strings.Builder
	file.WriteString("$ORIGIN bomb.test.\n$TTL 300\n@ SOA ns1.example.net. a.bomb.test. 1 2 3 4 5\n")
	file.WriteString("@ NS ns1.example.net.\n")
	for i := range 100_000 {
		fmt.Fprintf(&file, "h%d A 192.0.2.1\n", i)
	}
	res := s.imports(alice, file.String(), "")
	if m := res.str("message"); res.str("status") != "ERROR" ||
		!strings.Contains(m, "raise the memory limit of the server, which is 64 MiB") {
		t.Errorf("import of a bomb: %s", res.Body)
	}
	if res := s.imports(bob, zoneText, ""); res.str("status") != "COMPLETE" {
		t.Errorf("bob's import: %s", res.Body)
	}
}

// TestImportOfLargeRecords checks that the quota of records also bounds their bytes: few records can be large.
func TestImportOfLargeRecords(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.ZoneRecords = 100 }), nil)
	file := zoneText
	for i := range 10 {
		file += fmt.Sprintf("t%d TXT%s\n", i, strings.Repeat(` "`+strings.Repeat("x", 250)+`"`, 100))
	}
	if res := s.imports(alice, file, ""); !strings.Contains(res.str("message"), "Quota exceeded for bytes of a zone") {
		t.Errorf("import: %s", res.Body)
	}
}

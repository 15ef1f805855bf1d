package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/zonefile"
)

func TestHeadTTL(t *testing.T) {
	tests := []struct {
		head string
		want uint32
		ok   bool
	}{
		{"$TTL 300\n@ SOA", 300, true},
		{"; comment\n\n$ORIGIN example.org.\n$ttl 1h30m ; ninety minutes\n", 5400, true},
		{"$TTL 0\r\n", 0, true},
		{"@ SOA x y 1 1 1 1 1\n$TTL 300\n", 0, false}, // it applies only to the records that follow
		{"$ORIGIN example.org.\n@ SOA", 0, false},
		{"; $TTL 300\n@ SOA", 0, false},
		{"$TTL soon\n", 0, false},
		{"", 0, false},
	}
	for _, tt := range tests {
		if got, ok := headTTL([]byte(tt.head)); got != tt.want || ok != tt.ok {
			t.Errorf("headTTL(%q) = %d, %t, want %d, %t", tt.head, got, ok, tt.want, tt.ok)
		}
	}
}

// TestNormalForm checks the body of the request: no record depends on a previous line or on another file.
func TestNormalForm(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	in := `$ORIGIN example.org.
$TTL 5m
@ SOA ns1 hostmaster 1 1h 10m 1d 5m
  NS ns1
ns1 1m A 192.0.2.53
    AAAA 2001:db8::53
$GENERATE 1-2 h$ CNAME ns1
t TXT ( "a b"
        c )
`
	want := `$ORIGIN example.org.
$TTL 300
example.org. 300 IN SOA ns1.example.org. hostmaster.example.org. 1 3600 600 86400 300
example.org. 300 IN NS ns1.example.org.
ns1.example.org. 60 IN A 192.0.2.53
ns1.example.org. 300 IN AAAA 2001:db8::53
h1.example.org. 300 IN CNAME ns1.example.org.
h2.example.org. 300 IN CNAME ns1.example.org.
t.example.org. 300 IN TXT "a b" "c"
`
	s, err := readZoneText(t.Context(), in, zonefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(s.body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("normal form (-want +got):\n%s", diff)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if s.records != 7 || s.names() != 5 {
		t.Errorf("%d records and %d names, want 7 and 5", s.records, s.names())
	}
	// The temporary file is deleted when it is created, so that even a crash leaves no file.
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v, want none", left, err)
	}
}

// readZoneText reads a zone file from standard input.
func readZoneText(ctx context.Context, text string, o zonefile.Options) (*zoneUpload, error) {
	return readZoneFile(ctx, "-", strings.NewReader(text), o, cli.NewProgress(io.Discard, true))
}

// largeZone returns a zone file that is larger than the buffer. It ends with the given line.
func largeZone(end string) string {
	head := "$ORIGIN example.org.\n$TTL 300\n@ SOA ns1 h 1 1 1 1 1\n@ NS ns1\n"
	return head + strings.Repeat("www A 192.0.2.1\n", 20_000) + end
}

// TestErrorAbortsBody checks an error in a file whose first part was sent already. The body must end with an error, not
// with EOF, because the server would take it for complete.
func TestErrorAbortsBody(t *testing.T) {
	s, err := readZoneText(t.Context(), largeZone("www A 192.0.2.300\n"), zonefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, s.body); err == nil || n == 0 {
		t.Errorf("sent %d bytes, err = %v, want some bytes and then an error", n, err)
	}
	if err := s.end(); err == nil || !strings.Contains(err.Error(), "standard input:20005:7: ") {
		t.Errorf("end() = %v, want the position of the error", err)
	}
}

// TestBodyNotRead checks that end returns no error of the file when the server refuses the request early.
func TestBodyNotRead(t *testing.T) {
	s, err := readZoneText(t.Context(), largeZone(""), zonefile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.end(); err != nil {
		t.Errorf("end() = %v, want nothing", err)
	}
}

func TestReadInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := readZoneText(ctx, "@ A", zonefile.Options{Origin: dnsname.Root})
	if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitUnknown || f.Text != "interrupted" {
		t.Errorf("err = %v, want interrupted", err)
	}
}

// BenchmarkReadZoneFile measures the work of the client in an import.
func BenchmarkReadZoneFile(b *testing.B) {
	var zone bytes.Buffer
	zone.WriteString("$ORIGIN example.org.\n$TTL 300\n@ SOA ns1 h 1 1 1 1 1\n@ NS ns1\n")
	for i := range 100_000 {
		zone.WriteString("host")
		zone.WriteString(strings.Repeat("0", i%3))
		for _, n := range []int{i % 26, i / 26 % 26, i / 676 % 26, i / 17576} {
			zone.WriteRune(rune('a' + n))
		}
		zone.WriteString(" A 192.0.2.1\n")
	}
	b.ReportAllocs()
	for b.Loop() {
		progress := cli.NewProgress(io.Discard, true)
		s, err := readZoneFile(b.Context(), "-", bytes.NewReader(zone.Bytes()), zonefile.Options{}, progress)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, s.body); err != nil {
			b.Fatal(err)
		}
		if err := s.end(); err != nil {
			b.Fatal(err)
		}
	}
}

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
		{"@ SOA x y 1 1 1 1 1\n$TTL 300\n", 0, false}, // it is not the zone's, but of what follows
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

// TestNormalForm shows what is sent: nothing of it depends on a line before or on another file.
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
	s, err := readZoneFile(t.Context(), "-", strings.NewReader(in), zonefile.Options{}, cli.NewProgress(io.Discard, true))
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
	// Not even now: whatever ends the program leaves nothing behind.
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v, want none", left, err)
	}
}

// largeZone is more than what is gathered before something is sent.
func largeZone(end string) string {
	return "$ORIGIN example.org.\n$TTL 300\n@ SOA ns1 h 1 1 1 1 1\n@ NS ns1\n" + strings.Repeat("www A 192.0.2.1\n", 20_000) + end
}

// TestMistakeBreaksOff: a mistake behind what was sent already is the end of the body, and not as after the last
// record.
func TestMistakeBreaksOff(t *testing.T) {
	s, err := readZoneFile(t.Context(), "-", strings.NewReader(largeZone("www A 192.0.2.300\n")), zonefile.Options{}, cli.NewProgress(io.Discard, true))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, s.body); err == nil || n == 0 {
		t.Errorf("sent %d octets, err = %v, want some and then an error", n, err)
	}
	if err := s.end(); err == nil || !strings.Contains(err.Error(), "standard input:20005:7: ") {
		t.Errorf("end() = %v, want the place of the mistake", err)
	}
}

// TestUnwantedBody: a server that refuses early is not blamed on the file.
func TestUnwantedBody(t *testing.T) {
	s, err := readZoneFile(t.Context(), "-", strings.NewReader(largeZone("")), zonefile.Options{}, cli.NewProgress(io.Discard, true))
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
	_, err := readZoneFile(ctx, "-", strings.NewReader("@ A"), zonefile.Options{Origin: dnsname.Root}, cli.NewProgress(io.Discard, true))
	if f, ok := errors.AsType[*cli.Failure](err); !ok || f.Code != cli.ExitUnknown || f.Text != "interrupted" {
		t.Errorf("err = %v, want interrupted", err)
	}
}

// BenchmarkReadZoneFile is the client's share of an import.
func BenchmarkReadZoneFile(b *testing.B) {
	var zone bytes.Buffer
	zone.WriteString("$ORIGIN example.org.\n$TTL 300\n@ SOA ns1 h 1 1 1 1 1\n@ NS ns1\n")
	for i := range 100_000 {
		zone.WriteString("host")
		zone.WriteString(strings.Repeat("0", i%3))
		zone.WriteString(string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576)))
		zone.WriteString(" A 192.0.2.1\n")
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := readZoneFile(b.Context(), "-", bytes.NewReader(zone.Bytes()), zonefile.Options{}, cli.NewProgress(io.Discard, true))
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

package wire_test

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

const header = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

func TestNames(t *testing.T) {
	label := "\x3f" + strings.Repeat("a", 63)
	tests := []struct {
		name, msg string
		at        int
		next      int    // offset after the name; -1: it cannot be skipped
		want      string // the name without compression; empty: it cannot be read
	}{
		{"root", header + "\x00", 12, 13, "\x00"},
		{"labels", header + "\x01a\x02bc\x00", 12, 18, "\x01a\x02bc\x00"},
		{"pointer", header + "\x01a\x00\x01b\xc0\x0c", 15, 19, "\x01b\x01a\x00"},
		{"case stays", header + "\x01A\x00", 12, 15, "\x01A\x00"},
		{"pointer to itself", header + "\xc0\x0c", 12, 14, ""},
		{"pointer ahead", header + "\xc0\x0e\x00", 12, 14, ""},
		{"two pointers that lead to each other", header + "\xc0\x0e\xc0\x0c", 14, 16, ""},
		{"half a pointer", header + "\xc0", 12, -1, ""},
		{"a label that is not whole", header + "\x03ab", 12, -1, ""},
		{"no end", header + "\x01a", 12, -1, ""},
		{"a length that is none", header + "\x40" + strings.Repeat("a", 64) + "\x00", 12, -1, ""},
		{"255 bytes", header + label + label + label + "\x3d" + strings.Repeat("a", 61) + "\x00", 12, 267,
			label + label + label + "\x3d" + strings.Repeat("a", 61) + "\x00"},
		{"256 bytes", header + label + label + label + "\x3e" + strings.Repeat("a", 62) + "\x00", 12, 268, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next, ok := wire.SkipName([]byte(tt.msg), tt.at)
			if ok != (tt.next >= 0) || ok && next != tt.next {
				t.Errorf("SkipName = %d, %v; want %d", next, ok, tt.next)
			}
			got, ok := wire.AppendName(nil, []byte(tt.msg), tt.at)
			if ok != (tt.want != "") || ok && string(got) != tt.want {
				t.Errorf("AppendName = %q, %v; want %q", got, ok, tt.want)
			}
		})
	}
}

// TestRecord reads what AppendRecord writes, compares with another implementation, and refuses truncated records.
func TestRecord(t *testing.T) {
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeA)
	msg, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	at := len(msg)
	msg = wire.AppendRecord(msg, wire.HeaderSize, rr.TypeA, 300, "\xc0\x00\x02\x01")
	msg[7] = 1
	if err := m.Unpack(msg); err != nil || len(m.Answer) != 1 ||
		m.Answer[0].String() != "example.org.\t300\tIN\tA\t192.0.2.1" {
		t.Errorf("the message is %v (%v)", m, err)
	}
	r, ok := wire.ReadRecord(msg, at)
	if want := (wire.Record{Type: rr.TypeA, Fixed: at + 2, Data: at + 12, Next: len(msg)}); !ok || r != want {
		t.Errorf("ReadRecord = %+v, %v; want %+v", r, ok, want)
	}
	for end := at; end < len(msg); end++ {
		if r, ok := wire.ReadRecord(msg[:end], at); ok {
			t.Errorf("ReadRecord of %d bytes of %d = %+v", end, len(msg), r)
		}
	}
}

// TestRcodeText compares with the library, which calls 16 by its name in a TSIG.
func TestRcodeText(t *testing.T) {
	for rcode, want := range dns.RcodeToString {
		if rcode == dns.RcodeBadVers {
			want = "BADVERS"
		}
		if got := wire.RcodeText(rcode); got != want {
			t.Errorf("RcodeText(%d) = %q, want %q", rcode, got, want)
		}
	}
	for _, rcode := range []int{-1, 12, 24, 4095} {
		if got := wire.RcodeText(rcode); !strings.HasPrefix(got, "RCODE") {
			t.Errorf("RcodeText(%d) = %q, want its number", rcode, got)
		}
	}
}

package dnsserver

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"

	"github.com/nameplane/nameplane/internal/wire"
)

// TestRequestMemory checks that the streams of one client cannot hold any number of large messages.
func TestRequestMemory(t *testing.T) {
	s := listening(t, Config{QUIC: []string{"127.0.0.1:0"}, QUICConfig: testTLS(t, "doq")})
	s.streams = newCapacity(4 * 3 * units(wire.MaxSize))
	run(t, s)
	c, err := quic.DialAddr(t.Context(), s.Bound().QUIC[0],
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"doq"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseWithError(0, "")
	half := binary.BigEndian.AppendUint16(nil, wire.MaxSize)
	half = append(half, make([]byte, wire.MaxSize-1)...)
	ended := make(chan error, 4)
	for range cap(ended) {
		stream, err := c.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.SetDeadline(time.Now().Add(patience))
		go func() {
			_, err := stream.Write(half)
			if err == nil {
				_, err = io.ReadAll(stream)
			}
			ended <- err
		}()
	}
	for range cap(ended) { // the first stream to end is the one that the server refused
		if reset, ok := errors.AsType[*quic.StreamError](<-ended); ok && reset.ErrorCode == doqExcessiveLoad {
			return
		}
	}
	t.Error("four messages of 64 KiB are kept, and the client may have three")
}

// TestRequestMemoryOverHTTPS checks that headers, bodies and replies over HTTPS count, and that they are freed.
func TestRequestMemoryOverHTTPS(t *testing.T) {
	s := listening(t, Config{})
	h := s.HTTPS()
	run(t, s)
	ask := func(query []byte, header string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, dohPath, bytes.NewReader(query))
		r.Header.Set("Content-Type", dohType)
		r.Header.Set("X-Filler", header)
		h.ServeHTTP(w, r)
		return w.Code
	}
	small := packed(t, question("www.example.org.", dns.TypeA))
	large := append(bytes.Clone(small), make([]byte, 3*queryUnit)...)
	filler := string(make([]byte, 3*queryUnit))
	huge := packed(t, withOPT(question("huge.example.org.", dns.TypeTXT), 1232))
	for _, tt := range []struct {
		name   string
		query  []byte
		header string
	}{{"body", large, ""}, {"header", small, filler}, {"reply", huge, ""}} {
		s.streams = newCapacity(4 * 2)
		if code := ask(tt.query, tt.header); code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d, want 503", tt.name, code)
		}
		if code := ask(small, ""); code != http.StatusOK {
			t.Errorf("%s: then a small query has status %d", tt.name, code)
		}
		if n := s.streams.len(); n != 0 {
			t.Errorf("%s: %d units are not freed", tt.name, n)
		}
	}
}

package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// pipes is a network in memory, because synctest cannot fake the time of sockets.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

// inMemory serves a handler inside a Frame and returns a token for it.
func inMemory(t *testing.T, limits httpapi.Limits, h http.HandlerFunc) (p pipes, token string) {
	t.Helper()
	r := accesstest.Open(t, nil)
	p = make(pipes)
	srv := &http.Server{Handler: httpapi.Frame{Access: r.Access, Limits: limits}.Wrap(h)}
	go srv.Serve(p)
	t.Cleanup(func() {
		close(p)
		srv.Close()
	})
	return p, r.Admin
}

// TestBodyTimes sends bodies at different speeds.
func TestBodyTimes(t *testing.T) {
	const rate = 16 << 10 // the slowest allowed body in bytes per second
	tests := []struct {
		name   string
		pieces int
		bytes  int // the size of each piece
		every  time.Duration
		ok     bool
	}{
		{"small and slow", 20, 1, time.Second, true},
		{"slow for too long", 60, rate / 10, time.Second, false},
		{"a trickle", 60, 1, time.Second, false},
		{"fast enough for as long as it takes", 120, rate, time.Second, true},
		{"much, with pauses", 3, 30 * rate, 20 * time.Second, true},
		{"much, and then silence", 3, 30 * rate, 31 * time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got error
				p, token := inMemory(t, httpapi.Limits{Body: 4 << 20}, func(_ http.ResponseWriter, r *http.Request) {
					_, got = io.Copy(io.Discard, r.Body)
				})
				client := &http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
				req, err := http.NewRequest("POST", "http://localhost/x",
					&slow{pieces: tt.pieces, bytes: tt.bytes, every: tt.every})
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Auth-Token", token)
				if res, err := client.Do(req); err == nil {
					res.Body.Close()
				}
				time.Sleep(2 * time.Minute) // the client may still be sleeping before its next piece
				if (got == nil) != tt.ok {
					t.Errorf("reading the body: %v, want ok %v", got, tt.ok)
				}
			})
		})
	}
}

// slow is a body that arrives in pieces, the first after a second.
type slow struct {
	pieces, bytes int
	every, waited time.Duration
	left          int // the bytes left of the current piece
}

func (s *slow) Read(p []byte) (int, error) {
	if s.left == 0 {
		if s.pieces == 0 {
			return 0, io.EOF
		}
		if s.waited == 0 {
			s.waited = time.Second
		} else {
			s.waited = s.every
		}
		time.Sleep(s.waited)
		s.pieces, s.left = s.pieces-1, s.bytes
	}
	n := min(len(p), s.left)
	s.left -= n
	return n, nil
}

// TestUnreadBody does not read a body that never arrives: the connection must not stay open for ever.
func TestUnreadBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, token := inMemory(t, httpapi.Limits{}, func(http.ResponseWriter, *http.Request) {})
		c, err := p.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"+
			"X-Auth-Token: "+token+"\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("the connection was kept for %v", took)
		}
	})
}

// TestLongWork checks that the deadlines for the body and the reply do not abort a handler that takes longer than both.
// It does so twice on the same connection.
func TestLongWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, token := inMemory(t, httpapi.Limits{}, func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); err != nil {
				httpapi.Fail(w, r, err)
				return
			}
			select {
			case <-r.Context().Done():
				httpapi.Error(w, r, http.StatusGone, "the request was ended under the handler")
			case <-time.After(10 * time.Minute):
				_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20))
			}
		})
		tr := &http.Transport{DialContext: p.dial}
		defer tr.CloseIdleConnections()
		for range 2 {
			req, err := http.NewRequest("POST", "http://localhost/x", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Auth-Token", token)
			res, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 || n != 1<<20 {
				t.Fatalf("answer %d, %d bytes, %v", res.StatusCode, n, err)
			}
		}
	})
}

// TestSlowReader reads the beginning of a long reply, and then a little each minute, which is too slow. The server must
// close the connection.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrote error
		p, token := inMemory(t, httpapi.Limits{}, func(w http.ResponseWriter, _ *http.Request) {
			_, wrote = w.Write(make([]byte, 10<<20))
		})
		c, err := p.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: "+token+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || res.StatusCode != 200 {
			t.Fatalf("answer %v, %v", res, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if wrote == nil || errors.Is(wrote, io.EOF) {
			t.Errorf("the handler's write ended with %v, want a timeout", wrote)
		}
	})
}

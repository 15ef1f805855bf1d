package admin_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// oneConn is a listener with one connection, in memory: synctest cannot fake the time of sockets.
type oneConn chan net.Conn

func (l oneConn) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l oneConn) Close() error   { return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowBackup reads a backup at different speeds, without a long pause. A backup keeps the store from reusing pages,
// so a client that reads slowly must not hold it for hours: the backup ends, and the next one can start.
func TestSlowBackup(t *testing.T) {
	const size = 50 << 20
	for _, tt := range []struct {
		name  string
		every time.Duration // the time for each 256 KiB
		whole bool
	}{
		{"fast enough", 200 * time.Millisecond, true},
		{"ten times too slow", 2500 * time.Millisecond, false},
		{"just before the longest pause", 29 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ended time.Time
				bytes := int64(size)
				r := newRig(t, func(w io.Writer) error {
					_, err := io.CopyN(w, zeros{}, bytes)
					ended = time.Now()
					return err
				})
				client, server := net.Pipe()
				listener := make(oneConn, 1)
				listener <- server
				srv := &http.Server{Handler: r.handler}
				go srv.Serve(listener)
				defer func() {
					close(listener)
					client.Close()
					srv.Close()
				}()
				start := time.Now()
				if _, err := io.WriteString(client, "GET /admin/v1/backup HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: "+
					r.Admin+"\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				res, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("answer %v, %v", res, err)
				}
				for err == nil {
					time.Sleep(tt.every)
					_, err = io.CopyN(io.Discard, res.Body, 256<<10)
				}
				if whole := err == io.EOF; whole != tt.whole {
					t.Errorf("the client read until %v, want the whole backup: %v", err, tt.whole)
				}
				synctest.Wait()
				if held := ended.Sub(start); held > size>>20*time.Second+30*time.Second {
					t.Errorf("the store was read for %v", held)
				}
				bytes = 1
				if code, body := r.do(r.Admin, "GET", "/admin/v1/backup", ""); code != http.StatusOK || len(body) != 1 {
					t.Errorf("the next backup: %d, %d bytes", code, len(body))
				}
			})
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

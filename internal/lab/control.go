package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// controlName is the socket through which other processes change the lab.
const controlName = "control.sock"

// controlTime limits the duration of a request.
const controlTime = 5 * time.Second

// Flip replaces the records of a name at its authorities, so that users can watch caches follow. data is in
// presentation format; empty data removes the records. Flip returns the number of changed servers.
func (l *Lab) Flip(ctx context.Context, name dnsname.Name, typ rr.Type, data []string) (int, error) {
	if l.Net != nil {
		return l.Net.Flip(name, typ, data)
	}
	var n int
	answer, err := l.request(ctx, strings.Join(append([]string{"flip", name.String(), typ.String()}, data...), "\t"))
	if err == nil {
		_, err = fmt.Sscan(answer, &n)
	}
	if err != nil {
		return 0, fmt.Errorf("flip %v: %w", name, err)
	}
	return n, nil
}

// request sends a line to the process that runs the lab. The answer begins with "ok", or it is an error message.
func (l *Lab) request(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(l.dir, controlName))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoLab, err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(controlTime))
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return "", err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", err
	}
	result, ok := strings.CutPrefix(strings.TrimSpace(answer), "ok ")
	if !ok {
		return "", errors.New(strings.TrimSpace(answer))
	}
	return result, nil
}

// alive reports whether a process runs a lab in the folder.
func (l *Lab) alive(ctx context.Context) bool {
	_, err := l.request(ctx, "ping")
	return err == nil
}

// listenControl opens the control socket. The permissions of the folder restrict who can use it.
func (l *Lab) listenControl() (net.Listener, error) {
	path := filepath.Join(l.dir, controlName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

// serveControl answers one request on each connection, so that a client which stops in the middle holds nothing.
func (l *Lab) serveControl(ctx context.Context, at net.Listener) error {
	return accept(ctx, at, func(conn net.Conn) {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(controlTime))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			fmt.Fprintln(conn, l.answer(strings.Split(strings.TrimSpace(line), "\t")))
		}
	})
}

// answer runs a request and returns the answer.
func (l *Lab) answer(words []string) string {
	if words[0] == "ping" {
		return "ok here"
	}
	if words[0] != "flip" || len(words) < 3 {
		return "unknown request"
	}
	name, err := dnsname.Parse(words[1])
	if err != nil {
		return err.Error()
	}
	typ, err := rr.ParseType(words[2])
	if err != nil {
		return err.Error()
	}
	n, err := l.Net.Flip(name, typ, words[3:])
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("ok %d", n)
}

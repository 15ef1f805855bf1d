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

// controlName is the socket by which other processes change something in a lab.
const controlName = "control.sock"

// controlTime is how long a request may take.
const controlTime = 5 * time.Second

// Flip changes the records of a name at its authority, so that one can watch caches follow: to these data in presentation form,
// or to none. It tells how many servers have the change.
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

// request sends a line to the process that has the lab. Its answer begins with ok or with what is wrong.
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

// alive reports whether a process has a lab in the folder.
func (l *Lab) alive(ctx context.Context) bool {
	_, err := l.request(ctx, "ping")
	return err == nil
}

// listenControl opens the socket. Who may enter the folder may use it: nobody else.
func (l *Lab) listenControl() (net.Listener, error) {
	path := filepath.Join(l.dir, controlName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

func (l *Lab) serveControl(ctx context.Context, at net.Listener) error {
	return accept(ctx, at, func(conn net.Conn) {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(controlTime))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
			fmt.Fprintln(conn, l.answer(strings.Split(strings.TrimSpace(line), "\t")))
		}
	})
}

// answer does what a request says.
func (l *Lab) answer(words []string) string {
	if words[0] == "ping" {
		return "ok here"
	}
	if words[0] != "flip" || len(words) < 3 {
		return "not understood"
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

package mec

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestReplay sends what mepservers send, octet for octet, over one connection as they do.
func TestReplay(t *testing.T) {
	for _, name := range []string{"mepserver_a", "mepserver_b"} {
		for _, compat := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s compat %v", name, compat), func(t *testing.T) { replay(t, name, compat) })
		}
	}
}

func replay(t *testing.T, name string, compat bool) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	config := settings
	if compat {
		config = strings.Replace(settings, "authentication: none", "authentication: none, edgegallery_status: true", 1)
	}
	s := start(t, filepath.Join(newDir(t), "data"), config)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.MEP, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	replies := bufio.NewReader(conn)
	if len(archive.Files) < 10 {
		t.Fatalf("%d sections in %s", len(archive.Files), name)
	}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		step, want := archive.Files[i], strings.Split(strings.TrimSpace(string(archive.Files[i+1].Data)), "\n")
		head, body, _ := strings.Cut(string(step.Data), "\n\n")
		if _, err := fmt.Fprint(conn, strings.ReplaceAll(head, "\n", "\r\n"), "\r\n\r\n", strings.TrimSuffix(body, "\n")); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(replies, nil)
		if err != nil {
			t.Fatalf("%s: %v", step.Name, err)
		}
		res.Body.Close()
		if status := expected(want[0], head, compat); fmt.Sprint(res.StatusCode) != status {
			t.Errorf("%s: status %d, want %s", step.Name, res.StatusCode, status)
		}
		for _, line := range want[1:] {
			f := strings.Fields(line)
			s.says(f[0]+" "+f[1], strings.Join(f[2:], " "))
		}
	}
}

// expected is a status, or EdgeGallery's own for it.
func expected(status, head string, compat bool) string {
	if compat {
		switch {
		case status == "404" && strings.HasPrefix(head, "DELETE"):
			return "500"
		case status == "404" || status == "409":
			return "400"
		}
	}
	return status
}

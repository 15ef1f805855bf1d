package mec

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/nameplane/nameplane/test/server"
)

// TestReplay sends what programs of EdgeGallery sent, octet for octet, each request on a connection of its own that is then
// left open, as they do.
func TestReplay(t *testing.T) {
	for _, name := range []string{"mepserver_a", "mepserver_b", "mepm"} {
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
	if len(archive.Files) < 20 {
		t.Fatalf("%d sections in %s", len(archive.Files), name)
	}
	c := client{node: start(t, "", settings+fmt.Sprintf("mec: {edgegallery: %v}\n", compat))}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		step, want := archive.Files[i], strings.Split(strings.TrimSpace(string(archive.Files[i+1].Data)), "\n")
		head, body, _ := strings.Cut(string(step.Data), "\n\n")
		got := c.send(step.Name, strings.ReplaceAll(head, "\n", "\r\n")+"\r\n\r\n"+strings.TrimSuffix(body, "\n"))
		if status := expected(want[0], head, compat); got != status {
			t.Errorf("%s: %s, want %s", step.Name, got, status)
		}
		for _, line := range want[1:] {
			f := strings.Fields(line)
			c.says(f[0]+" "+f[1], strings.Join(f[2:], " "))
		}
	}
}

// client is who sends recorded requests.
type client struct {
	*node
	task string // the newest
}

var taskID = regexp.MustCompile(`/tasks/[^/]+/`)

// send sends a request, and returns the status, with the result when it asks how a task went. Tasks have other names than
// when it was recorded, and end when they end.
func (c *client) send(step, request string) string {
	c.t.Helper()
	asks := taskID.MatchString(request)
	if asks {
		request = taskID.ReplaceAllString(request, "/tasks/"+c.task+"/")
	}
	for deadline := time.Now().Add(server.Patience); ; time.Sleep(5 * time.Millisecond) {
		status, body := c.exchange(step, request)
		var task struct{ TaskID, ConfigResult string }
		_ = json.Unmarshal(body, &task) // most replies are of no task
		switch {
		case asks && task.ConfigResult == "PROCESSING" && time.Now().Before(deadline):
			continue
		case asks:
			return fmt.Sprint(status, " ", task.ConfigResult)
		case task.TaskID != "":
			c.task = task.TaskID
		}
		return fmt.Sprint(status)
	}
}

func (c *client) exchange(step, request string) (status int, body []byte) {
	c.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.MEP, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(server.Patience)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		c.t.Fatalf("%s: %v", step, err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.t.Fatalf("%s: %v", step, err)
	}
	defer res.Body.Close()
	// The recorded clients leave each connection open: what the server did not close would lock out the next one some day.
	if request[:3] != "GET" && !res.Close {
		c.t.Errorf("%s: the server keeps the connection open", step)
	}
	if body, err = io.ReadAll(res.Body); err != nil {
		c.t.Fatalf("%s: %v", step, err)
	}
	return res.StatusCode, body
}

// expected is a status, or that of EdgeGallery's DNS server for it.
func expected(status, head string, compat bool) string {
	if compat && strings.Contains(head, "/dns_server_mgmt/") {
		switch {
		case status == "404" && strings.HasPrefix(head, "DELETE"):
			return "500"
		case status == "404" || status == "409":
			return "400"
		}
	}
	return status
}

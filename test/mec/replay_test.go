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

// TestReplay sends the recorded bytes of EdgeGallery programs. Like these programs it sends each request on a new
// connection and leaves it open.
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

// client sends recorded requests.
type client struct {
	*node
	task string // the id of the newest task
}

var taskID = regexp.MustCompile(`/tasks/[^/]+/`)

// send sends a request and returns the status, and for a request about a task also its result. It replaces the recorded
// id of the task, and waits for the end of the task.
func (c *client) send(step, request string) string {
	c.t.Helper()
	asks := taskID.MatchString(request)
	if asks {
		request = taskID.ReplaceAllString(request, "/tasks/"+c.task+"/")
	}
	for deadline := time.Now().Add(server.Patience); ; time.Sleep(5 * time.Millisecond) {
		status, body := c.exchange(step, request)
		var task struct{ TaskID, ConfigResult string }
		_ = json.Unmarshal(body, &task) // most replies have no task
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
	// The recorded clients leave each connection open. If the server did not close them, it would run out of connections.
	if request[:3] != "GET" && !res.Close {
		c.t.Errorf("%s: the server keeps the connection open", step)
	}
	if body, err = io.ReadAll(res.Body); err != nil {
		c.t.Fatalf("%s: %v", step, err)
	}
	return res.StatusCode, body
}

// expected returns the status, or in compat mode the one of EdgeGallery's DNS server.
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

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"nameplane": main,
		"query":     query,
	})
}

// TestScript runs the scripts in testdata/script. A script can use nameplane and these commands:
//
//	serve [FLAG...]   start a server on $WORK/data; set NAMEPLANE_SERVER and DNS_ADDR
//	stop              stop the server with SIGTERM
//	query NAME TYPE   query the server; print the response code and the sorted answers
//	status N CMD...   run a command; its exit status must be N
//	lab [FLAG...]     start a lab in $WORK/lab
//	serial VAR ZONE   set a variable of the environment to the serial of a zone
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":  serveCommand,
			"stop":   stopCommand,
			"status": statusCommand,
			"serial": serialCommand,
			"lab":    labCommand,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("NAMEPLANE_SERVER", "http://127.0.0.1:1") // no other server of this machine
			e.Setenv("HTTP_PROXY", "http://127.0.0.1:1")       // no server elsewhere, even if the check of the address fails
			e.Setenv("TMPDIR", e.WorkDir)
			e.Values["server"] = &scriptServer{}
			return nil
		},
	})
}

// labCommand starts a lab that stops at the end of the script.
func labCommand(ts *testscript.TestScript, _ bool, args []string) {
	args = append([]string{"lab", "up", "--port", "0", "--dir", ts.MkAbs("lab")}, args...)
	cmd := exec.Command(findProgram(ts, "nameplane"), args...)
	log, err := os.Create(ts.MkAbs("lab.log"))
	ts.Check(err)
	cmd.Stderr, cmd.Stdout = log, log
	ts.Check(cmd.Start())
	s := &scriptServer{running: cmd}
	ts.Defer(func() { s.stop() })
	for range 400 {
		if _, err := os.Stat(ts.MkAbs("lab/lab.json")); err == nil {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	ts.Fatalf("the lab did not start\n%s", ts.ReadFile("lab.log"))
}

// scriptServer is the running server of a script. Its field is nil if none runs.
type scriptServer struct{ running *exec.Cmd }

func (s *scriptServer) stop() error {
	if s.running == nil {
		return nil
	}
	cmd := s.running
	s.running = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return cmd.Wait()
}

func serveCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("serve cannot be negated")
	}
	s := ts.Value("server").(*scriptServer)
	data := ts.MkAbs("data")
	ready := filepath.Join(data, "addresses.json")
	os.Remove(ready) // written by an earlier server
	args = append([]string{"serve", "--data", data, "--dns", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args...)
	cmd := exec.Command(findProgram(ts, "nameplane"), args...)
	log, err := os.Create(ts.MkAbs("serve.log"))
	ts.Check(err)
	cmd.Stderr, cmd.Stdout = log, log
	cmd.Dir = ts.Getenv("WORK")
	ts.Check(cmd.Start())
	s.running = cmd
	ts.Defer(func() { s.stop() })
	addresses, err := awaitAddresses(ready)
	if err != nil {
		ts.Fatalf("%v\n%s", err, ts.ReadFile("serve.log"))
	}
	ts.Setenv("NAMEPLANE_SERVER", addresses.HTTP)
	ts.Setenv("DNS_ADDR", addresses.DNS[0])
}

func stopCommand(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Value("server").(*scriptServer).stop())
}

func statusCommand(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = fmt.Sprint(exit.ExitCode())
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

func serialCommand(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("nameplane", "zone", "show", args[1], "-o", "json"))
	var z zoneReply
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &z))
	ts.Setenv(args[0], fmt.Sprint(z.Serial))
}

// findProgram returns the path of a program in the PATH of the script.
func findProgram(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	ts.Fatalf("no %s in PATH", name)
	return ""
}

type readyFile struct {
	DNS  []string `json:"dns"`
	HTTP string   `json:"http"`
}

// awaitAddresses waits for the file with addresses that a server writes when it is ready.
func awaitAddresses(path string) (readyFile, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		var a readyFile
		b, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(b, &a) == nil && len(a.DNS) > 0 && a.HTTP != "" {
			return a, nil
		}
		select {
		case <-ctx.Done():
			return a, fmt.Errorf("the server is not ready: no %s", path)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// query is the program behind the script command query.
func query() {
	name, typ := dns.Fqdn(os.Args[1]), dns.StringToType[os.Args[2]]
	r, err := dns.Exchange(new(dns.Msg).SetQuestion(name, typ), os.Getenv("DNS_ADDR"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(dns.RcodeToString[r.Rcode])
	var lines []string
	for _, rec := range r.Answer {
		lines = append(lines, strings.ReplaceAll(rec.String(), "\t", " "))
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
}

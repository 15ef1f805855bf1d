package cluster_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// asChild makes this program start a node and wait until a test kills it.
const asChild = "RIG_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) == "" {
		os.Exit(m.Run())
	}
	err := cluster.Run(func(string) {}, func(t cluster.T) {
		o := cluster.StartOVN(t, cluster.OVNOptions{})
		fmt.Println("folder", o.Dir)
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // ends with the parent at the latest
	})
	fmt.Println("ended", err)
}

// TestKilled kills a program with a node and checks that none of the node's processes outlives it.
func TestKilled(t *testing.T) {
	cluster.Need(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(line), "folder ")
	if !ok {
		t.Fatalf("the child says %q", line)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if n := len(mention(t, dir)); n < 6 {
		t.Errorf("%d processes of the node run, want 6", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	var left []string
	for end := time.Now().Add(soon); time.Now().Before(end); {
		if left = mention(t, dir); left == nil {
			return
		}
	}
	t.Errorf("still there: %v", left)
}

// mention returns the command lines of processes that contain a folder.
func mention(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), dir) {
			out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return out
}

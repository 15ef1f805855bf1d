package boltstore

import (
	"os"
	"os/exec"
	"testing"
)

// childEnv names the function that this test binary runs instead of the tests. Tests start the binary again to kill it,
// or to run it under a limit.
const childEnv = "BOLTSTORE_TEST_CHILD"

var children = map[string]func(path string){
	"write": childWrite,
}

func addChild(name string, run func(path string)) bool {
	children[name] = run
	return true
}

func TestMain(m *testing.M) {
	if run := children[os.Getenv(childEnv)]; run != nil {
		run(os.Args[1])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(t *testing.T, name, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, path)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// binaryVariable names an environment variable with the path of a program to test. Tests that run themselves again
// inside a namespace set it.
const binaryVariable = "NAMEPLANE_TEST_BINARY"

// Build returns the path of the nameplane program, built from this checkout.
//
// go run keeps the linked program in the build cache, and "-exec echo" prints its path. So the program is linked once
// for all suites, and two checkouts never share a file. After a change of the source, the first run prints a
// temporary file that no longer exists when go run returns. The second run prints the cached one.
var Build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		return path, nil
	}
	_, file, _, _ := runtime.Caller(0)
	for range 3 {
		cmd := exec.Command("go", "run", "-exec", "echo", "./cmd/nameplane")
		cmd.Dir = filepath.Join(filepath.Dir(file), "..", "..")
		cmd.Env = append(os.Environ(), "GOWORK=off") // the versions that users get, whatever module the test is in
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return "", fmt.Errorf("build nameplane: %w\n%s", err, exit.Stderr)
			}
			return "", fmt.Errorf("build nameplane: %w", err)
		}
		path := strings.TrimSpace(string(out))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("build nameplane: the build cache does not keep the program; is GOCACHE writable?")
})

// BuildEnv returns the environment for a process that must test the same program as this one.
func BuildEnv() ([]string, error) {
	path, err := Build()
	return append(os.Environ(), binaryVariable+"="+path), err
}

// Binary is Build for a test.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

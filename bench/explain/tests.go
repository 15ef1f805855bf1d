package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// runTest runs tests of a package and returns their output. ok says whether they passed. The figures of the page are
// those that the tests check: a second program for the same measurement could disagree with them.
func runTest(pkg, name string, args ...string) (lines []string, ok bool, err error) {
	out, err := exec.Command("go", append([]string{"test", pkg, "-run", name, "-count", "1", "-timeout", "40m", "-v"},
		args...)...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, false, err
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		// A skipped test would count as passed, although nothing was measured.
		if strings.HasPrefix(line, "--- SKIP") {
			return nil, false, fmt.Errorf("%s was skipped:\n%s", name, out)
		}
		// The file and line of a message are of no interest here.
		if at, rest, found := strings.Cut(line, ": "); found && strings.Contains(at, "_test.go:") {
			line = rest
		}
		lines = append(lines, line)
	}
	return lines, err == nil, nil
}

// corpus scans trees with known faults.
func corpus(o options) (f figure, err error) {
	f = figure{title: fmt.Sprintf("%d healthy trees, %d with one to three faults", o.healthy, o.cases),
		want: "nothing of severity warning or worse in healthy ones; recall and precision of each check at least 98 %; " +
			"each fault alone is found in five of five trees",
		head: []string{"check", "faults that it should find", "found", "found wrongly", "recall", "precision"}}
	lines, ok, err := runTest("./test/explain", "^(TestHealthy|TestCorpus|TestEachFault)$",
		"-healthy", strconv.Itoa(o.healthy), "-cases", strconv.Itoa(o.cases))
	if err != nil {
		return f, err
	}
	f.met = ok
	alarms := "0"
	alone, found := 0, 0
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "--- FAIL: TestHealthy"):
			alarms = "some"
		case strings.HasPrefix(line, "--- PASS: TestEachFault/"):
			alone, found = alone+1, found+1
		case strings.HasPrefix(line, "--- FAIL: TestEachFault/"):
			alone++
		}
		if cells := strings.Split(strings.Trim(line, "| "), " | "); strings.HasPrefix(line, "| ") &&
			len(cells) == len(f.head) {
			f.row(cells...)
		}
	}
	if len(f.rows) == 0 {
		return f, fmt.Errorf("the tests have no table:\n%s", strings.Join(lines, "\n"))
	}
	f.row("healthy trees", "0", "-", alarms, "-", "-")
	f.row("each fault alone, in five trees", strconv.Itoa(alone), strconv.Itoa(found), "-",
		fmt.Sprintf("%.1f %%", 100*float64(found)/float64(max(alone, 1))), "-")
	return f, nil
}

// flips changes records that real resolvers have cached, and compares the predictions with their answers.
func flips(o options) (f figure, err error) {
	f = figure{title: fmt.Sprintf("Safe at: %d changes, watched at Unbound, BIND, PowerDNS and Knot", o.flip),
		want: "the median error is at most 1 s, and no old answer comes after the bound",
		head: []string{"change and resolver", "predicted minus actual time"}}
	return f.addLines("^TestSafeAt$", []string{" predicted", "error: "}, "-flips", strconv.Itoa(o.flip))
}

// watch changes records in the caches of resolvers that are not in the list of nameplane.
func watch(options) (figure, error) {
	f := figure{title: "Watched until it is safe: late resolvers that are not in the list",
		want: "none of them has the older answer when `watch --until safe` ends",
		head: []string{"measurement", "result"}}
	return f.addLines("^TestWatchUnseen$", []string{"watched until safe"}, "-watches", "20")
}

// harm scans names that do not exist yet, and counts negative entries in the caches of the same resolvers.
func harm(options) (figure, error) {
	f := figure{title: "Harm: names that do not exist yet",
		want: "no resolver caches that they do not exist, while plain queries make all of them cache it",
		head: []string{"measurement", "result"}}
	return f.addLines("^(TestHarm|TestHarmValidating)$", []string{"negative entries at "})
}

// ranges creates names that nobody asked for, beside names that resolvers know not to exist.
func ranges(options) (figure, error) {
	f := figure{title: "Names that nobody asked for, hidden by NSEC records (RFC 8198)",
		want: "validating resolvers hide them until the record expires, and the predicted time covers it",
		head: []string{"resolver", "what it did"}}
	return f.addLines("^TestRanges$", []string{" after asking "})
}

// addLines adds a row for each line of a test's output that contains one of the words.
func (f figure) addLines(test string, words []string, args ...string) (figure, error) {
	lines, ok, err := runTest("./test/explain/real", test, args...)
	if err != nil {
		return f, err
	}
	f.met = ok
	for _, line := range lines {
		for _, w := range words {
			if what, rest, found := strings.Cut(line, ": "); found && strings.Contains(line, w) {
				f.row(what, rest)
			}
		}
	}
	if len(f.rows) == 0 {
		return f, fmt.Errorf("%s says nothing:\n%s", test, strings.Join(lines, "\n"))
	}
	return f, nil
}

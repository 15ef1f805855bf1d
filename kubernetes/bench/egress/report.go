package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

func (f figure) markdown() string {
	var b strings.Builder
	verdict := "met"
	if !f.met {
		verdict = "missed"
	}
	if f.verdict != "" {
		verdict = f.verdict
	}
	fmt.Fprintf(&b, "## %s\n\n| | |\n|---|---|\n", f.title)
	for _, r := range append([][2]string{{"wanted", f.want}, {"result", "**" + verdict + "**"},
		{"time of the measurement", f.took.Round(time.Second).String()}}, f.rows...) {
		fmt.Fprintf(&b, "| %s | %s |\n", r[0], r[1])
	}
	return b.String() + "\n"
}

// document returns the page. It names the machine and the versions, because the figures mean little without them.
func document(done []figure, o options) string {
	var b strings.Builder
	command := "`make bench-egress`"
	if o.quick {
		command = "`go run ./kubernetes/bench/egress -quick`, which takes less time where a row says so"
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	fmt.Fprintf(&b, "# Egress firewalls by name, measured\n\nWritten by %s on %d cores, %s, kernel %s, %s.\n"+
		"It runs a real kube-apiserver and etcd (without fsync), OVN %s with the userspace datapath, and every part of\n"+
		"nameplane as a process on one machine.\n\n", command, runtime.NumCPU(), runtime.GOARCH,
		strings.TrimSpace(string(kernel)), runtime.Version(), o.ovn)
	for _, f := range done {
		b.WriteString(f.markdown())
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// share returns the quantile of all values.
func share(all []time.Duration, part float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(all))
	return s[min(int(part*float64(len(s))), len(s)-1)]
}

// ms formats a duration in milliseconds.
func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond)) }

package iterate

import (
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Limits of RFC 9156 §2.3.
const (
	maxMinimiseCount = 10
	minimiseOneLabel = 4
)

// nextName returns the next name to query on the path from known down to target, after count queries. At first it
// adds one label, later as many as needed to stay within maxMinimiseCount. It does not stop at a label with an
// underscore: zones are not cut there and some servers fail.
func nextName(known, target dnsname.Name, count int) dnsname.Name {
	missing := target.NumLabels() - known.NumLabels()
	step := 1
	switch {
	case count >= maxMinimiseCount:
		step = missing
	case count >= minimiseOneLabel:
		left := maxMinimiseCount - count
		step = (missing + left - 1) / left
	}
	name := ancestor(target, missing-step)
	for step < missing && strings.HasPrefix(name.Label(), "_") {
		step++
		name = ancestor(target, missing-step)
	}
	return name
}

// ancestor returns a name without its first labels.
func ancestor(name dnsname.Name, labels int) dnsname.Name {
	for range labels {
		name = name.Parent()
	}
	return name
}

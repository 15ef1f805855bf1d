package iterate

import (
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// The numbers of RFC 9156 §2.3.
const (
	maxMinimiseCount = 10
	minimiseOneLabel = 4
)

// nextName is the name to ask for next on the way from one that is known down to target, when count names were asked for
// before: one label more at first, then so many that the count is not exceeded. It does not stop at a label with an
// underscore, where zones are not cut and some servers fail.
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

// ancestor is a name without so many labels.
func ancestor(name dnsname.Name, labels int) dnsname.Name {
	for range labels {
		name = name.Parent()
	}
	return name
}

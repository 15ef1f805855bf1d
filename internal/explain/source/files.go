package source

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// noAnchors is given instead of a file if the root is not signed.
const noAnchors = "none"

// readAnchors reads trust anchors: one DS or DNSKEY record per line. Without any, the root is not signed. A line that
// cannot be parsed is an error and is not skipped: with fewer anchors than intended, a zone could be bogus here and
// secure everywhere else.
func readAnchors(file string) (out []secure.Anchor, err error) {
	if file == noAnchors {
		return []secure.Anchor{secure.UnsignedRoot()}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line, _, _ = strings.Cut(line, ";"); strings.TrimSpace(line) == "" {
			continue
		}
		a, err := secure.ParseAnchor(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return []secure.Anchor{secure.UnsignedRoot()}, nil
	}
	return out, nil
}

// readHints reads root servers: one name and its addresses per line, or the records of a hints file (named.root). The
// lines are not parsed as a zone file: only names and addresses count, and a person writes a short list by hand.
func readHints(file string) (out []iterate.Host, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, ";")
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		// NS records of named.root repeat names that have address records of their own. Their owner is the root itself.
		if len(words) == 0 || len(words) > 2 && strings.EqualFold(words[len(words)-2], "NS") {
			continue
		}
		name, err := dnsname.Parse(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if _, ok := at[name.String()]; !ok {
			at[name.String()] = len(out)
			out = append(out, iterate.Host{Name: name})
		}
		h := &out[at[name.String()]]
		before := len(h.Glue)
		for _, w := range words[1:] {
			if a, err := netip.ParseAddr(w); err == nil {
				h.Glue = append(h.Glue, a)
			}
		}
		// A root server without an address cannot be asked: there is no server above it that could look up its name.
		if len(h.Glue) == before {
			return nil, fmt.Errorf("%s:%d: the line has no address", file, n)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: the file has no root server", file)
	}
	return out, nil
}

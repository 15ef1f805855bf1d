package real_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain"
)

// said holds the messages of each of the three programs about a domain: tags, codes, IDs.
type said struct{ Zonemaster, DNSViz, Nameplane []string }

var quoted = regexp.MustCompile("`([A-Z0-9_]+)`")

// documented parses the table in docs/reference/peers.md.
func documented(t *testing.T) map[string]said {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/peers.md")
	if err != nil {
		t.Fatal(err)
	}
	words := func(cell string, to []string) []string {
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			to = append(to, m[1])
		}
		return distinct(to)
	}
	out := map[string]said{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 8 || strings.Contains(line, "---") || strings.Contains(line, "| zones |") {
			continue
		}
		for _, domain := range strings.Split(cells[1], ",") {
			domain = strings.TrimSpace(domain)
			s := out[domain]
			out[domain] = said{words(cells[3], s.Zonemaster), words(cells[4], s.DNSViz), words(cells[5], s.Nameplane)}
		}
	}
	return out
}

// TestPeers checks that docs/reference/peers.md lists exactly the messages of nameplane, Zonemaster and DNSViz about
// each zone.
func TestPeers(t *testing.T) {
	internet(t)
	doc := documented(t)
	if len(doc) != len(peerNames) {
		t.Errorf("docs/reference/peers.md is about %v", slices.Sorted(maps.Keys(doc)))
	}
	for domain, names := range peerNames {
		got := said{Zonemaster: recorded(t, "zonemaster", domain, "tag"), DNSViz: recorded(t, "dnsviz", domain, "code")}
		for i, name := range names {
			args := []string{"analyze", name, "A"}
			if i == 0 {
				args = []string{"scan", domain}
			}
			for _, f := range severe(scanReport(t, args...), explain.Critical, explain.Error, explain.Warning, explain.Notice) {
				if f.ID != "DEL17" { // a slow server, as all are on a busy machine
					got.Nameplane = append(got.Nameplane, f.ID)
				}
			}
		}
		got.Nameplane = distinct(got.Nameplane)
		if diff := cmp.Diff(doc[domain], got); diff != "" {
			t.Errorf("%s (-docs/reference/peers.md +said):\n%s", domain, diff)
		}
	}
}

// recorded returns the values of a key in the recorded output of a peer.
func recorded(t *testing.T, program, domain, key string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", program+"-"+domain+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		value, ok := p[key].(string)
		if !ok {
			t.Fatalf("%s of %s: %v has no %s", program, domain, p, key)
		}
		out = append(out, value)
	}
	return distinct(out)
}

func distinct(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

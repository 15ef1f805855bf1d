package howto

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// dashboard has the parts of a Grafana dashboard that hold queries.
type dashboard struct {
	Templating struct {
		List []struct {
			Type  string
			Query json.RawMessage
		}
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

var (
	queried  = regexp.MustCompile(`\b(nameplane|process|go)_[a-z_]+\b`)
	labels   = regexp.MustCompile(`\b(?:by|without) \(([a-z, ]+)\)`)
	exported = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	label    = regexp.MustCompile(`([a-z_]+)="`)
)

// TestDashboard checks that a started server exports every metric that the dashboard queries, with the labels that
// the queries group by.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/grafana/nameplane.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	s := server.Start(t, server.Options{})
	s.CreateZone("example.org.")
	s.Ask("example.org.", dns.TypeSOA)
	metrics := map[string][]string{}
	for _, m := range exported.FindAllSubmatch(s.Must(http.MethodGet, "/metrics", nil, nil).Body, -1) {
		name := string(m[1])
		for _, l := range label.FindAllSubmatch(m[2], -1) {
			metrics[name] = append(metrics[name], string(l[1]))
		}
		metrics[name] = append(metrics[name], "job", "instance") // which Prometheus adds
	}
	found := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, name := range queried.FindAllString(target.Expr, -1) {
				found++
				if metrics[name] == nil {
					t.Errorf("panel %s queries %s, which the server does not export", p.Title, name)
				}
				for _, m := range labels.FindAllStringSubmatch(target.Expr, -1) {
					for l := range strings.SplitSeq(m[1], ", ") {
						if !slices.Contains(metrics[name], l) {
							t.Errorf("panel %s groups %s by %s, which is no label of it", p.Title, name, l)
						}
					}
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		for _, name := range queried.FindAllString(string(v.Query), -1) {
			found++
			if metrics[name] == nil {
				t.Errorf("a variable queries %s, which the server does not export", name)
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d metrics in the dashboard: are the patterns still right?", found)
	}
}

package real_test

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var record = flag.Bool("record", false, "run zonemaster-cli and dnsviz, and write their output to testdata")

// peerNames are the domains, and the names in them, that the peers check.
var peerNames = map[string][]string{
	"good.com": {"good.com", "www.good.com", "shop.good.com"}, "bad.com": {"bad.com", "www.bad.com"},
	"half.com": {"half.com", "www.half.com"},
	"lame.com": {"lame.com", "www.lame.com"}, "noglue.com": {"noglue.com", "www.noglue.com"},
	"live.com": {"live.com", "www.live.com"},
}

// TestRecord runs the peers if -record is set. Their 138 packages are too much for everyone who runs the tests.
func TestRecord(t *testing.T) {
	if !*record {
		return
	}
	env := internet(t)
	hints, err := filepath.Abs(filepath.Join(env.Dir, "unbound", "hints"))
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 1.1.1.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	peer(t, "mount", "--bind", conf, "/etc/resolv.conf")
	for domain, names := range peerNames {
		keep(t, "zonemaster", domain, peer(t, "zonemaster-cli", "--hints", hints, "--no-ipv6", "--json", "--level", "NOTICE",
			domain))
		probed := filepath.Join(t.TempDir(), "probed")
		peer(t, "dnsviz", append([]string{"probe", "-4", "-A", "-a", ".", "-x", ".:a.root-servers.net=198.41.0.4", "-o",
			probed}, names...)...)
		keep(t, "dnsviz", domain, codes(t, peer(t, "dnsviz",
			append([]string{"grok", "-l", "warning", "-r", probed}, names...)...)))
	}
}

func peer(t *testing.T, program string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	begun := time.Now()
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.Output()
	t.Logf("%s %v: %v", program, args, time.Since(begun).Round(10*time.Millisecond))
	if err != nil {
		t.Logf("%s: %v\n%s\n%s", program, err, stderr(err), out)
	}
	return out
}

func keep(t *testing.T, program, domain string, out []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("testdata", program+"-"+domain+".json"), out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// problem is one message of dnsviz.
type problem struct {
	Where       string `json:"where"`
	Level       string `json:"level"`
	Code        string `json:"code"`
	Description string `json:"description"`
}

// codes extracts the errors and warnings from the long output of dnsviz.
func codes(t *testing.T, text []byte) []byte {
	t.Helper()
	if len(text) == 0 {
		return []byte("[]\n") // no messages
	}
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("dnsviz: %v\n%s", err, text)
	}
	found := []problem{}
	collect(doc, nil, &found)
	out, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// collect walks a document in order. An object with a code and a description is a problem. The keys above it give its
// level and subject.
func collect(v any, where []string, found *[]problem) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collect(e, where, found)
		}
	case map[string]any:
		code, coded := v["code"].(string)
		description, described := v["description"].(string)
		if coded && described {
			p := problem{Where: strings.Join(where[:len(where)-1], " "), Level: where[len(where)-1], Code: code,
				Description: description}
			if !slices.Contains(*found, p) {
				*found = append(*found, p)
			}
			return
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			collect(v[key], append(slices.Clip(where), key), found)
		}
	}
}

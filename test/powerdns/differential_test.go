package powerdns

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

// request is one request of the comparison.
type request struct {
	method, path, body string // path is below base, unless it begins with /api
	after              string // the change whose effect the request shows
	key                string // "": that of the server
}

// Keys of requests that both servers refuse.
const (
	wrongKey = "a wrong key"
	noKey    = "no key"
)

func (r request) String() string {
	if r.after != "" {
		return r.after + ", then GET"
	}
	if r.key != "" {
		return r.method + " " + r.path + " with " + r.key
	}
	return strings.TrimSpace(r.method + " " + r.path + " " + r.body)
}

const base = "/api/v1/servers/localhost"

// response is a reply after masking. Its text is the status and the body in one line.
type response struct {
	status int
	body   any
}

func (r response) String() string {
	text, ok := r.body.(string)
	if m, isObject := r.body.(map[string]any); isObject && m["error"] != nil {
		text, ok = m["error"].(string)
	}
	if !ok {
		b, err := json.Marshal(r.body)
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	return strings.TrimSpace(strconv.Itoa(r.status) + " " + text)
}

// api is one of the two servers.
type api struct {
	url, key string
}

func (a api) send(t *testing.T, r request) response {
	t.Helper()
	path := r.path
	if !strings.HasPrefix(path, "/api") {
		path = base + path
	}
	req, err := http.NewRequestWithContext(t.Context(), r.method, a.url+path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	switch r.key {
	case "":
		req.Header.Set("X-API-Key", a.key)
	case wrongKey:
		req.Header.Set("X-API-Key", r.key)
	}
	req.Header.Set("Accept", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := response{status: res.StatusCode}
	if len(b) > 0 && json.Unmarshal(b, &out.body) != nil {
		out.body = string(b)
	}
	out.body = mask("", out.body)
	return out
}

// soaNumbers are the serial and the refresh time of an SOA record: nameplane sets the first and chooses the second at
// random, so that secondaries do not ask at the same moment.
var soaNumbers = regexp.MustCompile(`(\S+\. \S+\. )\d+ \d+ (\d+ \d+ \d+)`)

// mask replaces times, serials and random secrets, and sorts lists: the order of records has no meaning.
func mask(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			v[k] = mask(k, member)
		}
	case []any:
		for i := range v {
			v[i] = mask(key, v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	case float64:
		switch key {
		case "serial", "edited_serial", "notified_serial", "modified_at", "last_check", "count":
			return "masked"
		}
	case string:
		if key == "zone" && strings.Contains(v, "\n") { // an export
			lines := strings.Split(soaNumbers.ReplaceAllString(v, "$1 S R $2"), "\n")
			slices.Sort(lines)
			return strings.Join(lines, "\n")
		}
		if key == "key" && len(v) == 88 {
			return "random"
		}
		return soaNumbers.ReplaceAllString(v, "$1 S R $2")
	}
	return v
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// difference is a row of the list of differences: patterns of a request and of both replies.
type difference struct {
	line                 string
	request, peer, reply *regexp.Regexp
	seen                 int
}

const page = "../../docs/reference/powerdns-api.md"

var row = regexp.MustCompile("(?m)^\\| `(.+?)` \\| `(.+?)` \\| `(.+?)` \\| .+ \\|$")

// differences reads the list of differences from the reference.
func differences(t *testing.T) []*difference {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(b), "\n## Differences from PowerDNS 4.7.3\n")
	list, _, _ = strings.Cut(list, "\n## ")
	var out []*difference
	for _, m := range row.FindAllStringSubmatch(list, -1) {
		d := &difference{line: m[0]}
		for i, p := range []**regexp.Regexp{&d.request, &d.peer, &d.reply} {
			re, err := regexp.Compile("^(?s:" + strings.ReplaceAll(m[i+1], `\|`, "|") + ")")
			if err != nil {
				t.Fatalf("%s: %v", m[0], err)
			}
			*p = re
		}
		out = append(out, d)
	}
	if !ok || len(out) < 5 {
		t.Fatalf("%s has %d differences: is the pattern still right?", page, len(out))
	}
	return out
}

// find returns the difference that explains two replies, or nil.
func find(list []*difference, r request, peer, reply response) *difference {
	for _, d := range list {
		if d.request.MatchString(r.String()) && d.peer.MatchString(peer.String()) && d.reply.MatchString(reply.String()) {
			return d
		}
	}
	return nil
}

// TestDifferential sends 500 requests to PowerDNS and to nameplane. Statuses and bodies are equal after masking, except
// where the reference lists the difference. Every listed difference occurs.
func TestDifferential(t *testing.T) {
	need.OrFail(t, programs)
	peer := api{startPeer(t), apiKey}
	s := server.Start(t, server.Options{})
	ours := api{s.HTTP, s.Token}
	list := differences(t)
	unlisted := 0
	both := func(r request) (same bool) {
		want, got := peer.send(t, r), ours.send(t, r)
		if cmp.Equal(want, got, cmp.AllowUnexported(response{})) {
			return true
		}
		if d := find(list, r, want, got); d != nil {
			d.seen++
			return false
		}
		if unlisted++; unlisted <= 20 {
			t.Errorf("%s\n  PowerDNS:  %s\n  nameplane: %s", r, want, got)
		}
		return false
	}
	reset := func() {
		for _, a := range []api{peer, ours} {
			for _, list := range []string{"/zones", "/tsigkeys"} {
				for _, id := range values(t, a, list, "id") {
					a.send(t, request{method: "DELETE", path: list + "/" + id})
				}
			}
			for _, z := range firstZones {
				if r := a.send(t, request{method: "POST", path: "/zones", body: z}); r.status != 201 {
					t.Fatalf("%s: %s", z, r)
				}
			}
		}
	}
	reset()
	requests := generate(t, 500)
	for _, r := range requests {
		if !both(r) {
			reset() // the servers may have different content now
			continue
		}
		change := r.method != "GET" && strings.HasPrefix(r.path, "/zones")
		if change && !both(request{method: "GET", path: showing(r), after: r.String()}) {
			reset()
		}
	}
	if unlisted > 0 {
		t.Errorf("%d of %d requests have a difference that %s does not list", unlisted, len(requests), page)
	}
	for _, path := range []string{"/statistics", "/config"} {
		theirs := values(t, peer, path, "name")
		for _, name := range values(t, ours, path, "name") {
			if !slices.Contains(theirs, name) {
				t.Errorf("GET %s has %s, which PowerDNS does not have", path, name)
			}
		}
	}
	listed := 0
	for _, d := range list {
		listed += d.seen
		if d.seen == 0 {
			t.Errorf("%s lists a difference that did not occur:\n%s", page, d.line)
		}
	}
	t.Logf("%d requests, %d of them with a listed difference", len(requests), listed)
}

// showing returns the path that shows the effect of a change.
func showing(r request) string {
	zone, _, _ := strings.Cut(strings.TrimPrefix(r.path, "/zones/"), "/")
	if r.path == "/zones" || strings.Contains(zone, "?") {
		return "/zones"
	}
	return "/zones/" + zone
}

// values returns a member of each object in a list.
func values(t *testing.T, a api, path, member string) (out []string) {
	t.Helper()
	list, ok := a.send(t, request{method: "GET", path: path}).body.([]any)
	if !ok {
		t.Fatalf("no list at %s", path)
	}
	for _, o := range list {
		out = append(out, o.(map[string]any)[member].(string))
	}
	return out
}

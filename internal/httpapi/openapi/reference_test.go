package openapi

import (
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

// operation is what the reference says about an operation.
type operation struct {
	Tags      []string                   `json:"tags"`
	Summary   string                     `json:"summary"`
	Role      string                     `json:"x-nameplane-role"`
	Security  *[]any                     `json:"security"`
	Responses map[string]json.RawMessage `json:"responses"`
}

// role returns the least role that may call the operation.
func (o operation) role() string {
	switch {
	case o.Role != "":
		return o.Role
	case o.Security != nil:
		return "no token"
	}
	return "any"
}

// statuses describes every status code of the HTTP APIs: its meaning, and what a client does.
var statuses = map[int][2]string{
	200: {"the request succeeded", ""},
	201: {"the object was created", ""},
	202: {"the request was accepted; the reply says whether work is left", "reads the object again if it is `PENDING`"},
	204: {"the request succeeded, and the reply has no body", ""},
	300: {"the server has several versions of an API", "uses the URL of one of them"},
	301: {"the object has another URL", "uses the URL in `Location`"},
	304: {"the object has not changed: `If-None-Match` matches", "uses its copy"},
	307: {"the path has empty parts, `.` or `..`", "uses the URL in `Location`"},
	400: {"the request is wrong; the PowerDNS API uses it only for a body or a name in the path that cannot be read",
		"corrects it; the reply says what is wrong"},
	401: {"no token, or an invalid one", "logs in again"},
	403: {"the role of the token does not suffice, only the owner may do this, or an edge application is at a limit",
		"uses another token, or asks the administrator"},
	404: {"the route or the object does not exist, or the object belongs to another project", "checks the URL"},
	405: {"the route does not have this method", "uses a method of the header `Allow`"},
	406: {"the `Accept` header excludes the media type of the reply",
		"accepts `application/json`, or `text/dns` for the file of an export"},
	409: {"the change contradicts existing data", "reads the object again"},
	412: {"the object has changed: `If-Match` does not match", "reads the object again"},
	413: {"the body is too large, or a quota of the zones API is exceeded", "sends less, or asks the administrator"},
	415: {"the body has another type than the route accepts", "sends JSON, or `text/dns` for imports"},
	421: {"the header `Host` is not a name of this server", "uses the URL of the server"},
	422: {"PowerDNS API: a value is wrong, or a quota is exceeded; EdgeGallery: the rule contradicts another one",
		"corrects it"},
	429: {"too many requests, failed logins or invalid tokens", "waits for the time in `Retry-After`"},
	500: {"the server failed; its log has the cause, with the request id of the reply; for external-dns, which ends " +
		"after most 4xx replies, also a request that cannot be applied", "reports it to the administrator"},
	501: {"external-dns asked for a route that this server does not have",
		"uses a version of external-dns that this server knows"},
	503: {"the store does not accept changes now, or the server has no memory or no processor free for the request",
		"waits for the time in `Retry-After`"},
}

// everywhere are the codes that any route may return, which the document does not repeat for each of them.
var everywhere = []int{307, 405, 421, 429, 501}

// statusTable returns the table of the status codes in use. It fails when statuses has other codes.
func statusTable(t *testing.T, used []int) string {
	t.Helper()
	slices.Sort(used)
	used = slices.Compact(used)
	if known := slices.Sorted(maps.Keys(statuses)); !slices.Equal(known, used) {
		t.Errorf("described are the codes %v, the document has %v", known, used)
	}
	var rows [][]string
	for _, code := range used {
		rows = append(rows, []string{strconv.Itoa(code), statuses[code][0], statuses[code][1]})
	}
	return reference.Table([]string{"code", "meaning", "what a client does"}, rows)
}

// TestStatusesInCode checks that the page describes every status code that the code of the APIs names.
func TestStatusesInCode(t *testing.T) {
	names := map[string]int{}
	for code := range 600 {
		names["Status"+strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(code))] = code
	}
	constant := regexp.MustCompile(`http\.(Status[A-Z][A-Za-z]+)\b`)
	found := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range constant.FindAllSubmatch(source, -1) {
			name := string(m[1])
			if name == "StatusText" {
				continue
			}
			found++
			if _, ok := statuses[names[name]]; !ok {
				t.Errorf("%s: the page does not describe %s", path, name)
			}
		}
		return err
	})
	if err != nil || found < 50 {
		t.Errorf("found %d codes: %v", found, err)
	}
}

// TestPage compares docs/reference/http-apis.md with the document that the server serves.
func TestPage(t *testing.T) {
	text, err := merge(spec, "")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tags  []struct{ Name, Description string }  `json:"tags"`
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	rows, used := map[string][][]string{}, slices.Clone(everywhere)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			raw, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			var o operation
			if err := json.Unmarshal(raw, &o); err != nil || len(o.Tags) != 1 || o.Summary == "" {
				t.Fatalf("%s %s: %v, %+v", method, path, err, o)
			}
			for key := range o.Responses {
				code, err := strconv.Atoi(key)
				if err != nil {
					t.Fatalf("%s %s: %v", method, path, err)
				}
				used = append(used, code)
			}
			rows[o.Tags[0]] = append(rows[o.Tags[0]], []string{reference.Code(strings.ToUpper(method) + " " + path),
				reference.Text(o.Summary), o.role(), strings.Join(slices.Sorted(maps.Keys(o.Responses)), ", ")})
		}
	}
	var b strings.Builder
	for _, tag := range doc.Tags {
		b.WriteString("### " + tag.Name + "\n\n" + reference.Prose("", "", tag.Description) + "\n" +
			reference.Table([]string{"route", "summary", "role", "status codes"}, rows[tag.Name]) + "\n")
		delete(rows, tag.Name)
	}
	for tag := range rows {
		t.Errorf("base.json does not describe the tag %s", tag)
	}
	const page = "../../../docs/reference/http-apis.md"
	reference.Compare(t, page, "routes", b.String(), *update)
	reference.Compare(t, page, "statuses", statusTable(t, used), *update)
}

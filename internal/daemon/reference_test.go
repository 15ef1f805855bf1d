package daemon

import (
	"flag"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite the generated parts of docs/reference")

// setting is a setting or a section of config.Example.
type setting struct {
	path, value, text string
	section           bool
}

var (
	settingLine = regexp.MustCompile(`^( *)([a-z0-9_]+):(?: +([^# ].*?))?(?: +# (.*))?$`)
	elementLine = regexp.MustCompile(`^ *# {3,}(?:- )?([a-z0-9_]+): (.*?)(?: +# (.*))?$`)
)

// settings reads config.Example line by line: the YAML library gives comments that span lines to other settings.
func settings(t *testing.T) (out []setting) {
	t.Helper()
	var comment string    // before a setting of the top level
	var sections []string // that the line is in
	for line := range strings.Lines(config.Example()) {
		line = strings.TrimRight(line, "\n")
		text := strings.TrimPrefix(strings.TrimLeft(line, " "), "# ")
		if m := elementLine.FindStringSubmatch(line); m != nil {
			list := out[slices.IndexFunc(out, func(s setting) bool { return s.path == strings.Join(sections, ".") })].path
			out = append(out, setting{path: list + "[]." + m[1], value: m[2], text: m[3]})
		} else if m := settingLine.FindStringSubmatch(line); m != nil {
			sections = append(sections[:len(m[1])/2], m[2])
			out = append(out, setting{path: strings.Join(sections, "."), value: m[3],
				text: strings.TrimSpace(comment + " " + m[4]), section: m[3] == ""})
			comment = ""
		} else if line == "" {
			comment = ""
		} else if strings.HasPrefix(line, "#") {
			comment = strings.TrimSpace(comment + " " + text)
		} else if text != line {
			last := &out[len(out)-1]
			last.text = strings.TrimSpace(last.text + " " + text)
		} else {
			t.Fatalf("the patterns do not match %q", line)
		}
	}
	for i := range out {
		out[i].text = strings.TrimSpace(strings.TrimSuffix(out[i].text, "Settings of each:"))
	}
	return out
}

// fields returns the paths of all settings below a type, with the index of each setting in v.
func fields(typ reflect.Type, path string, at []int, found func(path string, at []int)) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), ".")
		index := append(slices.Clone(at), i)
		if f.Type.Kind() == reflect.Struct {
			fields(f.Type, name, index, found)
			continue
		}
		found(name, index)
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			fields(f.Type.Elem(), name+"[]", nil, func(path string, _ []int) { found(path, index) })
		}
	}
}

// reloaded reports for each setting whether Reload applies a change of it.
func reloaded() map[string]bool {
	d := &Daemon{cfg: config.Default(), forwarder: new(forward.Forwarder)}
	out := map[string]bool{}
	fields(reflect.TypeFor[config.Config](), "", nil, func(path string, at []int) {
		next := config.Default()
		v := reflect.ValueOf(&next).Elem().FieldByIndex(at)
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Slice:
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		case reflect.Uint32:
			v.SetUint(v.Uint() + 1)
		default:
			v.SetInt(v.Int() + 1)
		}
		out[path] = len(d.needRestart(next)) == 0
	})
	return out
}

// TestConfigurationPage compares docs/reference/configuration.md with config.Example and with the settings of
// config.Config.
func TestConfigurationPage(t *testing.T) {
	reloads := reloaded()
	var b strings.Builder
	var rows [][]string
	head := []string{"setting", "default", "SIGHUP", "meaning"}
	flush := func() {
		if rows != nil {
			b.WriteString(reference.Table(head, rows) + "\n")
		}
		rows = nil
	}
	for _, s := range settings(t) {
		if s.section && !strings.Contains(s.path, ".") {
			flush()
			b.WriteString("### " + s.path + "\n\n")
			if s.text != "" {
				b.WriteString(sentence(s.text) + "\n\n")
			}
			continue
		}
		applied, ok := reloads[s.path]
		delete(reloads, s.path)
		cells := []string{reference.Code(s.path), reference.Code(s.value), map[bool]string{true: "yes", false: "no"}[applied],
			reference.Text(s.text)}
		switch {
		case s.section && s.text == "":
			continue
		case s.section:
			cells[2] = ""
		case s.text == "":
			t.Errorf("config.Example does not say what %s is", s.path)
		case !ok:
			t.Errorf("config.Example has %s, which is no setting", s.path)
		case strings.Contains(s.path, "[]."):
			cells[1] = elementDefault(t, s)
		}
		rows = append(rows, cells)
	}
	flush()
	for path := range reloads {
		t.Errorf("config.Example does not have the setting %s", path)
	}
	reference.Compare(t, "../../docs/reference/configuration.md", "settings", b.String(), *update)
}

// elementDefault returns the default of a setting of a list's elements: config.Example shows a value for each.
func elementDefault(t *testing.T, s setting) string {
	t.Helper()
	c, _ := config.Parse("", []byte("apps: {jwt: [{}]}\ntransfer: {secondaries: [{}]}")) // reports missing settings
	list := any(c.Transfer.Secondaries[0])
	if strings.HasPrefix(s.path, "apps.jwt") {
		list = c.Apps.JWT[0]
	}
	v := reflect.ValueOf(list)
	for i := range v.NumField() {
		if !strings.HasSuffix(s.path, "[]."+v.Type().Field(i).Tag.Get("yaml")) {
			continue
		}
		if v.Field(i).IsZero() {
			return "none; such as " + reference.Code(s.value)
		}
		return reference.Code(s.value)
	}
	t.Fatalf("no element has %s", s.path)
	return ""
}

func sentence(s string) string {
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// TestMetricsPage compares docs/reference/metrics.md with the metrics of a server in which every part runs, and with
// what such a server exports.
func TestMetricsPage(t *testing.T) {
	h := openServer(t, func(c *config.Config) {
		c.Forward.Upstreams, c.Forward.Clients = []string{"127.0.0.1:9"}, []string{"127.0.0.1"}
		c.Follow.Resolvers = []string{"127.0.0.1:9"}
	})
	h.ask("www.example.org.") // some metrics appear with the first answer
	collectors := h.collectors(httpapi.NewMetrics())
	h.following.mu.Lock()
	tracker := h.following.tracker
	h.following.mu.Unlock()
	collectors = slices.DeleteFunc(collectors, func(c prometheus.Collector) bool { return c == h.following })
	metrics := reference.Metrics(t, append(collectors, tracker.Collectors()...)...)
	reference.Compare(t, "../../docs/reference/metrics.md", "nameplane", reference.MetricTable(metrics), *update)

	_, body := h.call(plain, h.Endpoints().HTTP, "GET", "/metrics", h.admin, "")
	seen := 0
	for _, m := range exported.FindAllStringSubmatch(body, -1) {
		if strings.HasPrefix(m[1], "go_") || strings.HasPrefix(m[1], "process_") {
			continue // of the client library
		}
		seen++
		want := metrics[m[1]]
		if diff := cmp.Diff([]string{m[2], m[3]}, []string{want.Help, want.Type}); diff != "" {
			t.Errorf("%s is not as in the reference (-exported +reference):\n%s", m[1], diff)
		}
	}
	if seen < 40 {
		t.Errorf("the server exports only %d metrics", seen)
	}
}

var exported = regexp.MustCompile(`(?m)^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$`)

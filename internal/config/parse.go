package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse decodes the text of a file over the defaults. Its error has one line for each mistake, with its position and a
// suggestion.
func Parse(file string, text []byte) (Config, error) {
	c := Default()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return c, nil // only comments: the defaults
	} else if err != nil {
		return Config{}, describe(file, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Config{}, fmt.Errorf("%s:1: contains more than one document: remove the --- line and everything after it",
			file)
	}
	w := walk{file: file, at: map[string]*yaml.Node{}}
	w.mapping(doc.Content[0], reflect.TypeFor[Config](), "")
	if w.errs != nil {
		return Config{}, errors.Join(w.errs...)
	}
	if err := doc.Decode(&c); err != nil {
		return Config{}, describe(file, err)
	}
	for _, p := range c.problems() {
		w.fail(w.find(p.key), p.key, p.reason)
	}
	c.relativeTo(filepath.Dir(file), w.at["data"] != nil)
	return c, errors.Join(w.errs...)
}

// walk compares a file with the type that it is decoded into, and records the position of each setting.
type walk struct {
	file string
	at   map[string]*yaml.Node
	errs []error
}

// fail adds an error with a position, so that an editor can jump to it. A setting that is not in the file gets 1:1.
func (w *walk) fail(n *yaml.Node, key, reason string) {
	line, column := 1, 1
	if n != nil {
		line, column = n.Line, n.Column
	}
	if key != "" {
		key += ": "
	}
	w.errs = append(w.errs, fmt.Errorf("%s:%d:%d: %s%s", w.file, line, column, key, reason))
}

// find returns the node of a setting, or of the section that it is part of.
func (w *walk) find(key string) *yaml.Node {
	for key != "" && w.at[key] == nil {
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return w.at[key]
}

// mapping checks a section. It reports unknown and duplicate settings itself, because the YAML library would not
// suggest what was meant.
func (w *walk) mapping(n *yaml.Node, t reflect.Type, path string) {
	w.at[path] = n
	if n.Tag == "!!null" {
		return // a section without settings
	}
	if n.Kind != yaml.MappingNode {
		w.fail(n, path, "must contain settings, one on each line: "+strings.Join(keys(t), ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		key := strings.TrimPrefix(path+"."+k.Value, ".")
		if first, again := seen[k.Value]; again {
			w.fail(k, key, fmt.Sprintf("is set a second time; first on line %d", first))
			continue
		}
		seen[k.Value] = k.Line
		if i := slices.Index(keys(t), k.Value); i >= 0 {
			w.value(v, t.Field(i).Type, key)
		} else if now, was := removed[key]; was {
			w.fail(k, key, "is no longer a setting: "+now)
		} else {
			w.fail(k, key, "no such setting; "+hint(t, path, k.Value))
		}
	}
}

// value checks one value. Anchors and aliases are refused, so that every setting has its value at its own position.
func (w *walk) value(n *yaml.Node, t reflect.Type, path string) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		w.fail(n, path, "anchors and aliases are not supported: write the value")
	case t.Kind() == reflect.Struct:
		w.mapping(n, t, path)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		w.list(n, t.Elem(), path)
	default:
		w.at[path] = n
		for i, e := range n.Content {
			if e.Kind == yaml.AliasNode {
				w.fail(e, path, "anchors and aliases are not supported: write the value")
			}
			w.at[fmt.Sprintf("%s[%d]", path, i)] = e
		}
	}
}

// list checks a list of sections.
func (w *walk) list(n *yaml.Node, t reflect.Type, path string) {
	w.at[path] = n
	if n.Kind != yaml.SequenceNode {
		w.fail(n, path, "must be a list: begin each element with - and write "+strings.Join(keys(t), ", ")+
			" below each other")
		return
	}
	for i, e := range n.Content {
		w.value(e, t, fmt.Sprintf("%s[%d]", path, i))
	}
}

// keys returns the settings of a section, in the order of its fields.
func keys(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("yaml"))
	}
	return out
}

// hint suggests a similar name, the same name in another section, or all names of the section.
func hint(t reflect.Type, path, key string) string {
	similar, best := "", 3
	for _, k := range keys(t) {
		if d := distance(k, key); d < best && d < len(k) {
			similar, best = k, d
		}
	}
	if similar != "" {
		return "did you mean " + similar + "?"
	}
	if found := elsewhere(reflect.TypeFor[Config](), "", key); len(found) > 0 {
		return "did you mean " + strings.Join(found, " or ") + "?"
	}
	return "the settings of " + cmp.Or(path, "the file") + " are: " + strings.Join(keys(t), ", ")
}

// elsewhere returns the settings with this key in all sections.
func elsewhere(t reflect.Type, path, key string) (found []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), ".")
		if f.Tag.Get("yaml") == key {
			found = append(found, name)
		}
		if f.Type.Kind() == reflect.Struct {
			found = append(found, elsewhere(f.Type, name, key)...)
		}
	}
	return found
}

// distance returns how many letters must be changed, added, removed or swapped with their neighbor to turn a into b
// (optimal string alignment).
func distance(a, b string) int {
	if len(b) > 64 {
		return len(b)
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

var (
	// These expressions match the texts of the YAML library, which has no typed errors for positions and types.
	lineOf = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)$`)
	typeOf = regexp.MustCompile("^cannot unmarshal !!\\w+ (?:`(.*)` )?into (.*)$")
)

// kinds describes the types of settings for operators.
var kinds = map[string]string{
	"int": "a whole number", "uint32": "a whole number from 0 to 4294967295", "bool": "true or false", "string": "a text",
	"[]string": "a list, such as [a, b]", "time.Duration": "a time with its unit, such as 30s",
}

// describe adds the file name to an error of the YAML library, and rewrites the error for operators.
func describe(file string, err error) error {
	texts := []string{err.Error()}
	if t := (*yaml.TypeError)(nil); errors.As(err, &t) {
		texts = slices.Clone(t.Errors)
	}
	var errs []error
	for _, s := range texts {
		m := lineOf.FindStringSubmatch(strings.ReplaceAll(s, "\n", " "))
		line, err := strconv.Atoi(m[1])
		if err != nil {
			line = 1
		}
		text := m[2]
		if t := typeOf.FindStringSubmatch(text); t != nil && kinds[t[2]] != "" {
			text = strings.TrimSpace(t[1] + " must be " + kinds[t[2]])
		}
		errs = append(errs, fmt.Errorf("%s:%d: %s", file, line, text))
	}
	return errors.Join(errs...)
}

// Diff returns the settings in which two configurations differ.
func Diff(a, b Config) []string {
	return diff(reflect.ValueOf(a), reflect.ValueOf(b), "")
}

// diff compares the fields of a section. A list counts as one setting.
func diff(a, b reflect.Value, path string) (out []string) {
	for i := range a.NumField() {
		name := strings.TrimPrefix(path+"."+a.Type().Field(i).Tag.Get("yaml"), ".")
		if a.Field(i).Kind() == reflect.Struct {
			out = append(out, diff(a.Field(i), b.Field(i), name)...)
		} else if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			out = append(out, name)
		}
	}
	return out
}

package designate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/strictjson"
)

// maxBody is the largest body in bytes, except for imports: a batch of about ten thousand record sets.
const maxBody = 1 << 20

// input is the JSON object of a request. A getter records what is wrong with its field and returns the zero value; err
// returns the problems of all fields at once, as Designate does.
type input struct {
	resource string // the name of the resource in messages
	fields   map[string]json.RawMessage
	path     []any // the keys and indexes that lead from the body to this object
	problems []problem
}

// input reads the body and refuses keys other than the given ones.
func (c *call) input(resource string, keys ...string) (*input, error) {
	in, err := c.anyInput(resource)
	if err != nil {
		return nil, err
	}
	return in, in.known(keys...)
}

// anyInput reads the body and accepts all keys. It allows the media type of JSON Patch too, but reads a plain object.
func (c *call) anyInput(resource string) (*input, error) {
	if err := c.wantMedia("application/json", "application/json-patch+json"); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if err != nil {
		return nil, readError(err)
	}
	if err := httpapi.TakeTurnFor(c.r.Context(), len(b)); err != nil { // commit ends the turn
		return nil, err
	}
	return parseInput(resource, b)
}

// readError returns the error for a body that could not be read to its end. A body above the limit becomes 413 in
// asFault; everything else is the client's connection.
func readError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return err
	}
	return badRequest("The body could not be read: %v", err)
}

// isEmptyBody reports whether a body has no object. Designate treats null as an empty body.
func isEmptyBody(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) == 0 || string(b) == "null"
}

// parseInput parses a body. It distinguishes an empty body from invalid JSON, because Designate has a type for each.
func parseInput(resource string, b []byte) (*input, error) {
	if isEmptyBody(b) {
		return nil, refuse("empty_request_body", "Request Body is empty")
	}
	in := &input{resource: resource}
	if err := strictjson.Unmarshal(b, &in.fields); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, refuse("invalid_json", "The body must be a JSON object, not %s", t.Value)
		}
		return nil, refuse("invalid_json", "%s", err)
	}
	return in, nil
}

func (c *call) wantMedia(media ...string) error {
	got, _, err := mime.ParseMediaType(c.header("Content-Type"))
	if err != nil || !slices.Contains(media, got) {
		return &fault{status: http.StatusUnsupportedMediaType, kind: "unsupported_content_type",
			message: "Content-type must be " + media[0]}
	}
	return nil
}

// known refuses keys other than the writable ones.
func (in *input) known(writable ...string) error { return in.repeated(writable...).check(nil) }

// repeated holds the keys of a body that cannot be changed. Clients send back the whole object that they have read, so
// such a key is accepted when its value is the current one.
type repeated struct {
	resource string
	values   map[string]any
}

// repeated returns the keys of the body other than the given ones.
func (in *input) repeated(writable ...string) repeated {
	r := repeated{resource: in.resource, values: map[string]any{}}
	for key, raw := range in.fields {
		if slices.Contains(writable, key) {
			continue
		}
		var v any
		if json.Unmarshal(raw, &v) != nil {
			v = raw // a number beyond float64: it equals no value of a resource
		}
		r.values[key] = v
	}
	return r
}

// check compares the keys with the current representation of the resource, or refuses all of them when current is nil.
// The message is the one of Designate, including the form of a Python list: clients print it.
func (r repeated) check(current func() any) error {
	if len(r.values) == 0 {
		return nil
	}
	have := map[string]any{}
	if current != nil {
		if b, err := json.Marshal(current()); err != nil {
			return err
		} else if err := json.Unmarshal(b, &have); err != nil {
			return err
		}
	}
	var bad []string
	for key, v := range r.values {
		if was, ok := have[key]; !ok || !reflect.DeepEqual(was, v) && !sameName(key, was, v) {
			bad = append(bad, key)
		}
	}
	if bad == nil {
		return nil
	}
	slices.Sort(bad)
	return refuse("invalid_object", "Provided object does not match schema.  Keys ['%s'] are not valid for %s",
		strings.Join(bad, "', '"), r.resource)
}

// sameName reports whether the values of a key are the same DNS name, which has no case (RFC 4343).
func sameName(key string, a, b any) bool {
	was, isText := a.(string)
	v, sent := b.(string)
	return (key == "name" || key == "zone_name") && isText && sent && strings.EqualFold(was, v)
}

// note adds a problem with a field. validator and value are the keyword of JSON Schema that the field violates and its
// value, because the errors of Designate have them.
func (in *input) note(field, message, validator string, value any) {
	in.problems = append(in.problems, problem{append(slices.Clone(in.path), field), message, validator, value})
}

// noteItem adds a problem with an element of a list.
func (in *input) noteItem(field string, i int, message, validator string, value any) {
	in.problems = append(in.problems, problem{append(slices.Clone(in.path), field, i), message, validator, value})
}

func (in *input) err() error {
	if len(in.problems) == 0 {
		return nil
	}
	return invalid(in.problems...)
}

func (in *input) has(key string) bool { _, ok := in.fields[key]; return ok }

func (in *input) isNull(key string) bool {
	raw, ok := in.fields[key]
	return ok && string(raw) == "null"
}

// require notes which of the keys are absent or null.
func (in *input) require(keys ...string) {
	for _, k := range keys {
		if !in.has(k) || in.isNull(k) {
			in.note(k, fmt.Sprintf("'%s' is a required property", k), "required", keys)
		}
	}
}

// get reads a field that is present and not null.
func (in *input) get(key, wanted string, out any) bool {
	if !in.has(key) || in.isNull(key) {
		return false
	}
	if err := json.Unmarshal(in.fields[key], out); err != nil {
		in.note(key, fmt.Sprintf("%s is not of type '%s'", short(in.fields[key]), wanted), "type", wanted)
		return false
	}
	return true
}

// short returns the beginning of a value for a message, so that a reply is not as large as a bad request.
func short(raw []byte) string {
	const most = 80
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "..."
	}
	return string(raw)
}

// text returns a string of at most the given number of characters, or nil when it is absent or null.
func (in *input) text(key string, most int) *string {
	var s string
	if !in.get(key, "string", &s) {
		return nil
	}
	if utf8.RuneCountInString(s) > most {
		in.note(key, fmt.Sprintf("'%s' is too long", short([]byte(s))), "maxLength", most)
		return nil
	}
	return &s
}

// number returns an integer within bounds, or nil when it is absent or null. It parses the text of the number itself: a
// float64 would round large ones.
func (in *input) number(key string, least, most int64) *int64 {
	if !in.has(key) || in.isNull(key) {
		return nil
	}
	raw := string(in.fields[key])
	n, err := strconv.ParseInt(raw, 10, 64)
	switch {
	case err != nil:
		in.note(key, short([]byte(raw))+" is not of type 'integer'", "type", "integer")
	case n < least:
		in.note(key, fmt.Sprintf("%d is less than the minimum of %d", n, least), "minimum", least)
	case n > most:
		in.note(key, fmt.Sprintf("%d is greater than the maximum of %d", n, most), "maximum", most)
	default:
		return &n
	}
	return nil
}

// texts returns a list of strings. null in the list is "None" in the message: Designate is written in Python.
func (in *input) texts(key string) []string {
	var list []*string
	if !in.get(key, "array", &list) {
		return nil
	}
	out := make([]string, 0, len(list))
	for i, s := range list {
		if s == nil {
			in.noteItem(key, i, "None is not of type 'string'", "type", "string")
			continue
		}
		out = append(out, *s)
	}
	return out
}

// project returns the id of a project, or nil when it is absent. The id becomes part of a key in the store, so project
// refuses characters that ids do not have.
func (in *input) project(key string) *string {
	s := in.text(key, 36)
	if s == nil {
		return nil
	}
	for _, c := range *s {
		if !(c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			in.note(key, fmt.Sprintf("'%s' is not the id of a project", *s), "format", "project")
			return nil
		}
	}
	if *s == "" {
		in.note(key, "'' is too short", "minLength", 1)
		return nil
	}
	return s
}

// uuid returns an id, or "" when it is absent.
func (in *input) uuid(key string) string {
	s := in.text(key, 36)
	if s == nil {
		return ""
	}
	id, ok := parseID(*s)
	if !ok {
		in.note(key, fmt.Sprintf("'%s' is not a 'uuid'", *s), "format", "uuid")
	}
	return id.String()
}

// Bounds on the attributes of a zone. Designate bounds the length. The bound on their number is ours, because lists
// show all attributes of every zone.
const maxAttributes, maxAttribute = 50, 50

// dictionary returns an object whose values are strings.
func (in *input) dictionary(key string) map[string]string {
	var out map[string]string
	in.get(key, "object", &out)
	if len(out) > maxAttributes {
		in.note(key, fmt.Sprintf("%d are too many", len(out)), "maxProperties", maxAttributes)
	}
	for k, v := range out {
		if max(utf8.RuneCountInString(k), utf8.RuneCountInString(v)) > maxAttribute {
			in.note(key, fmt.Sprintf("'%s' is too long, or its value is", short([]byte(k))), "maxLength", maxAttribute)
		}
	}
	return out
}

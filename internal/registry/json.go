package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// node is a value of a JSON reply that may not follow its specification. Registries send an object instead of a list,
// numbers as strings and strings as numbers. So a node is converted to the needed type if possible.
type node struct{ v any }

var errNotJSON = errors.New("the reply is not JSON")

func parseJSON(body []byte) (node, error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	d.UseNumber()
	var n node
	if d.Decode(&n.v) != nil { // discard the error: its text could quote the reply
		return node{}, errNotJSON
	}
	return n, nil
}

// get returns the member of an object, or an empty node.
func (n node) get(key string) node {
	m, _ := n.v.(map[string]any)
	return node{m[key]}
}

func (n node) exists() bool { return n.v != nil }

// maxList limits how much of a list is read. No domain has as many values.
const maxList = 100

// list returns the elements of an array. Any other value is a list of one.
func (n node) list() []node {
	switch v := n.v.(type) {
	case nil:
		return nil
	case []any:
		nodes := make([]node, min(len(v), maxList))
		for i := range nodes {
			nodes[i].v = v[i]
		}
		return nodes
	default:
		return []node{n}
	}
}

// at returns the element of an array, or an empty node.
func (n node) at(i int) node {
	a, _ := n.v.([]any)
	if i >= len(a) {
		return node{}
	}
	return node{a[i]}
}

// text returns a string, a number or a boolean as text that is safe to show.
func (n node) text() string {
	switch v := n.v.(type) {
	case string:
		return clean(v)
	case json.Number:
		return clean(v.String())
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func (n node) word() string { return strings.ToLower(n.text()) }

// number returns an unsigned number of at most so many bits.
func (n node) number(bits int) (uint64, bool) {
	v, err := strconv.ParseUint(strings.TrimSuffix(n.text(), ".0"), 10, bits)
	return v, err == nil
}

// truth returns a boolean, and whether the value is one.
func (n node) truth() (yes, known bool) {
	switch n.word() {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0":
		return false, true
	}
	return false, false
}

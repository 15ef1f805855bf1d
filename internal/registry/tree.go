package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// node is a value of a JSON text that does not keep to its specification. Registries send an object where one of a list is
// due, numbers as strings and strings as numbers; so a node is read as what is needed, if there is any way to.
type node struct{ v any }

var errNotJSON = errors.New("the reply is not JSON")

func parseJSON(body []byte) (node, error) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\ufeff"))))
	d.UseNumber()
	var n node
	if d.Decode(&n.v) != nil { // its words could quote the reply
		return node{}, errNotJSON
	}
	return n, nil
}

// get is the member of an object; an empty node if there is none.
func (n node) get(key string) node {
	m, _ := n.v.(map[string]any)
	return node{m[key]}
}

func (n node) exists() bool { return n.v != nil }

// maxList bounds what is read of a list: no domain has as many of anything.
const maxList = 100

// list is the elements of an array; of anything else, that one.
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

// at is the element of an array; an empty node if there is none.
func (n node) at(i int) node {
	a, _ := n.v.([]any)
	if i >= len(a) {
		return node{}
	}
	return node{a[i]}
}

// text is a string, a number or a boolean as text fit to be shown.
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

// number is a whole number of so many bits.
func (n node) number(bits int) (uint64, bool) {
	v, err := strconv.ParseUint(strings.TrimSuffix(n.text(), ".0"), 10, bits)
	return v, err == nil
}

// truth is a boolean, if it is one.
func (n node) truth() (yes, known bool) {
	switch n.word() {
	case "true", "yes", "1":
		return true, true
	case "false", "no", "0":
		return false, true
	}
	return false, false
}

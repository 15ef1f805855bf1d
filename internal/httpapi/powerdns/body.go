package powerdns

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/strictjson"
)

// object is a JSON object of a request. Its methods return the errors of PowerDNS for absent members and for members of
// another type. Unknown members are ignored: clients send some.
type object map[string]any

// objectMemory is the memory of a JSON object with one member, whose shortest form has five bytes: the map, its
// entries, and the element that refers to it, with the copies of a list that grows.
const objectMemory = 448

// body reads the body of the request. A body that is not an object has no members.
func (c *call) body() (object, error) {
	b, err := io.ReadAll(c.r.Body)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, err
		}
		return nil, &fault{http.StatusBadRequest, "The body could not be read: " + err.Error()}
	}
	// The memory budget has less for a body of small objects than these take.
	if err := httpapi.Reserve(c.r.Context(), int64(bytes.Count(b, []byte("{")))*objectMemory); err != nil {
		return nil, err
	}
	if err := httpapi.TakeTurnFor(c.r.Context(), len(b)); err != nil {
		return nil, err
	}
	var v any
	if err := strictjson.Unmarshal(b, &v); err != nil {
		if json.Valid(b) { // ambiguous, or with a number that is too large
			return nil, &fault{http.StatusBadRequest, err.Error()}
		}
		return nil, status(http.StatusBadRequest)
	}
	// PowerDNS answers 400 for null, but takes a list or a number for an object without members.
	if v == nil {
		return nil, status(http.StatusBadRequest)
	}
	return asObject(v), nil
}

// asObject returns an element of a list as an object without members when it is none.
func asObject(v any) object {
	o, _ := v.(map[string]any)
	return o
}

func (o object) text(key string) (string, error) {
	s, ok := o[key].(string)
	if !ok {
		return "", refuse("Key '%s' not present or not a String", key)
	}
	return s, nil
}

// optionalText returns a member that is a string, or "".
func (o object) optionalText(key string) (s string, ok bool) {
	s, ok = o[key].(string)
	return s, ok
}

// number returns a member that is a number, or a string with one.
func (o object) number(key string) (uint32, error) {
	var n float64
	switch v := o[key].(type) {
	case float64:
		// PowerDNS cuts off fractions: a client that computes a TTL as a float gets the same TTL from both servers.
		n = math.Trunc(v)
	case string:
		i, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0, refuse("Key '%s' not an Integer or not present", key)
		}
		n = float64(i)
	default:
		return 0, refuse("Key '%s' not an Integer or not present", key)
	}
	switch {
	case n < 0:
		return 0, refuse("Key '%s' is not a positive Integer", key)
	// RFC 2181 §8: a TTL has 31 bits.
	case n > math.MaxInt32:
		return 0, refuse("Key '%s' is out of range", key)
	}
	return uint32(n), nil
}

func (o object) list(key string) ([]any, bool) {
	l, ok := o[key].([]any)
	return l, ok
}

// texts returns a list of strings. The second result is false when the member is no list, or has other elements.
func (o object) texts(key string) (out []string, ok bool) {
	list, ok := o.list(key)
	for _, v := range list {
		s, isText := v.(string)
		out, ok = append(out, s), ok && isText
	}
	return out, ok
}

package fetch

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// options make the decoder as lenient as that of client-go. They also decode times directly: with metav1.Time, decoding
// would take two fifths longer.
var options = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(moment)))

func moment(d *jsontext.Decoder, t *metav1.Time) error {
	v, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case 'n':
		*t = metav1.Time{}
		return nil
	case '"':
		at, err := time.Parse(time.RFC3339, v.String())
		*t = metav1.NewTime(at.Local()) // as metav1.Time does
		return err
	}
	return fmt.Errorf("a time must be a string, not %v", v)
}

// Unmarshal decodes one object.
func Unmarshal(data []byte) (*v1alpha1.DNSNameResolver, error) {
	out := &v1alpha1.DNSNameResolver{}
	return out, json.Unmarshal(data, out, options)
}

// events decodes the events of a watch. It implements watch.Decoder.
type events struct {
	body io.Closer
	in   *jsontext.Decoder
}

func newEvents(body io.ReadCloser) *events { return &events{body, jsontext.NewDecoder(body, options)} }

// Close ends the watch.
func (e *events) Close() { _ = e.body.Close() }

// Decode returns the next event.
func (e *events) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object jsontext.Value  `json:"object"`
	}
	if err := json.UnmarshalDecode(e.in, &event); err != nil {
		return "", nil, ended(err)
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		obj, err := Unmarshal(event.Object)
		return event.Type, obj, err
	case watch.Error:
		status := &metav1.Status{}
		err := json.Unmarshal(event.Object, status, options)
		return event.Type, status, err
	}
	return "", nil, fmt.Errorf("unknown event type %q", event.Type)
}

// ended converts an error at the end of a stream to one that readers of a watch know.
func ended(err error) error {
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

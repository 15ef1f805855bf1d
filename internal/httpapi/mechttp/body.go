package mechttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/strictjson"
	"github.com/nameplane/nameplane/internal/zone"
)

// Read returns the body of a request, which must be JSON of at most limit bytes.
func Read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if !isJSON(r) {
		return nil, &Fault{Status: http.StatusUnsupportedMediaType,
			Detail: "the body must be JSON, with Content-Type: application/json"}
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if large := new(http.MaxBytesError); err != nil && !errors.As(err, &large) {
		return nil, &Fault{Status: http.StatusBadRequest, Detail: "the body could not be read to its end"}
	}
	return b, err
}

// isJSON reports whether the body is JSON. It accepts a request without a Content-Type, because EdgeGallery's MEPM
// sends such requests, but not from a browser. A page of another site can make a browser send any body in a POST, but
// only with the media types of forms or with none.
func isJSON(r *http.Request) bool {
	given := r.Header.Get("Content-Type")
	if given == "" {
		return r.Method != http.MethodPost || !fromPage(r)
	}
	media, _, err := mime.ParseMediaType(given)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

// fromPage reports whether a page in a browser sent the request. Browsers add the origin of the page to a POST.
func fromPage(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// Whole is the field of an error about the whole body.
const Whole = strictjson.Whole

// Decode decodes JSON into a wire type. It ignores members that the type does not have, as MEC 009 requires: clients of
// newer versions of the standard send more.
func Decode(b []byte, into any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return &mec.FieldError{Field: Whole, Msg: "is empty"}
	}
	err := strictjson.Unmarshal(b, into)
	var typ *json.UnmarshalTypeError
	var invalid *zone.InvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return &mec.FieldError{Field: invalid.Field, Msg: invalid.Reason}
	case errors.As(err, &typ):
		return &mec.FieldError{Field: fieldOf(typ), Msg: "must be " + kindOf(typ.Type) + ", not " + article(typ.Value)}
	}
	return &mec.FieldError{Field: Whole, Msg: "is not JSON: " + err.Error()}
}

func fieldOf(e *json.UnmarshalTypeError) string {
	if e.Field == "" {
		return Whole
	}
	return e.Field
}

// kindOf returns what a client must write for a Go type.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "an integer"
}

// article adds an article to the name that encoding/json has for a value: "string", "number 1.5", "array".
func article(value string) string {
	if strings.IndexAny(value, "aeo") == 0 {
		return "an " + value
	}
	return "a " + value
}

// Within is mec.In for an element of a list that was decoded separately: an error about the whole element names the
// element, not the body.
func Within(element string, err error) error {
	var f *mec.FieldError
	if errors.As(err, &f) && f.Field == Whole {
		return &mec.FieldError{Field: element, Msg: f.Msg}
	}
	return mec.In(element, err)
}

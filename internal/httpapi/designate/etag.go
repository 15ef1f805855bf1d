package designate

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/store"
)

// tagOf returns the strong entity tag of a zone or record set without its links. It covers the whole representation, so
// that every change is noticed.
//
// The status of a record set changes without an edit. The tag of a set that is not ACTIVE has two parts: one covers the
// fields that the owner wrote, one the whole representation. If-Match compares the first part only.
func tagOf(v any) string {
	set, ok := v.(wireRecordSet)
	if !ok || set.Status == statusActive && set.Action == actionNone && set.Alias == nil {
		return tagOfValue(v)
	}
	whole := tagOfValue(set)
	set.Status, set.Action, set.Alias = statusActive, actionNone, nil
	return strings.TrimSuffix(tagOfValue(set), `"`) + "-" + strings.TrimPrefix(whole, `"`)
}

func tagOfValue(v any) string {
	b, err := marshal(v)
	if err != nil {
		return ""
	}
	return tagOfText(b)
}

// sameWritten reports whether two tags agree in the part that covers the fields of the owner.
func sameWritten(a, b string) bool {
	a, _, _ = strings.Cut(strings.Trim(a, `"`), "-")
	b, _, _ = strings.Cut(strings.Trim(b, `"`), "-")
	return a == b
}

func tagOfText(b []byte) string {
	sum := sha256.Sum256(b)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// ifMatch compares the request's If-Match (RFC 9110 §13.1.1) with the tag of the current resource. Call it inside the
// commit: of two writers with the same tag, only one succeeds then.
func (c *call) ifMatch(current func() any) error {
	want := c.r.Header.Values("If-Match")
	if len(want) == 0 {
		return nil
	}
	tag := tagOf(current())
	if httpapi.HasTag(want, func(t string) bool { return sameWritten(t, tag) }) {
		return nil
	}
	return &fault{status: http.StatusPreconditionFailed, kind: "precondition_failed",
		message: "It was " + store.ErrChanged.Error() + "; read it again and repeat the change."}
}

// ifNoneMatch returns the reply to a GET, or 304 when If-None-Match has the tag of this representation.
func (c *call) ifNoneMatch(rep reply) reply {
	if none := c.r.Header.Values("If-None-Match"); len(none) > 0 && httpapi.HasWeakTag(none, rep.etag) {
		return reply{status: http.StatusNotModified, etag: rep.etag}
	}
	return rep
}

package mecapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

func (c *call) fail(err error) { mechttp.Fail(c.w, c.r, c.Log, c.fault(err)) }

// fault converts the errors for which these APIs have a status or text of their own.
func (c *call) fault(err error) error {
	var conflict *mec.ConflictError
	exists := cmp.Or(c.route.conflict, http.StatusConflict)
	switch {
	case errors.As(err, &conflict):
		return &mechttp.Fault{Status: exists, Detail: c.conflictText(conflict)}
	case errors.Is(err, mec.ErrTaskRunning):
		return &mechttp.Fault{Status: http.StatusForbidden, Detail: err.Error()}
	case errors.Is(err, store.ErrNotFound):
		return &mechttp.Fault{Status: http.StatusNotFound, Detail: c.notFound()}
	case errors.Is(err, store.ErrExists):
		return &mechttp.Fault{Status: exists, Detail: "Resource already exists: " + err.Error()}
	}
	return err
}

// conflictText names the other owner only to the platform: applications must not learn about each other.
func (c *call) conflictText(e *mec.ConflictError) string {
	if c.name == "mp1" {
		return e.Error()
	}
	return e.Detail()
}

// notFound returns the text for the object in the path that does not exist.
func (c *call) notFound() string {
	for _, part := range []struct{ param, what string }{
		{"rule", "DNS rule"}, {"subscription", "subscription"}, {"task", "task"}, {"app", "application"},
	} {
		if id := c.r.PathValue(part.param); id != "" {
			return fmt.Sprintf("there is no %s %.140q here", part.what, id)
		}
	}
	return "there is nothing here"
}

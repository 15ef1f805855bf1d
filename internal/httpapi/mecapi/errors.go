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

// fault words the errors that these APIs have their own words or statuses for.
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

// conflictText names the other owner to the platform only: an application need not know who else is here.
func (c *call) conflictText(e *mec.ConflictError) string {
	if c.name == "mp1" {
		return e.Error()
	}
	return e.Detail()
}

// notFound names what the path asks for.
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

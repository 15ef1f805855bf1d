package servermgmt

import (
	"errors"
	"net/http"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

func (c *call) fail(err error) { mechttp.Fail(c.w, c.r, c.Log, c.fault(err)) }

// fault converts the errors for which this API has a status or text of its own.
func (c *call) fault(err error) error {
	var conflict *mec.ConflictError
	switch {
	case errors.As(err, &conflict):
		return &mechttp.Fault{Status: c.existsStatus(), Detail: conflict.Detail()}
	case errors.Is(err, store.ErrNotFound):
		return &mechttp.Fault{Status: c.missingStatus(), Detail: "there is no such record"}
	case errors.Is(err, store.ErrExists):
		return &mechttp.Fault{Status: c.existsStatus(), Detail: "record already exists! " + err.Error()}
	}
	return err
}

// existsStatus returns the status for a record that exists already.
func (c *call) existsStatus() int {
	if c.EdgeGalleryStatus {
		return http.StatusBadRequest
	}
	return http.StatusConflict
}

// missingStatus returns the status for a record that does not exist.
func (c *call) missingStatus() int {
	switch {
	case c.EdgeGalleryStatus && c.r.Method == http.MethodPut:
		return http.StatusBadRequest
	case c.EdgeGalleryStatus && c.r.Method == http.MethodDelete:
		return http.StatusInternalServerError
	}
	return http.StatusNotFound
}

package servermgmt

import (
	"errors"
	"net/http"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

func (c *call) fail(err error) { mechttp.Fail(c.w, c.r, c.Log, c.fault(err)) }

// fault words the errors that this API has its own words or statuses for.
func (c *call) fault(err error) error {
	var conflict *mec.ConflictError
	switch {
	case errors.As(err, &conflict):
		return &mechttp.Fault{Status: c.exists(), Detail: conflict.Detail()}
	case errors.Is(err, store.ErrNotFound):
		return &mechttp.Fault{Status: c.missing(), Detail: "there is no such record"}
	case errors.Is(err, store.ErrExists):
		return &mechttp.Fault{Status: c.exists(), Detail: "record already exists! " + err.Error()}
	}
	return err
}

func (c *call) exists() int {
	if c.EdgeGalleryStatus {
		return http.StatusBadRequest
	}
	return http.StatusConflict
}

func (c *call) missing() int {
	switch {
	case c.EdgeGalleryStatus && c.r.Method == http.MethodPut:
		return http.StatusBadRequest
	case c.EdgeGalleryStatus && c.r.Method == http.MethodDelete:
		return http.StatusInternalServerError
	}
	return http.StatusNotFound
}

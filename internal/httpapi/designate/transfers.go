package designate

import (
	"crypto/rand"
	"errors"
	"io"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// transferRequest offers a zone to one project, or to every project that has the key.
type transferRequest struct {
	resourceMeta
	ZoneID          string  `json:"zone_id"`
	ZoneName        string  `json:"zone_name"`
	ProjectID       string  `json:"project_id,omitempty"`
	TargetProjectID *string `json:"target_project_id"`
	Description     *string `json:"description"`
	Key             string  `json:"key,omitempty"`
	Status          string  `json:"status"`
}

// transferRequests lists a request for its owner and for the project that the zone is offered to. The handlers below
// also show a request without a target to every project that knows its id.
var transferRequests = resource[transferRequest, *transferRequest]{
	kind: store.KindTransferRequest, title: "ZoneTransferRequest", path: "/v2/zones/tasks/transfer_requests",
	owners: func(t transferRequest) []string {
		if t.TargetProjectID == nil || *t.TargetProjectID == t.ProjectID {
			return []string{t.ProjectID}
		}
		return []string{t.ProjectID, *t.TargetProjectID}
	},
	ended: func(t transferRequest) bool { return t.Status != statusActive },
	zone:  func(t transferRequest) string { return t.ZoneID },
	present: func(c *call, t *transferRequest) { // only the owner and administrators see the owner and the key
		if !c.scope.caller.IsAdmin() && t.ProjectID != c.scope.project {
			t.ProjectID, t.Key = "", ""
		}
	},
	listing: newListing("transfer_requests", map[string]func(transferRequest) string{
		"status": func(t transferRequest) string { return t.Status },
	}, "status"),
}

// newKey returns eight random letters and digits, the form of Designate's keys: 41 bits.
func newKey() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	key := make([]byte, 0, 8)
	var b [1]byte
	for len(key) < 8 {
		_, _ = rand.Read(b[:])                           // never fails
		if int(b[0]) < 256/len(alphabet)*len(alphabet) { // a plain remainder would prefer the first letters
			key = append(key, alphabet[int(b[0])%len(alphabet)])
		}
	}
	return string(key)
}

// optionalInput reads the body like input, but returns an empty object when there is no body or null: clients of
// Designate create transfer requests without one.
func (c *call) optionalInput(resource string, keys ...string) (*input, error) {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if err != nil {
		return nil, readError(err)
	}
	if isEmptyBody(b) {
		return &input{resource: resource}, nil
	}
	if err := c.wantMedia("application/json"); err != nil {
		return nil, err
	}
	in, err := parseInput(resource, b)
	if err != nil {
		return nil, err
	}
	return in, in.known(keys...)
}

func (c *call) createTransferRequest() (reply, error) {
	in, err := c.optionalInput("transfer_request", "target_project_id", "description")
	if err != nil {
		return reply{}, err
	}
	t := transferRequest{TargetProjectID: in.project("target_project_id"), Key: newKey(), Status: statusActive,
		Description: in.text("description", maxDescription)}
	if in.err() != nil {
		return reply{}, in.err()
	}
	err = c.commit(func(tx *publish.Tx) error {
		z, err := c.ownZone(tx.View)
		if err != nil {
			return err
		}
		t.resourceMeta, t.ZoneID, t.ZoneName, t.ProjectID = newMeta(tx), z.ID.String(), z.Spelled(), z.Project
		return putTransferRequest(tx, t)
	})
	return transferRequests.created(c, http.StatusCreated, t), err
}

// putTransferRequest stores a new request. A second one for a zone is 409, as in Designate.
func putTransferRequest(tx *publish.Tx, t transferRequest) error {
	err := tx.Object(store.KindZoneRequest, t.ZoneID, new(string))
	if err == nil {
		return duplicate("zone_transfer_request", "ZoneTransferRequest")
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return transferRequests.keep(tx, t)
}

// dropTransferRequest deletes the transfer request that offers a zone which is being deleted.
func dropTransferRequest(tx *publish.Tx, zoneID uuid.UUID) error {
	var id string
	var t transferRequest
	err := tx.Object(store.KindZoneRequest, zoneID.String(), &id)
	if err == nil {
		err = tx.Object(store.KindTransferRequest, id, &t)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return transferRequests.drop(tx, t)
}

// transferRequest returns a request that the caller owns or, unless owned is set, that is offered to the caller's
// project or to every project. Administrators may use all requests. Other callers get 403, as in Designate; they have
// the random id of the request from somebody.
func (c *call) transferRequest(v store.View, id string, owned bool) (transferRequest, error) {
	var t transferRequest
	err := v.Object(store.KindTransferRequest, id, &t)
	if errors.Is(err, store.ErrNotFound) {
		return t, notFound("zone_transfer_request", "ZoneTransferRequest")
	}
	owner := c.scope.caller.IsAdmin() || t.ProjectID == c.scope.project
	target := t.TargetProjectID == nil || *t.TargetProjectID == c.scope.project
	if err == nil && !owner && (owned || !target) {
		return t, forbidden("The zone transfer request belongs to other projects.")
	}
	return t, err
}

func (c *call) showTransferRequest() (reply, error) {
	id, err := c.id("id")
	if err != nil {
		return reply{}, err
	}
	t, err := viewed(c, func(v store.View) (transferRequest, error) {
		return c.transferRequest(v, id.String(), false)
	})
	return ok(transferRequests.link(c, t)), err
}

func (c *call) updateTransferRequest() (reply, error) {
	id, err := c.id("id")
	if err != nil {
		return reply{}, err
	}
	in, err := c.anyInput("transfer_request")
	if err != nil {
		return reply{}, err
	}
	describes, description := in.has("description"), in.text("description", maxDescription)
	if in.err() != nil {
		return reply{}, in.err()
	}
	rest := in.repeated("description")
	var t transferRequest
	err = c.commit(func(tx *publish.Tx) (err error) {
		if t, err = c.transferRequest(tx.View, id.String(), true); err != nil {
			return err
		}
		if err := rest.check(func() any { return transferRequests.link(c, t) }); err != nil {
			return err
		}
		if describes {
			t.Description = description
		}
		t.UpdatedAt = timestamp(tx.Now())
		return tx.PutObject(store.KindTransferRequest, t.ID, t)
	})
	return ok(transferRequests.link(c, t)), err
}

func (c *call) deleteTransferRequest() (reply, error) {
	id, err := c.id("id")
	if err != nil {
		return reply{}, err
	}
	err = c.commit(func(tx *publish.Tx) error {
		t, err := c.transferRequest(tx.View, id.String(), true)
		if err != nil {
			return err
		}
		return transferRequests.drop(tx, t)
	})
	return noContent, err
}

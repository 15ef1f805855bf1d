package designate

import (
	"crypto/subtle"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// transferAccept is the acceptance of a zone transfer request. It moves the zone to the project of the caller.
type transferAccept struct {
	resourceMeta
	RequestID string `json:"zone_transfer_request_id"`
	ZoneID    string `json:"zone_id"`
	ProjectID string `json:"project_id"`
	Key       string `json:"key"`
	Status    string `json:"status"`
}

var transferAccepts = resource[transferAccept, *transferAccept]{
	kind: store.KindTransferAccept, title: "ZoneTransferAccept", path: "/v2/zones/tasks/transfer_accepts",
	owners:  func(t transferAccept) []string { return []string{t.ProjectID} },
	ended:   func(transferAccept) bool { return true }, // the zone has moved when the reply is sent
	present: func(c *call, t *transferAccept) { t.Links.Zone = c.url("/v2/zones/" + t.ZoneID) },
	listing: newListing("transfer_accepts", map[string]func(transferAccept) string{
		"status": func(t transferAccept) string { return t.Status },
	}, "status"),
}

func (c *call) createTransferAccept() (reply, error) {
	in, err := c.input("transfer_accept", "key", "zone_transfer_request_id")
	if err != nil {
		return reply{}, err
	}
	in.require("key", "zone_transfer_request_id")
	key, request := in.text("key", 160), in.uuid("zone_transfer_request_id")
	if in.err() != nil {
		return reply{}, in.err()
	}
	var t transferAccept
	err = c.commit(func(tx *publish.Tx) (err error) {
		tx.Note("accept transfer")
		t, err = c.accept(tx, request, *key)
		return err
	})
	return transferAccepts.created(c, http.StatusCreated, t), err
}

// accept transfers the zone of a request to the caller's project.
func (c *call) accept(tx *publish.Tx, request, key string) (transferAccept, error) {
	var t transferAccept
	r, err := c.transferRequest(tx.View, request, false)
	if err != nil {
		return t, err
	}
	if r.Status != statusActive {
		return t, refuse("invalid_zone_transfer_request", "Zone Transfer Request has been used")
	}
	// 403 with this type is Designate's reply to a wrong key. The comparison takes the same time for every wrong key, so
	// that the duration does not give the key away one character at a time.
	if subtle.ConstantTimeCompare([]byte(r.Key), []byte(key)) != 1 {
		return t, &fault{status: http.StatusForbidden, kind: "invalid_key",
			message: "Key does not match stored key for request"}
	}
	z, err := tx.Zone(uuid.MustParse(r.ZoneID))
	if err != nil {
		return t, errNoZone()
	}
	if err := c.takeOver(tx, z); err != nil {
		return t, err
	}
	r.Status, r.UpdatedAt = statusComplete, timestamp(tx.Now())
	if err := transferRequests.keep(tx, r); err != nil {
		return t, err
	}
	t = transferAccept{newMeta(tx), r.ID, r.ZoneID, c.scope.project, key, statusComplete}
	return t, transferAccepts.keep(tx, t)
}

// takeOver changes the owner of a zone to the caller's project. It ends the shares of the zone: the new owner did not
// grant them and does not know about them.
func (c *call) takeOver(tx *publish.Tx, z zone.Zone) error {
	from := z.Project
	z.Project = c.scope.project
	if err := c.checkNeighbours(tx.View, z, from); err != nil {
		return err
	}
	if err := unshare(tx, z.ID); err != nil {
		return err
	}
	_, err := tx.UpdateZone(z)
	return err
}

// checkNeighbours refuses to take over a zone above a zone of another project: the old owner would keep names in it
// that the new owner does not see. It also refuses a zone below a third project's zone, whose owner has not agreed to a
// new neighbour. Two things are allowed: a zone below another zone of the old owner, and everything for administrators.
func (c *call) checkNeighbours(v store.View, z zone.Zone, from string) error {
	if c.scope.caller.IsAdmin() {
		return nil
	}
	parent, found := parentZone(v, z.Name)
	if found && parent.Project != from && parent.Project != z.Project {
		return illegalChild("Unable to take over a subzone of another project's zone; an administrator can")
	}
	return checkChildren(v, z)
}

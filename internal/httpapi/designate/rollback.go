package designate

import (
	"errors"
	"math"
	"net/http"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// rollback restores the record sets of a zone and its TTL to their values at a serial. It does so in one commit, which
// gets a new serial: secondaries would ignore an older one.
func (c *call) rollback() (reply, error) {
	in, err := c.input("rollback", "serial")
	if err != nil {
		return reply{}, err
	}
	in.require("serial")
	serial := in.number("serial", 0, math.MaxUint32)
	if in.err() != nil {
		return reply{}, in.err()
	}
	err = c.commit(func(tx *publish.Tx) error {
		z, _, err := c.ownZoneMatched(tx.View)
		if err != nil {
			return err
		}
		tx.Note("rollback to %d", *serial)
		return c.rollBack(tx, z, uint32(*serial))
	})
	if err != nil {
		return reply{}, err
	}
	rep, _, err := c.zoneReply()
	return rep, err
}

func (c *call) rollBack(tx *publish.Tx, z zone.Zone, serial uint32) error {
	since, err := c.sinceSerial(tx.View, z, serial)
	if err != nil {
		return err
	}
	if z.TTL != since.ttl {
		z.TTL = since.ttl
		if _, err := tx.UpdateZone(z); err != nil {
			return err
		}
	}
	for _, s := range since.sets {
		if err := restore(tx, z, s); err != nil {
			return err
		}
	}
	return nil
}

// restore gives one record set the value back that it had.
func restore(tx *publish.Tx, z zone.Zone, s store.SetChange) error {
	if s.Before == nil && s.After == nil {
		return nil // created and deleted since
	}
	if s = shownChange(s); s.Before == nil && s.After == nil {
		return nil // derived from an ALIAS, which is looked up again
	}
	if s.Before == nil {
		return tx.DeleteSet(z.ID, s.After.Name, s.After.Type)
	}
	was := *s.Before
	for _, d := range was.Data {
		if err := rr.Check(was.Type, d); err != nil {
			return &fault{status: http.StatusConflict, kind: "history_damaged", message: "The history of " +
				was.Name.String() + " " + was.Type.String() + " is damaged (" + err.Error() + "), and nothing was " +
				"restored. Choose a later serial."}
		}
	}
	if was.Type == rr.TypeSOA {
		return restoreSOA(tx, z, was)
	}
	if was.Sent == nil {
		was.Sent = []zone.Sent{} // the texts were canonical; nil would keep those of today
	}
	_, err := tx.UpdateSet(was)
	if errors.Is(err, store.ErrNotFound) {
		_, err = tx.CreateSet(was)
	}
	return err
}

// restoreSOA restores the SOA record except its serial, which only increases. It also restores the email of the zone
// from the mailbox in the SOA.
func restoreSOA(tx *publish.Tx, z zone.Zone, was zone.RecordSet) error {
	if len(was.Data) != 1 {
		return nil
	}
	was.Data = []string{zone.WithSerial(was.Data[0], z.Serial)}
	if _, err := tx.UpdateSet(was); err != nil {
		return err
	}
	soa, ok := zone.ParseSOA(was.Data[0])
	if mail, is := zone.MailboxName(z.Email); !ok || is && mail == soa.RName {
		return nil
	}
	z.Email = soa.RName.Label() + "@" + trimDot(soa.RName.Parent().String())
	_, err := tx.UpdateZone(z)
	return err
}

func trimDot(s string) string {
	if len(s) > 1 {
		return s[:len(s)-1]
	}
	return s
}

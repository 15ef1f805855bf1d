package dnspeer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/update"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// update executes a dynamic update (RFC 2136). The message must be signed with a key whose scope includes the zone.
func (r *request) update(sig *wire.TSIG) error {
	if r.signed != nil {
		now := time.Now()
		v, err := r.replays.begin(sig, now)
		if err != nil {
			return r.fail("read the time of the key", err)
		}
		if v != fresh {
			r.stat.signatures.WithLabelValues("replay").Inc()
			if v == inProgress {
				return nil
			}
			return r.badTime(r.signed, sig, now)
		}
		defer r.replays.end(sig)
	}
	rcode := r.tryUpdate(sig)
	r.stat.updates.WithLabelValues(wire.RcodeText(rcode)).Inc()
	ede := wire.EDENone
	if rcode == dns.RcodeRefused {
		ede = wire.EDEProhibited
	}
	return r.reply(rcode, ede)
}

func (r *request) tryUpdate(sig *wire.TSIG) int {
	if r.q.Question[0].Qtype != dns.TypeSOA { // RFC 2136 §3.1.1; dnsserver has checked that there is one question
		return dns.RcodeFormatError
	}
	_, z, err := r.zoneOf()
	switch {
	case errors.Is(err, errNoZone):
		return dns.RcodeNotAuth
	case err != nil:
		r.cfg.Log.Error("update", "zone", r.name.String(), "peer", r.peer(), "error", err)
		return dns.RcodeServerFailure
	case r.signed == nil || !r.signed.key.For(z):
		return dns.RcodeRefused
	}
	if err := r.takeMemory(z.Project); err != nil {
		return dns.RcodeServerFailure
	}
	var m update.Message
	if m.Prerequisites, err = records(r.q.Answer); err == nil {
		m.Updates, err = records(r.q.Ns)
	}
	if err != nil {
		return dns.RcodeFormatError
	}
	actor := store.Actor{Who: strings.TrimSuffix(r.signed.key.Name.String(), "."), Project: z.Project, API: "update"}
	err = r.cfg.Publisher.Commit(r.ctx, actor, func(tx *publish.Tx) error {
		cur, err := tx.Zone(z.ID)
		if err != nil {
			return err
		}
		if err := update.Apply(tx, cur, m); err != nil {
			return err
		}
		return storeTimeSigned(tx, sig)
	})
	return r.rcodeOf(err)
}

// timeSigned returns the newest stored Time Signed of the updates with a key, or 0.
func timeSigned(v store.View, key dnsname.Name) (newest int64, err error) {
	if err = v.Object(store.KindTimeSigned, key.String(), &newest); errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return newest, err
}

// storeTimeSigned stores the Time Signed of an update if it is the newest of its key.
func storeTimeSigned(tx *publish.Tx, sig *wire.TSIG) error {
	newest, err := timeSigned(tx.View, sig.Key)
	if err != nil || int64(sig.Time) <= newest {
		return err
	}
	return tx.PutObject(store.KindTimeSigned, sig.Key.String(), sig.Time)
}

// rcodeOf returns the RCODE for the result of an update.
func (r *request) rcodeOf(err error) int {
	if err == nil {
		return dns.RcodeSuccess
	}
	level := r.cfg.Log.Info
	rcode := dns.RcodeServerFailure
	if e, ok := errors.AsType[*update.Error](err); ok {
		rcode = e.Rcode
	} else if _, ok := errors.AsType[*zone.PlacementError](err); ok {
		rcode = dns.RcodeRefused
	} else if _, ok := errors.AsType[*zone.InvalidError](err); ok {
		rcode = dns.RcodeRefused
	} else if _, ok := errors.AsType[*publish.QuotaError](err); ok {
		rcode = dns.RcodeRefused
	} else if errors.Is(err, store.ErrNotFound) {
		rcode = dns.RcodeNotAuth
	} else {
		level = r.cfg.Log.Error
	}
	level("update failed", "zone", r.name.String(), "peer", r.peer(), "rcode", wire.RcodeText(rcode), "error", err)
	return rcode
}

// records converts a section of an update.
func records(section []dns.RR) ([]update.Record, error) {
	out := make([]update.Record, 0, len(section))
	for _, rec := range section {
		h := rec.Header()
		name, err := dnsname.Parse(h.Name)
		if err != nil {
			return nil, err
		}
		r := update.Record{Name: name, Type: rr.Type(h.Rrtype), Class: h.Class, TTL: h.Ttl}
		if h.Rdlength > 0 {
			if r.Data, err = rr.FromRR(rec); err != nil {
				return nil, fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		out = append(out, r)
	}
	return out, nil
}

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

// update executes a dynamic update (RFC 2136). The message is signed.
func (r *request) update(sig *wire.TSIG) error {
	start := time.Now()
	v, err := r.replays.begin(sig, start)
	switch {
	case err != nil:
		return r.fail("read the time of the key", err)
	case v == inProgress:
		r.stat.signatures.WithLabelValues("replay").Inc()
		return nil
	case v == replayed:
		r.stat.signatures.WithLabelValues("replay").Inc()
		const why = "the update was received before, or was signed before a newer one of the same key"
		r.logRefusal(refusal{rcode: dns.RcodeNotAuth, kind: "signature", reason: why})
		return r.badTime(r.signed, sig, start, why)
	}
	defer r.replays.end(sig)
	done, err := r.tryUpdate(sig)
	if err != nil {
		return r.updateFailed(err)
	}
	r.stat.updates.WithLabelValues(wire.RcodeText(dns.RcodeSuccess)).Inc()
	r.cfg.Log.Info("audit", "method", "UPDATE", "zone", r.name.String(), "serial", done.Serial, "records", len(r.q.Ns),
		"who", "key "+r.keyName(), "project", done.Project, "from", r.m.From.String(), "took", time.Since(start))
	return r.reply(dns.RcodeSuccess, wire.EDENone)
}

// keyName returns the name of the key without its final dot, as in the history of zones.
func (r *request) keyName() string { return strings.TrimSuffix(r.signed.key.Name.String(), ".") }

// tryUpdate makes the update, and returns the zone as the update leaves it.
func (r *request) tryUpdate(sig *wire.TSIG) (left zone.Zone, err error) {
	if r.q.Question[0].Qtype != dns.TypeSOA { // RFC 2136 §3.1.1; dnsserver has checked that there is one question
		return left, &update.Error{Rcode: dns.RcodeFormatError, Reason: "the zone section must have the type SOA"}
	}
	_, z, err := r.zoneOf()
	if err != nil {
		return left, err
	}
	key := r.signed.key
	if !key.For(z) {
		return left, &update.Error{Rcode: dns.RcodeRefused, Reason: "key " + r.keyName() + " is not for this zone",
			Denied: true}
	}
	if err := r.takeMemory(z.Project); err != nil {
		return left, err
	}
	m := update.Message{May: key.MayChange}
	if m.Prerequisites, err = records(r.q.Answer); err == nil {
		m.Updates, err = records(r.q.Ns)
	}
	if err != nil {
		return left, &update.Error{Rcode: dns.RcodeFormatError, Reason: err.Error()}
	}
	actor := store.Actor{Who: r.keyName(), Project: z.Project, API: "update"}
	err = r.cfg.Publisher.Commit(r.ctx, actor, func(tx *publish.Tx) error {
		cur, err := tx.Zone(z.ID)
		if err != nil {
			return err
		}
		if err := update.Apply(tx, cur, m); err != nil {
			return err
		}
		if err := tx.After(z.ID, &left); err != nil {
			return err
		}
		return storeTimeSigned(tx, sig)
	})
	return left, err
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

// updateFailed answers an update that was not made, and reports it. A prerequisite that does not hold is an answer for
// the client; a refusal is a warning for the operator; anything else is an error of this server.
func (r *request) updateFailed(err error) error {
	if e, ok := errors.AsType[*update.Error](err); ok && e.Unmet {
		r.stat.updates.WithLabelValues(wire.RcodeText(e.Rcode)).Inc()
		r.cfg.Log.Debug("prerequisite of an update does not hold", "zone", r.name.String(), "peer", r.peer(),
			"rcode", wire.RcodeText(e.Rcode), "reason", e.Reason)
		return r.send(r.unsignedReply(e.Rcode, wire.EDEOther, e.Reason))
	}
	if why, ok := refusalOf(err); ok {
		return r.refuseUpdate(why)
	}
	r.stat.updates.WithLabelValues(wire.RcodeText(dns.RcodeServerFailure)).Inc()
	r.cfg.Log.Error("update failed", "zone", r.name.String(), "peer", r.peer(), "error", err)
	return r.reply(dns.RcodeServerFailure, wire.EDENone)
}

// refusalOf returns the refusal that an error means. It returns false for failures of this server.
func refusalOf(err error) (refusal, bool) {
	if e, ok := errors.AsType[*update.Error](err); ok {
		why := refusal{e.Rcode, wire.EDEOther, "content", e.Reason}
		switch {
		case e.Denied:
			why.ede, why.kind = wire.EDEProhibited, "key"
		case e.Rcode == dns.RcodeNotAuth:
			why.ede, why.kind = wire.EDENotAuthoritative, "zone"
		}
		return why, true
	}
	if errors.Is(err, errNoZone) || errors.Is(err, store.ErrNotFound) {
		return refusal{dns.RcodeNotAuth, wire.EDENotAuthoritative, "zone", "this server does not have the zone"}, true
	}
	if _, ok := errors.AsType[*publish.QuotaError](err); ok {
		return refusal{dns.RcodeRefused, wire.EDEProhibited, "quota", err.Error()}, true
	}
	_, placement := errors.AsType[*zone.PlacementError](err)
	_, invalid := errors.AsType[*zone.InvalidError](err)
	return refusal{dns.RcodeRefused, wire.EDEOther, "content", err.Error()}, placement || invalid
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

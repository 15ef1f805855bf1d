package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// step sends one query and records the result.
func (n *Notifier) step(ctx context.Context, s step) {
	var z zone.Zone
	err := n.pub.View(func(v store.View) (err error) { z, err = v.Zone(s.zone); return err })
	if errors.Is(err, store.ErrNotFound) || err == nil && !transferred(z) {
		n.mu.Lock()
		delete(n.zones, s.zone)
		n.mu.Unlock()
		return
	}
	var has uint32
	if err == nil {
		if s.notify {
			err = n.notify(ctx, z, s)
		} else {
			has, err = serialAt(ctx, n.opts.Ask, s.to, z.Name)
		}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	n.record(z, s, has, err)
}

// notify sends a NOTIFY.
func (n *Notifier) notify(ctx context.Context, z zone.Zone, s step) error {
	n.stat.sent.Inc()
	r, err := n.opts.Ask(ctx, s.to, new(dns.Msg).SetNotify(z.Name.String()))
	if err != nil {
		return err
	}
	if r.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("NOTIFY was answered with %s", wire.RcodeText(r.Rcode))
	}
	return nil
}

// record stores the result of a step and schedules the next one.
func (n *Notifier) record(z zone.Zone, s step, has uint32, err error) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.zones[s.zone]
	if at == nil || s.round != n.round {
		return
	}
	p := &at.peers[s.peer]
	p.busy, p.alive = false, err == nil
	p.problem = ""
	since := at.changes[at.lacks(p)].since
	if err != nil {
		n.stat.failed.Inc()
		p.problem = err.Error()
	}
	if s.notify {
		p.reminded = now
	} else if err == nil {
		at.learn(p, has)
	}
	switch {
	case err == nil && !s.notify && int32(has-at.serial) >= 0: // RFC 1982
		p.done = true
		if !p.check {
			n.stat.took.Observe(now.Sub(since).Seconds())
		}
		n.forget(s.zone, at)
		return
	case at.serial != s.serial: // a newer serial exists
		n.schedule(s.zone, at, s.peer, now)
		return
	case err == nil && s.notify:
		p.acked, p.tries = true, 0
		n.schedule(s.zone, at, s.peer, now.Add(firstPause))
		return
	case err == nil && (p.check || !p.acked):
		p.check = false // the secondary is behind: notify it
		n.schedule(s.zone, at, s.peer, now)
		return
	case err != nil:
		p.check = false // unconfirmed: the secondary counts as outdated and is notified
	}
	n.schedule(s.zone, at, s.peer, now.Add(pause(p.tries)))
	if p.tries++; p.tries == 8 {
		n.opts.Log.Warn("secondary does not update", "zone", z.Name.String(), "secondary", s.to.Addr.String(),
			"serial", s.serial, "has", p.has, "problem", p.problem)
	}
}

// forget removes a zone that every secondary has. Callers hold n.mu.
func (n *Notifier) forget(id uuid.UUID, z *pendingZone) {
	if !slices.ContainsFunc(z.peers, func(p peer) bool { return !p.done }) {
		delete(n.zones, id)
	}
}

// pause returns the wait after a number of tries. It grows, so that a secondary that is down for an hour is not queried
// a thousand times.
func pause(tries int) time.Duration { return min(firstPause<<min(tries, 20), longestPause) }

// Progress returns for each secondary whether it has the newest serial of a zone; nothing without secondaries.
func (n *Notifier) Progress(id uuid.UUID) []Progress {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]Progress, len(n.secondaries))
	z := n.zones[id]
	for i, s := range n.secondaries {
		out[i] = Progress{Secondary: s, InSync: true}
		if z == nil {
			continue
		}
		p := &z.peers[i]
		out[i].InSync, out[i].Has = p.done || p.check, p.has
		if !out[i].InSync {
			first := z.changes[z.lacks(p)]
			out[i].Acknowledged, out[i].Since, out[i].From = p.acked, first.since, first.from
			out[i].Next, out[i].Problem = p.next, p.why()
		}
	}
	return out
}

// why returns why a secondary is not in sync, as far as this server can see.
func (p *peer) why() string {
	switch {
	case p.problem != "":
		return p.problem
	case p.acked && p.has != 0:
		return fmt.Sprintf("answered the NOTIFY, but still has serial %d", p.has)
	}
	return ""
}

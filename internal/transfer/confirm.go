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

// step asks, and notes what came of it.
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
			err = n.tell(ctx, z, s)
		} else {
			has, err = serialAt(ctx, n.opts.Ask, s.to, z.Name)
		}
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	n.note(z, s, has, err)
}

// tell sends a NOTIFY.
func (n *Notifier) tell(ctx context.Context, z zone.Zone, s step) error {
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

// note writes down what a step came to, and when the next one is due.
func (n *Notifier) note(z zone.Zone, s step, has uint32, err error) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.zones[s.zone]
	if at == nil || s.round != n.round {
		return
	}
	p := &at.peers[s.peer]
	p.busy = false
	p.problem = ""
	if err != nil {
		n.stat.failed.Inc()
		p.problem = err.Error()
	}
	if s.notify {
		p.reminded = now
	}
	switch {
	case at.serial != s.serial: // a newer one has come meanwhile
		n.schedule(s.zone, at, s.peer, now)
		return
	case err == nil && s.notify:
		p.acked, p.tries = true, 0
		n.schedule(s.zone, at, s.peer, now.Add(firstPause))
		return
	case err == nil && int32(has-s.serial) >= 0: // RFC 1982
		p.has, p.done = has, true
		if !p.check {
			n.stat.took.Observe(now.Sub(p.since).Seconds())
		}
		n.forget(s.zone, at)
		return
	case err == nil && p.check:
		p.has, p.check = has, false // it is behind: tell it
		n.schedule(s.zone, at, s.peer, now)
		return
	case err == nil:
		p.has = has
	default:
		p.check = false // nobody confirms what it has: it counts as lacking it, and is told
	}
	n.schedule(s.zone, at, s.peer, now.Add(pause(p.tries)))
	if p.tries++; p.tries == 8 {
		n.opts.Log.Warn("a secondary does not follow", "zone", z.Name.String(), "secondary", s.to.Addr.String(),
			"serial", s.serial, "has", p.has, "problem", p.problem)
	}
}

// forget drops a zone that every secondary has. n.mu is held.
func (n *Notifier) forget(id uuid.UUID, z *notified) {
	if !slices.ContainsFunc(z.peers, func(p peer) bool { return !p.done }) {
		delete(n.zones, id)
	}
}

// pause grows from try to try: a secondary that is down for an hour is not asked a thousand times.
func pause(tries int) time.Duration { return min(firstPause<<min(tries, 20), longestPause) }

// Progress tells for each secondary whether it has the newest serial of a zone; nothing when there are no secondaries.
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
		p := z.peers[i]
		out[i].InSync, out[i].Has = p.done || p.check, p.has
		if !out[i].InSync {
			out[i].Acknowledged, out[i].Since, out[i].Next, out[i].Problem = p.acked, p.since, p.next, p.why()
		}
	}
	return out
}

// why is what keeps a secondary from being in sync, as far as it can be told from here.
func (p *peer) why() string {
	switch {
	case p.problem != "":
		return p.problem
	case p.acked && p.has != 0:
		return fmt.Sprintf("it has answered the NOTIFY, and still has serial %d", p.has)
	}
	return ""
}

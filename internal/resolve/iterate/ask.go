package iterate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// job is a question to one server of a zone.
type job struct {
	zone   dnsname.Name
	server netip.Addr
	q      Question
	tcp    bool // ask over TCP too, if that did not become necessary anyway
}

// asking is a job at work: what it tries next.
type asking struct {
	job
	run    *run
	edns   bool
	tcp    bool
	cookie string // hex; the client's, and the server's once it is known
	bad    int    // BADCOOKIE replies
	out    []Exchange
	reply  *dns.Msg // the last
	err    error
}

// do asks until there is a reply to judge, or no hope for one. The last exchange over the transport of the question is its
// verdict.
func (r *run) do(j job) ([]Exchange, *dns.Msg, error) {
	a := &asking{job: j, run: r, edns: true, cookie: r.cookie(j.server)}
	verdict := a.untilJudged()
	if j.tcp && !a.tcp && !verdict.Transport() && verdict != Unknown {
		reply, err := a.reply, a.err
		a.tcp = true
		a.untilJudged()
		a.reply, a.err = reply, err
	}
	return a.out, a.reply, a.err
}

// untilJudged tries again where the reply says how, and after failures as often as there are timeouts.
func (a *asking) untilJudged() Class {
	timeouts := a.run.opts.Timeouts
	for failures := 0; ; {
		c := a.send(timeouts[failures])
		switch {
		case c == Truncated && !a.tcp:
			a.tcp = true
		case (c == FormErr || c == NotImp || c == BadVers) && a.edns:
			a.edns = false
		case c == BadCookie && a.learnCookie():
		case c.Transport() && failures+1 < len(timeouts):
			failures++
		default:
			return c
		}
	}
}

// learnCookie prepares for a reply of BADCOOKIE (RFC 7873 §5.3): with the server's cookie, then over TCP, then no more.
func (a *asking) learnCookie() bool {
	a.bad++
	if c := cookieOf(a.reply); c != "" && a.bad == 1 {
		a.cookie = c
		return true
	}
	if a.tcp {
		return false
	}
	a.tcp = true
	return true
}

func cookieOf(m *dns.Msg) string {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if c, ok := o.(*dns.EDNS0_COOKIE); ok {
				return c.Cookie
			}
		}
	}
	return ""
}

// send sends one query, and writes down what comes of it.
func (a *asking) send(timeout time.Duration) Class {
	r := a.run
	e := Exchange{At: r.clock(), Zone: a.zone, Server: a.server, Transport: a.transport().String(), Question: a.q, EDNS: a.edns}
	if a.reply, a.err = nil, r.admit(a.server, len(a.out) == 0); a.err == nil {
		e.At, e.Try = r.clock(), len(a.out)+1
		a.reply, a.err = a.exchange(timeout)
		e.RTT = r.clock() - e.At
		r.opts.Budget.Release()
	}
	a.reply, a.err = pack(&e, a.reply, a.err)
	e.Class = Classify(a.zone, a.q, a.reply, a.err)
	if a.err != nil {
		e.Error = reason(a.err)
	}
	r.waste(a.server, e.Class, e.RTT)
	a.out = append(a.out, e)
	return e.Class
}

// clock is the time since the walk began, as exactly as it is recorded.
func (r *run) clock() time.Duration { return time.Since(r.began).Round(time.Microsecond) }

// errHopeless is why a server that never replied is not asked another question.
var errHopeless = fmt.Errorf("%w: for this server, which never replied", resolve.ErrBudget)

func (a *asking) exchange(timeout time.Duration) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(a.run.ctx, timeout)
	defer cancel()
	server := resolve.Server{Transport: a.transport(), Addr: netip.AddrPortFrom(a.server, 53)}
	m, err := once(ctx, a.run.exchanger, server, a.query())
	if err != nil && a.run.ctx.Err() != nil {
		return nil, a.run.timeUp() // the server may have been about to reply
	}
	return m, err
}

func (a *asking) transport() resolve.Transport {
	if a.tcp {
		return resolve.TCP
	}
	return resolve.UDP
}

// query is what is sent: RD is never set, as what caches say is not wanted.
func (a *asking) query() *dns.Msg {
	q := Query{Question: a.q, NoEDNS: !a.edns, NoDNSSEC: a.run.opts.NoDNSSEC}
	return q.message(a.cookie)
}

// pack keeps the reply in wire form. The id was checked and is random, so it is left out.
func pack(e *Exchange, reply *dns.Msg, failed error) (*dns.Msg, error) {
	if reply == nil {
		return nil, failed
	}
	if len(reply.Answer)+len(reply.Ns)+len(reply.Extra) > maxRecords {
		return nil, errCrowd
	}
	m := reply.Copy()
	m.Id, m.Compress = 0, true
	wire, err := m.Pack()
	if err == nil {
		err = new(dns.Msg).Unpack(wire)
	}
	if err != nil {
		return nil, err
	}
	e.Reply = wire
	return reply, failed
}

// maxRecords is more than replies of any real zone have. All that looks at replies compares their records with each other, so that
// thousands of them are not evidence, but an attack.
const maxRecords = 1000

// errCrowd is why a reply is not looked at.
var errCrowd = fmt.Errorf("%w: for the reply, which has more than %d records", resolve.ErrBudget, maxRecords)

// reason is an error in words that are the same each time it happens.
func reason(err error) string {
	switch {
	case errors.Is(err, errHopeless):
		return errHopeless.Error()
	case errors.Is(err, errCrowd):
		return errCrowd.Error()
	}
	switch failure(err) {
	case Unknown:
		return resolve.ErrBudget.Error()
	case Timeout:
		return "no reply in time"
	case Truncated:
		return errCut.Error()
	case BadID:
		return resolve.ErrID.Error()
	case QuestionMismatch:
		return resolve.ErrQuestion.Error()
	}
	return err.Error()
}

// cookie is the client cookie for a server: a random one for each, so that servers cannot tell together who we are.
func (r *run) cookie(server netip.Addr) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.cookies[server]; ok {
		return c
	}
	c := newCookie()
	r.cookies[server] = c
	return c
}

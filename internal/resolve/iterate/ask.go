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

// job is a question for one server of a zone.
type job struct {
	zone   dnsname.Name
	server netip.Addr
	q      Question
	tcp    bool // ask over TCP too, even if the reply over UDP is complete
}

// attempt is the state of a job between its queries.
type attempt struct {
	job
	run    *run
	edns   bool
	tcp    bool
	cookie string // in hex: the client cookie, followed by the server cookie once it is known
	bad    int    // number of BADCOOKIE replies
	out    []Exchange
	reply  *dns.Msg // the last reply
	err    error
}

// do sends a question until there is a reply to classify, or until the retries are used up. The class of the last
// exchange over the requested transport is the verdict.
func (r *run) do(j job) ([]Exchange, *dns.Msg, error) {
	a := &attempt{job: j, run: r, edns: true, cookie: r.cookie(j.server)}
	verdict := a.retry()
	if j.tcp && !a.tcp && !verdict.Transport() && verdict != Unknown {
		reply, err := a.reply, a.err
		a.tcp = true
		a.retry()
		a.reply, a.err = reply, err
	}
	return a.out, a.reply, a.err
}

// retry sends the query until it gets a reply that needs no retry. It retries if the reply says how to, and after
// failures once for each further timeout in the options.
func (a *attempt) retry() Class {
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

// learnCookie prepares the retry after a BADCOOKIE reply (RFC 7873 §5.3): first with the server's cookie, then over
// TCP. After that it returns false.
func (a *attempt) learnCookie() bool {
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

// send sends one query and records the exchange.
func (a *attempt) send(timeout time.Duration) Class {
	r := a.run
	e := Exchange{At: r.clock(), Zone: a.zone, Server: a.server, Transport: a.transport().String(), Question: a.q,
		EDNS: a.edns}
	if a.reply, a.err = nil, r.admit(a.server, len(a.out) == 0); a.err == nil {
		e.At, e.Try = r.clock(), len(a.out)+1
		a.reply, a.err = a.exchange(timeout, &e.Size)
		e.RTT = r.clock() - e.At
		r.opts.Budget.Release()
	}
	a.reply, a.err = pack(&e, a.reply, a.err)
	e.Class = Classify(a.zone, a.q, a.reply, a.err)
	if a.err != nil {
		e.Error = reason(a.err)
	}
	r.countWait(a.server, e.Class, e.RTT)
	a.out = append(a.out, e)
	return e.Class
}

// clock returns the time since the walk began, with the precision of the trace.
func (r *run) clock() time.Duration { return time.Since(r.began).Round(time.Microsecond) }

// errUnresponsive reports that a question was not sent to a server because the server never replied before.
var errUnresponsive = fmt.Errorf("%w: for this server, which never replied", resolve.ErrBudget)

func (a *attempt) exchange(timeout time.Duration, size *int) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(resolve.WithSize(a.run.ctx, size), timeout)
	defer cancel()
	server := resolve.Server{Transport: a.transport(), Addr: netip.AddrPortFrom(a.server, 53)}
	m, err := once(ctx, a.run.exchanger, server, a.query())
	if err != nil && a.run.ctx.Err() != nil {
		return nil, a.run.timeUp() // the walk ran out of time, so this is not a timeout of the server
	}
	return m, err
}

func (a *attempt) transport() resolve.Transport {
	if a.tcp {
		return resolve.TCP
	}
	return resolve.UDP
}

// query returns the message to send. RD is never set: replies from caches are of no use.
func (a *attempt) query() *dns.Msg {
	q := Query{Question: a.q, NoEDNS: !a.edns, NoDNSSEC: a.run.opts.NoDNSSEC}
	return q.message(a.cookie)
}

// pack stores the reply in wire format. It leaves out the ID, which is random and was checked before.
func pack(e *Exchange, reply *dns.Msg, failed error) (*dns.Msg, error) {
	if reply == nil {
		return nil, failed
	}
	if len(reply.Answer)+len(reply.Ns)+len(reply.Extra) > maxRecords {
		return nil, errTooManyRecords
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

// maxRecords is more than the replies of any real zone have. Code that reads replies compares their records with each
// other, so a reply with thousands of records is an attack and not evidence.
const maxRecords = 1000

// errTooManyRecords reports that a reply was discarded because of its size.
var errTooManyRecords = fmt.Errorf("%w: for the reply, which has more than %d records", resolve.ErrBudget, maxRecords)

// reason returns the text of an error. It is always the same for the same kind of failure.
func reason(err error) string {
	switch {
	case errors.Is(err, errUnresponsive):
		return errUnresponsive.Error()
	case errors.Is(err, errTooManyRecords):
		return errTooManyRecords.Error()
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

// cookie returns the client cookie for a server. Each server gets a different random one, so that servers cannot
// recognize the client together.
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

// Package dnsnameresolver is the CoreDNS plugin that learns the addresses behind the names of egress rules, and holds a
// reply until the firewall of the client's node allows them.
//
// Start with ServeDNS in plugin.go, which sees each query. The engine in engine.go records observations. run.go starts
// the engine and writes the status of DNSNameResolvers; an object (object.go) is the state of one of them. config.go
// parses the Corefile.
package dnsnameresolver

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// Name is the name of the directive, the same as that of the stock plugin.
const Name = "ocp_dnsnameresolver"

// Plugin is the handler in the plugin chain of one server block. Server blocks with the same options share an engine.
type Plugin struct {
	Next   plugin.Handler
	engine *engine
}

// Name implements plugin.Handler.
func (p *Plugin) Name() string { return Name }

// ServeDNS passes queries that match no rule on, and observes the replies to the other ones.
func (p *Plugin) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if r.Opcode == dns.OpcodeQuery && len(r.Question) == 1 && learn.Learnable(r.Question[0]) {
		var buf [4]*object
		if objects := p.engine.tree.Load().Append(buf[:0], r.Question[0].Name); len(objects) > 0 {
			return p.observe(ctx, w, r, slices.Clone(objects))
		}
		p.engine.recent.note(p, r.Question[0], w.RemoteAddr())
	}
	return plugin.NextOrFailure(Name, p.Next, ctx, w, r)
}

// observe calls the next plugin, learns from the reply, and releases it.
func (p *Plugin) observe(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, objects []*object) (int, error) {
	held := &heldWriter{ResponseWriter: w}
	question := r.Question[0] // `rewrite` changes the question of the message
	code, err := plugin.NextOrFailure(Name, p.Next, ctx, held, r)
	observation, ok := outcome(ctx, question, held.msg, code, err, p.engine.rules)
	if !ok {
		return code, release(held, err)
	}
	began := time.Now()
	waited, failure := p.engine.learn(ctx, objects, observation, addrPort(w.RemoteAddr()).Addr())
	if waited {
		observeHold(began, failure)
	}
	if failure == nil || held.msg == nil || p.engine.opts.onTimeout == answer {
		return code, release(held, err)
	}
	return p.giveUp(held, r, question)
}

// outcome returns the observation from the result of the chain. There may be no message: `forward` returns none if no
// upstream answers.
func outcome(ctx context.Context, q dns.Question, msg *dns.Msg, code int, err error,
	rules learn.Rules) (learn.Observation, bool) {
	if msg != nil {
		return rules.FromReply(q, msg)
	}
	if ctx.Err() != nil || code == dns.RcodeSuccess && err == nil {
		return learn.Observation{}, false // the client left, or a plugin chose not to reply
	}
	if code == dns.RcodeSuccess {
		code = dns.RcodeServerFailure
	}
	return learn.FromFailure(q, code)
}

func release(w *heldWriter, err error) error {
	if werr := w.release(); err == nil {
		err = werr
	}
	return err
}

// giveUp performs the configured action for a reply whose addresses are not programmed.
func (p *Plugin) giveUp(held *heldWriter, r *dns.Msg, question dns.Question) (int, error) {
	if p.engine.opts.onTimeout == drop {
		return dns.RcodeSuccess, nil // RcodeSuccess means that a reply was written
	}
	m := new(dns.Msg)
	m.SetRcode(r, dns.RcodeServerFailure)
	m.Question = []dns.Question{question}
	if opt := r.IsEdns0(); opt != nil {
		m.SetEdns0(opt.UDPSize(), opt.Do())
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeNotReady,
			ExtraText: "egress firewall not ready"}}
	}
	return dns.RcodeSuccess, held.ResponseWriter.WriteMsg(m)
}

// resolveAgain queries a name that a client queried before there was a rule for it, and learns from the answer.
func (p *Plugin) resolveAgain(ctx context.Context, objects []*object, name string, qtype uint16,
	client netip.AddrPort) {
	r := new(dns.Msg)
	r.SetQuestion(name, qtype)
	r.SetEdns0(dns.DefaultMsgSize, false)
	held := &heldWriter{ResponseWriter: discardWriter{client}}
	question := r.Question[0]
	code, err := plugin.NextOrFailure(Name, p.Next, ctx, held, r)
	if observation, ok := outcome(ctx, question, held.msg, code, err, p.engine.rules); ok {
		p.engine.notify(objects, observation)
	}
}

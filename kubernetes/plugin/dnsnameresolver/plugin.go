// Package dnsnameresolver is the CoreDNS plugin that learns the addresses behind names of egress rules, and keeps a reply back
// until the firewall of the asking pod's node knows them.
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

// Name is the directive, which is that of the stock plugin.
const Name = "ocp_dnsnameresolver"

// Plugin is one place in the chain of a server block. Blocks with the same options share an engine.
type Plugin struct {
	Next   plugin.Handler
	engine *engine
}

// Name is part of plugin.Handler.
func (p *Plugin) Name() string { return Name }

// ServeDNS lets questions of no rule pass, and looks at the replies to others.
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

// observe asks the rest of the chain, learns from the reply, and lets it go.
func (p *Plugin) observe(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, objects []*object) (int, error) {
	held := &heldWriter{ResponseWriter: w}
	question := r.Question[0] // `rewrite` changes that of the message
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

// outcome is the lesson of what the chain did. A chain may end without a message: `forward` does when no upstream answers.
func outcome(ctx context.Context, q dns.Question, msg *dns.Msg, code int, err error, rules learn.Rules) (learn.Observation, bool) {
	if msg != nil {
		return rules.FromReply(q, msg)
	}
	if ctx.Err() != nil || code == dns.RcodeSuccess && err == nil {
		return learn.Observation{}, false // the client left, or a plugin chose to say nothing
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

// giveUp is the declared action for a reply whose addresses are not programmed.
func (p *Plugin) giveUp(held *heldWriter, r *dns.Msg, question dns.Question) (int, error) {
	if p.engine.opts.onTimeout == drop {
		return dns.RcodeSuccess, nil // which says that a reply was written
	}
	m := new(dns.Msg)
	m.SetRcode(r, dns.RcodeServerFailure)
	m.Question = []dns.Question{question}
	if opt := r.IsEdns0(); opt != nil {
		m.SetEdns0(opt.UDPSize(), opt.Do())
		m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeNotReady, ExtraText: "egress firewall not ready"}}
	}
	return dns.RcodeSuccess, held.ResponseWriter.WriteMsg(m)
}

// ask asks for a name that was asked for before there was a rule for it, and learns from the answer.
func (p *Plugin) resolveAgain(ctx context.Context, objects []*object, name string, qtype uint16, client netip.AddrPort) {
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

package simnet

import (
	"encoding/hex"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

// ednsManner is what a server does with EDNS.
type ednsManner string

const (
	ednsProper  ednsManner = ""        // RFC 6891
	ednsFormerr ednsManner = "formerr" // does not take it, and says so
	ednsIgnore  ednsManner = "ignore"  // replies as if it was not there
	ednsDrop    ednsManner = "drop"    // does not reply to it
	ednsBrittle ednsManner = "brittle" // does not reply to versions, flags and options that it does not know
)

var ednsManners = []ednsManner{ednsProper, ednsFormerr, ednsIgnore, ednsDrop, ednsBrittle}

// oldTypes are those that even servers from the last century know.
var oldTypes = []uint16{dns.TypeA, dns.TypeNS, dns.TypeCNAME, dns.TypeSOA, dns.TypePTR, dns.TypeMX, dns.TypeTXT, dns.TypeAAAA, dns.TypeSRV}

// ignores reports whether the server leaves a query without a reply because of how it is put, or by whom.
func (m *manner) ignores(q *query) bool {
	if m.ignorant && !slices.Contains(oldTypes, q.typ) || m.only == "tcp" && q.way.transport == resolve.UDP {
		return true
	}
	if slices.ContainsFunc(m.deaf, func(p netip.Prefix) bool { return p.Contains(q.way.client) }) {
		return true
	}
	opt := q.msg.IsEdns0()
	return opt != nil && (m.edns == ednsDrop || m.edns == ednsBrittle && unusual(opt))
}

// unusual reports whether an OPT record has something that only newer servers know.
func unusual(opt *dns.OPT) bool {
	if opt.Version() != 0 || opt.Z() != 0 {
		return true
	}
	return slices.ContainsFunc(opt.Option, func(o dns.EDNS0) bool { _, strange := o.(*dns.EDNS0_LOCAL); return strange })
}

// object replies to a query whose EDNS the server does not take, or that lacks the server's cookie.
func (m *manner) object(q *query) bool {
	opt := q.msg.IsEdns0()
	switch {
	case opt == nil || m.edns == ednsIgnore:
		return false
	case m.edns == ednsFormerr:
		clearReply(q.reply, dns.RcodeFormatError)
		q.reply.Extra = nil
		return true
	case opt.Version() != 0:
		clearReply(q.reply, dns.RcodeBadVers)
		q.reply.Extra = nil
		q.reply.SetEdns0(wire.UDPSize, opt.Do())
		return true
	case m.cookies && q.way.transport == resolve.UDP:
		return m.wantCookie(q, opt)
	}
	return false
}

func clearReply(r *dns.Msg, rcode int) {
	r.Rcode, r.Answer, r.Ns, r.Extra, r.Authoritative = rcode, nil, nil, nil, false
}

// wantCookie gives the server's cookie to those who bring their own, and insists on it (RFC 7873 §5.2).
func (m *manner) wantCookie(q *query, opt *dns.OPT) bool {
	for _, o := range opt.Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok && len(c.Cookie) >= 16 {
			want := serverCookie(c.Cookie[:16])
			if c.Cookie != want {
				clearReply(q.reply, dns.RcodeBadCookie)
			}
			q.addOption(&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: want})
			return c.Cookie != want
		}
	}
	return false
}

// serverCookie is a client's cookie with the server's behind it.
func serverCookie(client string) string {
	h := fnv.New64a()
	h.Write([]byte(client))
	return client + hex.EncodeToString(h.Sum(nil))
}

// addOption adds an option to the reply to a query that has an OPT record.
func (q *query) addOption(o dns.EDNS0) {
	from := q.msg.IsEdns0()
	if from == nil {
		return
	}
	if q.reply.IsEdns0() == nil {
		q.reply.SetEdns0(wire.UDPSize, from.Do())
	}
	opt := q.reply.IsEdns0()
	opt.Option = append(opt.Option, o)
}

// addError adds an extended error (RFC 8914) to a reply.
func (q *query) addError(code uint16, text string) {
	q.addOption(&dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
}

// readSubnet makes the subnet that a query names the one whom it is for.
func (m *manner) readSubnet(q *query) {
	if !m.subnets {
		return
	}
	if o := subnet(q.msg); o != nil {
		if a, ok := netip.AddrFromSlice(o.Address); ok {
			q.client, _ = a.Unmap().Prefix(int(o.SourceNetmask))
		}
	}
}

func subnet(m *dns.Msg) *dns.EDNS0_SUBNET {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if o, ok := o.(*dns.EDNS0_SUBNET); ok {
				return o
			}
		}
	}
	return nil
}

// describe adds what the query wants to know: who replies, and for which subnet (RFC 7871 §7.2.1).
func (m *manner) describe(q *query) {
	opt := q.msg.IsEdns0()
	if opt == nil || m.edns == ednsIgnore {
		return
	}
	for _, o := range opt.Option {
		if o, ok := o.(*dns.EDNS0_NSID); ok && m.nsid != "" {
			id := m.nsid
			if q.instance > 0 {
				id += "-" + strconv.Itoa(q.instance)
			}
			q.addOption(&dns.EDNS0_NSID{Code: o.Code, Nsid: hex.EncodeToString([]byte(id))})
		}
		if o, ok := o.(*dns.EDNS0_SUBNET); ok && m.subnets {
			echo := *o
			echo.SourceScope = uint8(q.scope)
			q.addOption(&echo)
		}
	}
}

// fit gives the reply an OPT record if the query has one, and cuts it off if it is too large.
func (m *manner) fit(q *query) {
	size := dns.MinMsgSize
	if opt := q.msg.IsEdns0(); opt != nil && m.edns != ednsIgnore {
		size = max(size, int(opt.UDPSize()))
		if q.reply.IsEdns0() == nil {
			q.reply.SetEdns0(wire.UDPSize, opt.Do())
		}
	}
	if q.way.transport == resolve.UDP && q.reply.Len() > size && !m.large {
		cut(q.reply)
	}
}

func cut(r *dns.Msg) { r.Truncated, r.Answer, r.Ns, r.Extra = true, nil, nil, onlyOPT(r) }

// onlyOPT is the additional section without addresses.
func onlyOPT(r *dns.Msg) []dns.RR {
	if opt := r.IsEdns0(); opt != nil {
		return []dns.RR{opt}
	}
	return nil
}

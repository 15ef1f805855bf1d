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

// ednsBehavior is how a server handles EDNS.
type ednsBehavior string

const (
	ednsProper  ednsBehavior = ""        // RFC 6891
	ednsFormerr ednsBehavior = "formerr" // rejects queries with EDNS
	ednsIgnore  ednsBehavior = "ignore"  // replies as if the query had no OPT record
	ednsDrop    ednsBehavior = "drop"    // does not reply to queries with EDNS
	ednsBrittle ednsBehavior = "brittle" // does not reply to unknown versions, flags and options
)

var ednsBehaviors = []ednsBehavior{ednsProper, ednsFormerr, ednsIgnore, ednsDrop, ednsBrittle}

// oldTypes are the types that even servers of the 1990s know.
var oldTypes = []uint16{dns.TypeA, dns.TypeNS, dns.TypeCNAME, dns.TypeSOA, dns.TypePTR, dns.TypeMX, dns.TypeTXT,
	dns.TypeAAAA, dns.TypeSRV}

// ignores reports whether the server sends no reply because of the form of a query or because of its client.
func (m *behavior) ignores(q *query) bool {
	if m.ignorant && !slices.Contains(oldTypes, q.typ) || m.only == "tcp" && q.via.transport == resolve.UDP {
		return true
	}
	if slices.ContainsFunc(m.deaf, func(p netip.Prefix) bool { return p.Contains(q.via.client) }) {
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

// reject replies with an error if the server does not accept the EDNS version of a query, or if its cookie is
// missing.
func (m *behavior) reject(q *query) bool {
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
	case m.cookies && q.via.transport == resolve.UDP:
		return m.wantCookie(q, opt)
	}
	return false
}

func clearReply(r *dns.Msg, rcode int) {
	r.Rcode, r.Answer, r.Ns, r.Extra, r.Authoritative = rcode, nil, nil, nil, false
}

// wantCookie sends the server cookie to clients with a client cookie, and rejects queries without it (RFC 7873 §5.2).
func (m *behavior) wantCookie(q *query, opt *dns.OPT) bool {
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

// serverCookie returns a client cookie followed by the server cookie.
func serverCookie(client string) string {
	h := fnv.New64a()
	h.Write([]byte(client))
	return client + hex.EncodeToString(h.Sum(nil))
}

// addOption adds an option to the reply if the query has an OPT record.
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

// addError adds an Extended DNS Error (RFC 8914) to a reply.
func (q *query) addError(code uint16, text string) {
	q.addOption(&dns.EDNS0_EDE{InfoCode: code, ExtraText: text})
}

// readSubnet uses the client subnet option of a query as its client.
func (m *behavior) readSubnet(q *query) {
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

// addRequestedOptions adds the options that the query requests: the NSID, and the client subnet with its scope
// (RFC 7871 §7.2.1).
func (m *behavior) addRequestedOptions(q *query) {
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

// fit adds an OPT record if the query has one, and truncates the reply if it is too large.
func (m *behavior) fit(q *query) {
	size := dns.MinMsgSize
	if opt := q.msg.IsEdns0(); opt != nil && m.edns != ednsIgnore {
		size = max(size, int(opt.UDPSize()))
		if q.reply.IsEdns0() == nil {
			q.reply.SetEdns0(wire.UDPSize, opt.Do())
		}
	}
	if q.via.transport == resolve.UDP && q.reply.Len() > size && !m.large {
		truncateReply(q.reply)
	}
}

func truncateReply(r *dns.Msg) { r.Truncated, r.Answer, r.Ns, r.Extra = true, nil, nil, onlyOPT(r) }

// onlyOPT returns the additional section without addresses.
func onlyOPT(r *dns.Msg) []dns.RR {
	if opt := r.IsEdns0(); opt != nil {
		return []dns.RR{opt}
	}
	return nil
}

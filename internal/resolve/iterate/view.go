package iterate

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// View is a reply in the types of package rr, for callers that do not use the library that parses messages.
type View struct {
	Rcode  string // its mnemonic, or RCODEnnn; with EDNS the extended code
	RD, AD bool

	EDNS bool   // the reply has an OPT record
	NSID string // as text if it is printable, otherwise in hex
	EDE  []EDE
	ECS  netip.Prefix // the subnet that the answer is for, with the scope as its length; invalid without the option

	Case bool // the question has the same upper and lower case as in the query
	Size int  // in bytes, as the server sent it; in old traces as packed again

	Answer, Authority, Additional []Record // without OPT
}

// EDE is an Extended DNS Error (RFC 8914).
type EDE struct {
	Code uint16 `json:"code"`
	Text string `json:"text,omitempty"`
}

// Record is one record of a reply. Unlike in an rr.Set, each record has its own TTL, because servers may send
// different ones.
type Record struct {
	Name dnsname.Name
	Type rr.Type
	TTL  uint32
	Data string // RDATA in uncompressed wire format
}

// Text returns the data in presentation format.
func (r Record) Text() string { return rr.DataText(r.Type, r.Data) }

func (r Record) String() string { return fmt.Sprintf("%s %d %s %s", r.Name, r.TTL, r.Type, r.Text()) }

// Records returns the records of a section that have an owner and a type.
func Records(section []Record, name dnsname.Name, t rr.Type) []Record {
	return slices.DeleteFunc(slices.Clone(section), func(r Record) bool { return r.Name != name || r.Type != t })
}

// View returns the content of the reply. It fails if there is no reply, or if a record is invalid.
func (e Exchange) View() (View, error) {
	m, err := e.Message()
	if err != nil {
		return View{}, err
	}
	if m == nil {
		return View{}, fmt.Errorf("view of %v to %v: there is no reply", e.Server, e.Question)
	}
	v := View{Rcode: wire.RcodeText(m.Rcode), RD: m.RecursionDesired, AD: m.AuthenticatedData,
		Size: cmp.Or(e.Size, len(e.Reply)),
		Case: len(m.Question) == 1 && bytes.HasPrefix(e.Reply[wire.HeaderSize:], mixCase(e.Question.Name))}
	v.readOPT(m.IsEdns0())
	for _, s := range []struct {
		from []dns.RR
		to   *[]Record
	}{{m.Answer, &v.Answer}, {m.Ns, &v.Authority}, {m.Extra, &v.Additional}} {
		if *s.to, err = records(s.from); err != nil {
			return View{}, fmt.Errorf("view of %v to %v: %w", e.Server, e.Question, err)
		}
	}
	return v, nil
}

func (v *View) readOPT(opt *dns.OPT) {
	if opt == nil {
		return
	}
	v.EDNS = true
	for _, o := range opt.Option {
		switch o := o.(type) {
		case *dns.EDNS0_NSID:
			v.NSID = readable(o.Nsid)
		case *dns.EDNS0_EDE:
			v.EDE = append(v.EDE, EDE{o.InfoCode, o.ExtraText})
		case *dns.EDNS0_SUBNET:
			if a, ok := netip.AddrFromSlice(o.Address); ok {
				v.ECS, _ = a.Unmap().Prefix(int(o.SourceScope))
			}
		}
	}
}

// readable returns an NSID as text if possible. It may have any bytes, but most are host names.
func readable(nsid string) string {
	b, err := hex.DecodeString(nsid)
	if err != nil || slices.ContainsFunc(b, func(c byte) bool { return c < ' ' || c > '~' }) {
		return nsid
	}
	return string(b)
}

func records(section []dns.RR) (out []Record, err error) {
	for _, rec := range section {
		h := rec.Header()
		if h.Rrtype == dns.TypeOPT {
			continue
		}
		name, err := dnsname.Parse(h.Name)
		if err != nil {
			return nil, err
		}
		data, err := rr.FromRR(rec)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, rr.Type(h.Rrtype), err)
		}
		out = append(out, Record{name, rr.Type(h.Rrtype), h.Ttl, data})
	}
	return out, nil
}

// mixCase returns a name in wire format, with alternating upper and lower case as it is sent. So a server that folds
// the case in either direction is detected. The pattern is fixed because a trace does not store queries.
func mixCase(name dnsname.Name) []byte {
	wire, upper := []byte(name.Wire()), false
	for i, c := range wire {
		if 'a' > c || c > 'z' { // bytes with a label length are smaller
			continue
		}
		if upper = !upper; upper {
			wire[i] = c - 'a' + 'A'
		}
	}
	return wire
}

// mixedText returns the name of mixCase in the text format of the dns library.
func mixedText(name dnsname.Name) string {
	text, _, err := dns.UnpackDomainName(mixCase(name), 0)
	if err != nil {
		return name.String()
	}
	return text
}

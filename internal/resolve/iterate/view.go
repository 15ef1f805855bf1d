package iterate

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// View is a reply in the terms of package rr, for those who read evidence and do not know the library that parses messages.
type View struct {
	Rcode  string // its mnemonic, with EDNS the extended one; RCODEnnn if it has none
	RD, AD bool

	EDNS bool   // the reply has an OPT record
	NSID string // as text if it is printable, else in hex
	EDE  []EDE
	ECS  netip.Prefix // the answer is for this subnet: its length is the scope; invalid without the option

	Case bool // the question came back in the case that it was sent in
	Size int  // in octets, as packed here: about what the server sent

	Answer, Authority, Additional []Record // without OPT
}

// EDE is an Extended DNS Error (RFC 8914).
type EDE struct {
	Code uint16 `json:"code"`
	Text string `json:"text,omitempty"`
}

// Record is one record of a reply. Unlike those of an rr.Set, each has a TTL of its own, as servers may send it.
type Record struct {
	Name dnsname.Name
	Type rr.Type
	TTL  uint32
	Data string // RDATA in uncompressed wire form
}

// Text is the data in presentation form.
func (r Record) Text() string { return rr.DataText(r.Type, r.Data) }

func (r Record) String() string { return fmt.Sprintf("%s %d %s %s", r.Name, r.TTL, r.Type, r.Text()) }

// Records are those of an owner and type; those of a section of a View, say.
func Records(section []Record, name dnsname.Name, t rr.Type) []Record {
	return slices.DeleteFunc(slices.Clone(section), func(r Record) bool { return r.Name != name || r.Type != t })
}

// View is what the reply says. It is an error if there is no reply, or if it has records that cannot be read.
func (e Exchange) View() (View, error) {
	m, err := e.Message()
	if err != nil {
		return View{}, err
	}
	if m == nil {
		return View{}, fmt.Errorf("view of %v to %v: there is no reply", e.Server, e.Question)
	}
	v := View{Rcode: wire.RcodeText(m.Rcode), RD: m.RecursionDesired, AD: m.AuthenticatedData, Size: len(e.Reply),
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

// readable is an NSID: any octets, mostly a host name.
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

// mixCase is a name in wire form, in the case in which it is sent: upper and lower in turns, so that a server that folds it
// either way is seen. It is the same each time, as a trace does not keep queries.
func mixCase(name dnsname.Name) []byte {
	wire, upper := []byte(name.Wire()), false
	for i, c := range wire {
		if 'a' > c || c > 'z' { // those that tell lengths are below
			continue
		}
		if upper = !upper; upper {
			wire[i] = c - 'a' + 'A'
		}
	}
	return wire
}

// mixedText is the same in the library's form.
func mixedText(name dnsname.Name) string {
	text, _, err := dns.UnpackDomainName(mixCase(name), 0)
	if err != nil {
		return name.String()
	}
	return text
}

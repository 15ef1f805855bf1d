package iterate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// message returns a reply to www.example.test. A from a description: flags, an RCODE, and records. Records of the
// authority section begin with "/".
func message(t testing.TB, text string) *dns.Msg {
	t.Helper()
	head, rest, _ := strings.Cut(text, ":")
	m := new(dns.Msg).SetQuestion("www.example.test.", dns.TypeA)
	m.Response = true
	for _, w := range strings.Fields(head) {
		switch w {
		case "aa":
			m.Authoritative = true
		case "ra":
			m.RecursionAvailable = true
		case "tc":
			m.Truncated = true
		case "BADVERS": // shares its number with BADSIG
			m.Rcode = dns.RcodeBadVers
		case "other":
			m.Question[0].Name = "other.test."
		default:
			rcode, ok := dns.StringToRcode[w]
			if !ok {
				t.Fatalf("%q is no flag", w)
			}
			m.Rcode = rcode
		}
	}
	for _, line := range strings.Split(rest, ",") {
		line, authority := strings.CutPrefix(strings.TrimSpace(line), "/ ")
		if line == "" {
			continue
		}
		rec, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		if authority {
			m.Ns = append(m.Ns, rec)
			continue
		}
		m.Answer = append(m.Answer, rec)
	}
	return m
}

const soaData = " 60 SOA ns.test. h.test. 1 2 3 4 5"

// rows are replies of a server of example.test. to www.example.test. A.
var rows = []struct {
	reply string
	want  iterate.Class
}{
	{"aa: www.example.test. A 192.0.2.1", iterate.Answer},
	{"aa: WWW.EXAMPLE.test. A 192.0.2.1", iterate.Answer},
	{"aa: www.example.test. CNAME x.test.", iterate.Answer},
	{"aa: example.test. DNAME x.test.", iterate.Answer},
	{"aa ra: www.example.test. A 192.0.2.1", iterate.Answer},
	{"aa NXDOMAIN: www.example.test. CNAME x.other., / other." + soaData, iterate.Answer},
	{"aa: / example.test." + soaData, iterate.NoData},
	{"aa: / www.example.test." + soaData, iterate.NoData},
	{"aa: / example.test." + soaData + ", / example.test. NS ns.test.", iterate.NoData},
	{"aa NXDOMAIN: / example.test." + soaData, iterate.NXDomain},
	{"NXDOMAIN: / example.test." + soaData, iterate.NXDomain},
	{"aa NXDOMAIN: www.example.test. CNAME x.example.test., / example.test." + soaData, iterate.NXDomain},
	{": / www.example.test. NS ns.test.", iterate.Referral},
	{"aa: / www.example.test. NS ns.test.", iterate.Referral},
	{"ra: / www.example.test. NS ns.test.", iterate.Referral},
	{": / . NS a.root.", iterate.Upward},
	{"aa: / . NS a.root.", iterate.Upward},
	{": / test. NS ns.test.", iterate.Upward},
	{": / example.test. NS ns.test.", iterate.Upward},
	{"REFUSED", iterate.LameRefused},
	{"SERVFAIL", iterate.LameServfail},
	{"NOTAUTH", iterate.LameNotAuth},
	{"", iterate.LameNotAuth},
	{": www.example.test. A 192.0.2.1", iterate.LameNotAuth},
	{": / elsewhere.example.test. NS ns.test.", iterate.LameNotAuth},
	{": / example.test." + soaData, iterate.LameNotAuth},
	{"NXDOMAIN", iterate.LameNotAuth},
	{"NXDOMAIN: www.example.test. CNAME x.example.test., / example.test." + soaData, iterate.LameNotAuth},
	{"ra: www.example.test. A 192.0.2.1", iterate.Recursed},
	{"ra: / example.test." + soaData, iterate.Recursed},
	{"ra NXDOMAIN: / example.test." + soaData, iterate.Recursed},
	{"tc aa: www.example.test. A 192.0.2.1", iterate.Truncated},
	{"FORMERR", iterate.FormErr},
	{"NOTIMP", iterate.NotImp},
	{"BADVERS", iterate.BadVers},
	{"BADCOOKIE", iterate.BadCookie},
	{"aa", iterate.NoSOA},
	{"aa: / test." + soaData, iterate.NoSOA},
	{"aa: / other.example.test." + soaData, iterate.NoSOA},
	{"aa: / example.test. NS ns.test.", iterate.NoSOA},
	{"aa NXDOMAIN", iterate.NoSOA},
	{"aa: other.test. A 192.0.2.1", iterate.Odd},
	{"aa: www.example.test. AAAA 2001:db8::1", iterate.Odd},
	{"YXDOMAIN", iterate.Odd},
	{"other aa: other.test. A 192.0.2.1", iterate.QuestionMismatch},
}

func TestClassify(t *testing.T) {
	for _, tt := range rows {
		got := iterate.Classify(dnsname.MustParse("example.test."), question("www.example.test. A"),
			message(t, tt.reply), nil)
		if got != tt.want {
			t.Errorf("Classify(%q) = %s, want %s", tt.reply, got, tt.want)
		}
	}
}

func TestClassifyErrors(t *testing.T) {
	tests := []struct {
		err  error
		want iterate.Class
	}{
		{context.DeadlineExceeded, iterate.Timeout},
		{syscall.ECONNREFUSED, iterate.Unreachable},
		{errors.New("no route"), iterate.Unreachable},
		{nil, iterate.Unreachable}, // and no reply
		{resolve.ErrID, iterate.BadID},
		{resolve.ErrQuestion, iterate.QuestionMismatch},
		{new(dns.Msg).Unpack([]byte{1}), iterate.ParseError},
		{context.Canceled, iterate.Unknown},
	}
	for _, tt := range tests {
		err := tt.err
		if err != nil {
			err = fmt.Errorf("ask: %w", err)
		}
		got := iterate.Classify(dnsname.Root, question("www.example.test. A"), nil, err)
		if got != tt.want || got.Lame() || got.Usable() {
			t.Errorf("Classify(%v) = %s, want %s", tt.err, got, tt.want)
		}
	}
}

// FuzzClassify classifies any message for any zone. It must not fail, and usable replies must match their class.
func FuzzClassify(f *testing.F) {
	for _, tt := range rows {
		wire, err := message(f, tt.reply).Pack()
		if err == nil {
			f.Add(wire, "example.test.")
		}
	}
	f.Fuzz(func(t *testing.T, wire []byte, zone string) {
		z, err := dnsname.Parse(zone)
		m := new(dns.Msg)
		if err != nil || m.Unpack(wire) != nil {
			return
		}
		q := question("www.example.test. A")
		c := iterate.Classify(z, q, m, nil)
		if v, err := (iterate.Exchange{Question: q, Reply: wire}).View(); err == nil && len(v.Answer) != len(m.Answer) &&
			m.IsEdns0() == nil {
			t.Errorf("%d records in view of %s", len(v.Answer), m)
		}
		switch {
		case c.Usable() && c.Lame(), c == iterate.Unknown, c == iterate.Timeout, c == iterate.Unreachable:
			t.Errorf("%s: %s", c, m)
		case c == iterate.Answer && (!m.Authoritative || len(m.Answer) == 0):
			t.Errorf("answer without authority: %s", m)
		case (c == iterate.NoData || c == iterate.NXDomain || c == iterate.Referral) && len(m.Ns) == 0:
			t.Errorf("%s without records: %s", c, m)
		case c.Usable() && m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError:
			t.Errorf("%s of RCODE %d", c, m.Rcode)
		}
	})
}

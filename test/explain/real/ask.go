package real

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Ask sends one query to a server over UDP.
func Ask(ctx context.Context, server, name string, qtype uint16, recurse bool) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	m.RecursionDesired = recurse
	m.AuthenticatedData = true // ask for the AD bit
	m.SetEdns0(1232, false)
	c := &dns.Client{Timeout: 3 * time.Second}
	in, _, err := c.ExchangeContext(ctx, m, net.JoinHostPort(server, "53"))
	return in, err
}

// Data returns the data of the records of a type in an answer, whatever their owner.
func Data(m *dns.Msg, qtype uint16) (out []string) {
	for _, r := range m.Answer {
		if r.Header().Rrtype == qtype {
			out = append(out, r.String()[len(r.Header().String()):])
		}
	}
	return out
}

// Set replaces all records of a name, in a zone that tests can change.
func (env *Environment) Set(ctx context.Context, name string, records ...string) error {
	m := new(dns.Msg)
	labels := dns.SplitDomainName(name)
	m.SetUpdate(strings.Join(labels[len(labels)-2:], ".") + ".")
	m.RemoveName([]dns.RR{&dns.ANY{Hdr: dns.RR_Header{Name: name}}})
	for _, text := range records {
		r, err := dns.NewRR(text)
		if err != nil {
			return err
		}
		m.Insert([]dns.RR{r})
	}
	in, _, err := (&dns.Client{Timeout: 3 * time.Second}).ExchangeContext(ctx, m, net.JoinHostPort(beta, "53"))
	if err == nil && in.Rcode != dns.RcodeSuccess {
		err = errors.New(dns.RcodeToString[in.Rcode])
	}
	if err != nil {
		return fmt.Errorf("update %s: %w", name, err)
	}
	return nil
}

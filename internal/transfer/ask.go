package transfer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// askTime is the timeout of a query to another server.
const askTime = 3 * time.Second

// Ask sends a query to another server, signed with the TSIG key of that server. It is the function for
// NotifierOptions.Ask.
func (k *Keyring) Ask(ctx context.Context, s Secondary, m *dns.Msg) (*dns.Msg, error) {
	c := dns.Client{Net: "udp", Timeout: askTime}
	if err := k.signWith(s.Key, m, &c.TsigSecret); err != nil {
		return nil, err
	}
	r, _, err := c.ExchangeContext(ctx, m, s.Addr.String())
	if err == nil && r.Truncated {
		c.Net = "tcp"
		if err := k.signWith(s.Key, m, &c.TsigSecret); err != nil { // the library has removed the signature
			return nil, err
		}
		r, _, err = c.ExchangeContext(ctx, m, s.Addr.String())
	}
	if err == nil && c.TsigSecret != nil && r.IsTsig() == nil {
		return nil, errUnsigned // the library verifies a signature, but accepts a reply without one
	}
	return r, err
}

// queryFunc sends one query to another server.
type queryFunc = func(context.Context, Secondary, *dns.Msg) (*dns.Msg, error)

// serialAt queries a server for its serial of a zone.
func serialAt(ctx context.Context, ask queryFunc, at Secondary, zone dnsname.Name) (uint32, error) {
	q := new(dns.Msg).SetQuestion(zone.String(), dns.TypeSOA)
	q.RecursionDesired = false
	r, err := ask(ctx, at, q)
	if err != nil {
		return 0, err
	}
	if r.Rcode == dns.RcodeSuccess && r.Authoritative {
		for _, rec := range r.Answer {
			if soa, ok := rec.(*dns.SOA); ok {
				return soa.Serial, nil
			}
		}
	}
	return 0, fmt.Errorf("the SOA query was answered with %s and without authority", wire.RcodeText(r.Rcode))
}

// signWith makes the library sign a message with a key of the tsigkeys API.
func (k *Keyring) signWith(name dnsname.Name, m *dns.Msg, secrets *map[string]string) error {
	if name.IsZero() {
		return nil
	}
	key, found, err := k.Find(name)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("TSIG key %s: %w", name, errNoKey)
	}
	*secrets = map[string]string{key.Name.String(): base64.StdEncoding.EncodeToString(key.Secret)}
	m.SetTsig(key.Name.String(), key.Algorithm.String(), 300, time.Now().Unix())
	return nil
}

var errNoKey = errors.New("not found, or its algorithm is too weak; create it with the tsigkeys API")

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

// askTime is how long another server has for an answer.
const askTime = 3 * time.Second

// Ask asks another server, signed with the key that it has. It is for NotifierOptions.Ask.
func (k *Keyring) Ask(ctx context.Context, s Secondary, m *dns.Msg) (*dns.Msg, error) {
	c := dns.Client{Net: "udp", Timeout: askTime}
	if err := k.signWith(s.Key, m, &c.TsigSecret); err != nil {
		return nil, err
	}
	r, _, err := c.ExchangeContext(ctx, m, s.Addr.String())
	if err == nil && r.Truncated {
		c.Net = "tcp"
		if err := k.signWith(s.Key, m, &c.TsigSecret); err != nil { // the library has taken the signature off
			return nil, err
		}
		r, _, err = c.ExchangeContext(ctx, m, s.Addr.String())
	}
	if err == nil && c.TsigSecret != nil && r.IsTsig() == nil {
		return nil, errUnsigned // the library verifies a signature, but accepts a reply without one
	}
	return r, err
}

// asker asks another server one question.
type asker = func(context.Context, Secondary, *dns.Msg) (*dns.Msg, error)

// serialAt asks a server for the serial that it serves a zone with.
func serialAt(ctx context.Context, ask asker, at Secondary, zone dnsname.Name) (uint32, error) {
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
	return 0, fmt.Errorf("the question for the SOA was answered with %s and no authority", wire.RcodeText(r.Rcode))
}

// signWith has the library sign a message with a key of the API.
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

var errNoKey = errors.New("there is no such key, or its algorithm is too weak; make it with the tsigkeys API")

package transfer

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
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

package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
)

// askTime is how long another server has for an answer.
const askTime = 3 * time.Second

// Asker asks other servers, signed with keys of the API. It is for NotifierOptions.Ask.
func Asker(pub *publish.Publisher) func(context.Context, Secondary, *dns.Msg) (*dns.Msg, error) {
	keys := NewBook(pub)
	return func(ctx context.Context, s Secondary, m *dns.Msg) (*dns.Msg, error) {
		c := dns.Client{Net: "udp", Timeout: askTime}
		if err := signWith(keys, s.Key, m, &c.TsigSecret); err != nil {
			return nil, err
		}
		r, _, err := c.ExchangeContext(ctx, m, s.Addr.String())
		if err == nil && r.Truncated {
			c.Net = "tcp"
			if err := signWith(keys, s.Key, m, &c.TsigSecret); err != nil { // the library has taken the signature off
				return nil, err
			}
			r, _, err = c.ExchangeContext(ctx, m, s.Addr.String())
		}
		if err == nil && c.TsigSecret != nil && r.IsTsig() == nil {
			return nil, errUnsigned // the library verifies a signature, but misses none
		}
		return r, err
	}
}

// signWith has the library sign a message with a key of the API.
func signWith(keys *Book, name dnsname.Name, m *dns.Msg, secrets *map[string]string) error {
	if name.IsZero() {
		return nil
	}
	key, found, err := keys.Find(name)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("TSIG key %s: %w", name, errNoKey)
	}
	*secrets = map[string]string{key.Name.String(): key.Secret}
	m.SetTsig(key.Name.String(), key.Algorithm, 300, time.Now().Unix())
	return nil
}

var errNoKey = errors.New("there is no such key, or its algorithm is too weak; make it with the tsigkeys API")

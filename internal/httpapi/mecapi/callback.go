package mecapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// Callbacks brings notifications to the callbacks of subscriptions. Applications choose where these are, so the
// server must not be made to call what only it can reach: it connects to addresses of the given networks only, looks
// at the address itself when it connects, whatever the name of the host led to, and follows no redirect and no proxy.
type Callbacks struct {
	networks   []netip.Prefix
	special    specialaddr.Table
	extensions bool
	client     *http.Client
}

// Errors that an application may read. It chose the name and port of the host, and must not learn from us what the
// name leads to, whom we ask about names, or what is said at a port that is no callback.
var (
	errOutside = errors.New("the host is in none of the networks that callbacks may be in")
	errUnknown = errors.New("the name of the host leads to no address")
	errLate    = errors.New("the callback did not answer in time")
	errNotHTTP = errors.New("the callback did not answer as an HTTP server does")
)

// Times and sizes of a call. A receiver that is slower fails, and is tried again later.
const (
	callbackTime  = 10 * time.Second
	callbackReply = 4 << 10 // octets of a reply that are read, so that the connection can be used again
)

// NewCallbacks returns Callbacks for the networks that specialaddr.Table.Allowed finds an address in. Notifications
// have the extensions of EdgeGallery when edgeGallery is set. Deliver goes to the options of the Service, and the
// Callbacks to the API.
func NewCallbacks(networks []netip.Prefix, special specialaddr.Table, edgeGallery bool) *Callbacks {
	c := &Callbacks{networks: networks, special: special, extensions: edgeGallery}
	dialer := &net.Dialer{Timeout: callbackTime, Control: func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err == nil && !c.allowed(ap.Addr()) {
			err = errOutside
		}
		return err
	}}
	c.client = &http.Client{
		Timeout:       callbackTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: callbackTime, IdleConnTimeout: time.Minute,
			MaxIdleConns: 64, MaxIdleConnsPerHost: 2, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true},
	}
	return c
}

func (c *Callbacks) allowed(a netip.Addr) bool {
	return c.special.Allowed(c.networks, a)
}

// Check says whether a URI can lead to where callbacks may be; its form is the Service's to judge. Names are looked
// up only when there is something to deliver.
func (c *Callbacks) Check(uri string) error {
	u, err := url.Parse(uri)
	if err != nil {
		return nil
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return &mec.FieldError{Field: "callbackReference", Msg: "has a port that is none"}
		}
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !c.allowed(a) {
		return &mec.FieldError{Field: "callbackReference", Msg: "is in none of the networks that callbacks may be in"}
	}
	return nil
}

// Deliver posts one notification; any status of success will do.
func (c *Callbacks) Deliver(ctx context.Context, s mec.Subscription, e mec.Event) error {
	n := fromEvent(e, c.extensions)
	self := mp1Bases[0] + "/applications/" + url.PathEscape(s.App) + "/subscriptions/" + s.ID
	n.Links = &notificationLinks{link{self}}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Callback, bytes.NewReader(b))
	if err != nil {
		return errors.New("the callback is no URI any more") // an error of url.Parse would quote all of it
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "nameplane")
	res, err := c.client.Do(req)
	if err != nil {
		return told(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, callbackReply)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the callback answered with %d", res.StatusCode)
	}
	return nil
}

// told is what an application learns of a call that failed.
func told(err error) error {
	var timeout interface{ Timeout() bool }
	var errno syscall.Errno
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errOutside):
		return errOutside
	case errors.As(err, new(*net.DNSError)):
		return errUnknown
	case errors.As(err, &timeout) && timeout.Timeout():
		return errLate
	case errors.As(err, &errno):
		return errno // connection refused, and its like
	case errors.As(err, &untrusted):
		return untrusted
	}
	return errNotHTTP
}

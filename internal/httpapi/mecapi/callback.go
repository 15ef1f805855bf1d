package mecapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Callbacks sends notifications to the callbacks of subscriptions. Applications choose the URLs, so they could make the
// server call hosts that only the server can reach (SSRF). Callbacks therefore connects only to addresses of the given
// networks. It checks the address when it connects, after the name lookup, and follows no redirects and no proxies.
type Callbacks struct {
	Log *slog.Logger // gets the reasons of failed calls, for administrators; default: none

	networks   []netip.Prefix
	special    specialaddr.Table
	extensions bool
	client     *http.Client
}

// Errors that an application may read. The application chose the host and port. The errors must not reveal the address
// of the host, the resolvers of this server, or the reply of a port that is not a callback.
var (
	errOutside = errors.New("the host is outside the networks that are allowed for callbacks")
	errUnknown = errors.New("the name of the host has no address")
	errFailed  = errors.New("the callback could not be reached, or did not answer like an HTTP server")
)

// Bounds of a call. A slower receiver counts as failed, and is tried again later.
const (
	callbackTime  = 10 * time.Second
	callbackReply = 4 << 10 // the bytes of a reply that are read, so that the connection can be reused
)

// NewCallbacks returns Callbacks that connect to addresses which special allows in the networks. Notifications have the
// extensions of EdgeGallery when edgeGallery is set. Pass Deliver to the options of the Service, and the Callbacks to
// the API.
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
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: callbackTime,
			IdleConnTimeout: time.Minute,
			MaxIdleConns:    64, MaxIdleConnsPerHost: 2, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true},
	}
	return c
}

func (c *Callbacks) allowed(a netip.Addr) bool {
	return c.special.Allowed(c.networks, a)
}

// Check returns an error if the host of a URI is an address outside the allowed networks. The Service checks the form
// of the URI. Names are looked up only when there is an event to deliver.
func (c *Callbacks) Check(uri string) error {
	u, err := url.Parse(uri)
	if err != nil {
		return nil
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return &mec.FieldError{Field: "callbackReference", Msg: "has an invalid port"}
		}
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !c.allowed(a) {
		return &mec.FieldError{Field: "callbackReference",
			Msg: "is outside the networks that are allowed for callbacks"}
	}
	return nil
}

// Deliver sends one notification with POST. Every 2xx status is a success.
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
		return errors.New("the callback is not a valid URI") // an error of url.Parse would quote the whole URI
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "nameplane")
	res, err := c.client.Do(req)
	if err != nil {
		if c.Log != nil {
			c.Log.Info("callback failed", "app", s.App, "subscription", s.ID, "error", err)
		}
		return publicError(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, callbackReply)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the callback answered with %d", res.StatusCode)
	}
	return nil
}

// publicError returns the error that an application may see for a failed call. It is the same for a closed port, for
// one that does not answer and for one that is not HTTP: otherwise an application could scan ports with callbacks.
func publicError(err error) error {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errOutside):
		return errOutside
	case errors.As(err, new(*net.DNSError)):
		return errUnknown
	case errors.As(err, &untrusted):
		return untrusted
	}
	return errFailed
}

package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxRDAP      = 1 << 20
	maxBootstrap = 4 << 20 // IANA's list is about 150 KiB
	maxRedirects = 5
	// pause is for busy servers that send no Retry-After header. maxPause limits the value of the header.
	pause    = 2 * time.Second
	maxPause = time.Hour
)

var (
	errTime      = errors.New("no reply in time")
	errTooLong   = errors.New("the reply is too long")
	errRedirects = errors.New("too many redirects")
	errDowngrade = errors.New("redirected from https to http")
)

// newHTTP returns a client that connects only to allowed addresses. It keeps no connections, because a scan queries a
// registry only once. It uses no proxy, because Allow could not check the address then.
func (c *Client) newHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            c.dial,
			TLSClientConfig:        &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			last := via[len(via)-1].URL
			switch {
			case len(via) > maxRedirects:
				return errRedirects
			case req.URL.Scheme != "https" && (req.URL.Scheme != "http" || last.Scheme == "https"):
				return errDowngrade
			case req.URL.Host == last.Host:
				return nil
			}
			return c.limits.wait(req.Context(), req.URL.Host)
		},
	}
}

// page is the reply of a server to a URL.
type page struct {
	status  int
	header  http.Header
	body    []byte
	host    string // host of the URL, after redirects
	fetched time.Time
}

// busy reports whether the server asks to retry later.
func (p page) busy() bool {
	return p.status == http.StatusTooManyRequests || p.status == http.StatusServiceUnavailable
}

// fetch gets a URL and records the attempt.
func (l *lookup) fetch(ctx context.Context, kind, address string, limit int64) (page, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return page{}, fmt.Errorf("%q is not the URL of a server", clean(address))
	}
	u.User, u.Fragment = nil, ""
	at := Attempt{Kind: kind, Server: u.String(), At: time.Now().UTC()}
	var p page
	if err = l.limits.wait(ctx, u.Host); err == nil {
		at.At = time.Now().UTC()
		p, err = l.get(ctx, u.String(), limit)
	}
	if err != nil {
		err = askError(u.Host, err)
		l.asked(ctx, at, err.Error())
		return page{}, err
	}
	if clock, err := http.ParseTime(p.header.Get("Date")); err == nil {
		at.Clock = clock
	}
	if p.busy() {
		l.limits.block(p.host, time.Now().Add(retryAfter(p.header)))
	}
	l.asked(ctx, at, fmt.Sprintf("status %d, %d bytes", p.status, len(p.body)))
	return p, nil
}

func (c *Client) get(ctx context.Context, address string, limit int64) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return page{}, err
	}
	req.Header.Set("Accept", "application/rdap+json, application/json;q=0.9")
	req.Header.Set("User-Agent", "nameplane")
	resp, err := c.http.Do(req)
	if err != nil {
		return page{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return page{}, err
	case int64(len(body)) > limit:
		return page{}, errTooLong
	}
	return page{resp.StatusCode, resp.Header, body, resp.Request.URL.Host, time.Now()}, nil
}

// askError returns a short error with the host that was queried.
func askError(host string, err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
		if u, bad := url.Parse(at.URL); bad == nil && u.Host != "" { // after a redirect it may be another host
			host = u.Host
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errTime
	}
	return fmt.Errorf("ask %s: %w", host, err)
}

// retryAfter returns the pause that a server requests (RFC 9110 §10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	wait := pause
	if s, err := strconv.ParseUint(v, 10, 31); err == nil {
		wait = time.Duration(s) * time.Second
	} else if t, err := http.ParseTime(v); err == nil {
		wait = time.Until(t)
	}
	return min(max(wait, 0), maxPause)
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// client calls the REST API of a server.
type client struct {
	base        string // URL of the server, without a final slash
	token       string
	tokenFrom   string // source of the token, for error messages
	project     string // id of the project to act for; empty: the project of the token
	allProjects bool   // list the zones of all projects
	editManaged bool   // change record sets that the server manages itself
	http        *http.Client
}

// maxReply limits replies that are read into memory. Zone files and backups are streamed and have no limit.
const maxReply = 64 << 20

// call sends a request with in as its JSON body, and decodes the reply into out. in and out may be nil.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.do(req, out)
}

// request returns a request with the headers that all requests have.
func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Auth-Token", c.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OpenStack-DNS-Hide-Counts", "true") // counting a large zone takes longer than reading a page of it
	// Designate refuses these headers from users without the role admin, so they are sent only on request.
	if c.allProjects {
		req.Header.Set("X-Auth-All-Projects", "true")
	}
	if c.editManaged {
		req.Header.Set("X-Designate-Edit-Managed-Records", "true")
	}
	if c.project != "" {
		req.Header.Set("X-Auth-Sudo-Project-Id", c.project)
	}
	return req, nil
}

// do sends a request and decodes the reply into out.
func (c *client) do(req *http.Request, out any) error {
	res, err := c.send(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxReply+1))
	switch {
	case err != nil:
		return c.unreachable(err)
	case len(b) > maxReply:
		return cli.Fail("", "the reply of %s is larger than %d MiB", req.URL.Path, maxReply>>20)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return cli.Fail(notNameplane, "%s sent an unexpected reply: %s", c.base, err)
	}
	return nil
}

// notNameplane is the hint for replies that a nameplane server would not send.
const notNameplane = "is there a nameplane server at this address?"

// send sends a request and returns the reply if its status is 2xx. The caller closes the body.
func (c *client) send(req *http.Request) (*http.Response, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.replyError(res)
}

// unreachable returns the failure of a request without a complete reply. It is not known whether the server has
// executed the request, so the exit status is ExitUnknown.
func (c *client) unreachable(err error) error {
	f := &cli.Failure{Code: cli.ExitUnknown, Err: err,
		Hint: "is `nameplane serve` running? Set its address with --server or NAMEPLANE_SERVER"}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the message has the URL already
	}
	f.Text = fmt.Sprintf("cannot reach %s: %s", c.base, err)
	if errors.Is(err, context.Canceled) {
		f.Text, f.Hint = "interrupted", "check whether the change was made before you repeat the command"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		f.Hint = "set the certificate of the server, or of its CA, with --ca-file"
	}
	if strings.Contains(f.Text, "HTTP response to HTTPS client") {
		f.Hint = "the server uses http on this address, not https"
	}
	return f
}

// fieldError is an error in one field of a request.
type fieldError struct {
	Path    []any  `json:"path"`
	Message string `json:"message"`
}

// String returns the path of the field and the message. It leaves out the index in a batch, because users do not see
// the batches that the commands send.
func (p fieldError) String() string {
	steps := p.Path
	if len(steps) >= 2 && steps[0] == "changes" {
		steps = steps[2:]
	}
	path := ""
	for _, step := range steps {
		if n, ok := step.(float64); ok {
			path += fmt.Sprintf("[%d]", int(n))
		} else {
			path += fmt.Sprintf(".%v", step)
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, ".")+": "+p.Message, ": ")
}

// apiError is an error reply of the API.
type apiError struct {
	Status  int    `json:"-"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Detail  string `json:"detail"` // RFC 9457: the MEC APIs use it
	Errors  struct {
		Errors []fieldError `json:"errors"`
	} `json:"errors"`
	RequestID string `json:"request_id"`
}

// Error returns the messages of the fields if there are any, because they are more specific than the general message.
func (e *apiError) Error() string {
	var parts []string
	for _, p := range e.Errors.Errors {
		parts = append(parts, p.String())
	}
	return cmp.Or(strings.Join(parts, "; "), e.Message, e.Detail,
		fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status)))
}

// replyError returns the failure for a reply whose status is not 2xx.
func (c *client) replyError(res *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // a partial body is better than none
	e := &apiError{}
	if json.Unmarshal(b, e) != nil {
		// Only the Designate API has this form. Other APIs wrap the error in an object, or send a line of text.
		e.Message = ""
	}
	var wrapped struct {
		Error *apiError `json:"error"`
	}
	if e.Message == "" && json.Unmarshal(b, &wrapped) == nil && wrapped.Error != nil {
		e = wrapped.Error
	}
	e.Status = res.StatusCode
	f := &cli.Failure{Code: cli.ExitError, Text: e.Error(), Err: e}
	switch {
	case e.Status == http.StatusUnauthorized:
		f.Text = "the server does not know this token, or it has expired or was revoked"
		f.Hint = fmt.Sprintf("the token was read from %s; set another one with --token-file or NAMEPLANE_TOKEN", c.tokenFrom)
	case e.Status == http.StatusForbidden:
		f.Hint = fmt.Sprintf("the token from %s lacks the permission; `nameplane token list` shows the roles", c.tokenFrom)
	case strings.Contains(f.Text, "Managed records may not be updated"):
		f.Text = "the server manages these records itself"
		f.Hint = "an administrator can change them with --edit-managed"
	case e.Status == http.StatusPreconditionFailed:
		f.Hint = "another client changed the resource; read it again and repeat the command"
	case e.Status == http.StatusTooManyRequests:
		f.Hint = "wait and try again"
	// A proxy that redirects http to https is the usual cause.
	case e.Status >= 300 && e.Status <= 399:
		f.Text = fmt.Sprintf("%s answered with a redirect to %q", c.base, res.Header.Get("Location"))
		f.Hint = "set the final address with --server"
	case e.Status == http.StatusServiceUnavailable:
		f.Hint = "see the log of the server; is its disk full or read-only?"
	case e.Status >= 500:
		f.Hint = "see the log of the server for the request id " + e.RequestID
	}
	return f
}

// status returns the HTTP status of an error reply, or 0 for any other error.
func status(err error) int {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.Status
	}
	return 0
}

// pages calls fn with the items of each page of a list. Items are not decoded: `-o json` prints every field of the
// reply, including fields that this version does not know.
func (c *client) pages(ctx context.Context, path, name string, fn func([]json.RawMessage) error) error {
	for path != "" {
		body := map[string]json.RawMessage{}
		if err := c.call(ctx, http.MethodGet, path, nil, &body); err != nil {
			return err
		}
		var items []json.RawMessage
		var links struct{ Next string }
		if err := json.Unmarshal(body[name], &items); err != nil {
			return cli.Fail(notNameplane, "%s sent a reply without %s", c.base, name)
		}
		if raw, ok := body["links"]; ok {
			if err := json.Unmarshal(raw, &links); err != nil {
				return err
			}
		}
		if err := fn(items); err != nil {
			return err
		}
		next := nextPath(links.Next)
		// Without this check, a server or proxy with an error would keep the command busy forever.
		if next == path {
			return cli.Fail("", "%s sent a page that links to itself as the next page", c.base)
		}
		path = next
	}
	return nil
}

// list prints a list of the API as a table with the given head, or as JSON. An empty list is printed as the text none.
func (c *client) list(cmd *cobra.Command, out cli.Format, path, name, none string, head []string,
	rows func(json.RawMessage) ([][]string, error)) error {
	l := cli.NewListing(cmd.OutOrStdout(), out, head...)
	err := c.pages(cmd.Context(), path, name, func(items []json.RawMessage) error { return l.Page(items, rows) })
	return l.End(err, none)
}

// sleep waits for d. It returns an error if ctx ends first.
func (c *client) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return c.unreachable(ctx.Err())
	}
}

// nextPath returns the path and query of a link. It drops the host, because the client may not reach that host through
// a proxy.
func nextPath(link string) string {
	u, err := url.Parse(link)
	if err != nil || link == "" {
		return ""
	}
	return u.RequestURI()
}

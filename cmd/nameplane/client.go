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

// client speaks to the REST API of a server.
type client struct {
	base      string // without a final slash
	token     string
	tokenFrom string // where it was found
	project   string // to act for; empty: the token's own
	all       bool   // see every project's things
	managed   bool   // change what the server made itself
	http      *http.Client
}

// maxReply bounds replies that are held in memory; zone files and backups are streamed.
const maxReply = 64 << 20

// call sends in as JSON, when it is not nil, and reads the reply into out, when that is not nil.
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

// request prepares a request with the headers that all of them have.
func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Auth-Token", c.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("OpenStack-DNS-Hide-Counts", "true") // counting a large zone for each page takes longer than the page
	if c.all {
		req.Header.Set("X-Auth-All-Projects", "true")
	}
	if c.managed {
		req.Header.Set("X-Designate-Edit-Managed-Records", "true")
	}
	if c.project != "" {
		req.Header.Set("X-Auth-Sudo-Project-Id", c.project)
	}
	return req, nil
}

// do sends a request and reads the reply into out.
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
		return cli.Fail("is this address a nameplane server's?", "%s answered something else than was expected: %s", c.base, err)
	}
	return nil
}

// send sends a request and returns the reply when it is a success. The caller closes its body.
func (c *client) send(req *http.Request) (*http.Response, error) {
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if res.StatusCode >= 200 && res.StatusCode <= 299 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.refused(res)
}

// unreachable words an exchange that was cut off: nobody knows what the server made of it.
func (c *client) unreachable(err error) error {
	f := &cli.Failure{Code: cli.ExitUnknown, Err: err, Hint: "is `nameplane serve` running? --server or NAMEPLANE_SERVER says where"}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its address is in the sentence already
	}
	f.Text = fmt.Sprintf("cannot reach %s: %s", c.base, err)
	if errors.Is(err, context.Canceled) {
		f.Text, f.Hint = "interrupted", "look whether the change was made before you repeat it"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		f.Hint = "give the certificate of the server or of its authority with --ca-file"
	}
	if strings.Contains(f.Text, "HTTP response to HTTPS client") {
		f.Hint = "the server speaks http here, not https"
	}
	return f
}

// problem is what is wrong with one field of a request.
type problem struct {
	Path    []any  `json:"path"`
	Message string `json:"message"`
}

// String names the field and what is wrong with it. The place in a batch is left out: the commands send batches that
// people do not see.
func (p problem) String() string {
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

// apiError is a refusal in the API's words.
type apiError struct {
	Status  int    `json:"-"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Detail  string `json:"detail"` // RFC 9457, by the MEC APIs
	Errors  struct {
		Errors []problem `json:"errors"`
	} `json:"errors"`
	RequestID string `json:"request_id"`
}

// Error is a sentence. What is said about fields is worth more than that something is wrong with them.
func (e *apiError) Error() string {
	var parts []string
	for _, p := range e.Errors.Errors {
		parts = append(parts, p.String())
	}
	return cmp.Or(strings.Join(parts, "; "), e.Message, e.Detail,
		fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status)))
}

// refused words a reply that is not a success.
func (c *client) refused(res *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // what there is of it
	e := &apiError{}
	if json.Unmarshal(b, e) != nil {
		// Doors that are not Designate's wrap their errors in one more object, or send a line of text.
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
		f.Hint = fmt.Sprintf("it was read from %s; give another one with --token-file or NAMEPLANE_TOKEN", c.tokenFrom)
	case e.Status == http.StatusForbidden:
		f.Hint = fmt.Sprintf("the token from %s may not do this; `nameplane token list` shows the roles", c.tokenFrom)
	case strings.Contains(f.Text, "X-Designate-Edit-Managed-Records"):
		f.Text, f.Hint = "these records were made by the server itself", "--edit-managed changes them all the same, for administrators"
	case e.Status == http.StatusPreconditionFailed:
		f.Hint = "somebody changed it in the meantime; look at it again and repeat the command"
	case e.Status == http.StatusTooManyRequests:
		f.Hint = "wait a little and try again"
	case e.Status >= 300 && e.Status <= 399:
		f.Text = fmt.Sprintf("%s answered with a redirect to %q", c.base, res.Header.Get("Location"))
		f.Hint = "give the final address with --server"
	case e.Status == http.StatusServiceUnavailable:
		f.Hint = "the server's log says more; is its disk full or read-only?"
	case e.Status >= 500:
		f.Hint = "the server's log says more, by request id " + e.RequestID
	}
	return f
}

// status is the HTTP status of a refusal; 0 for any other error.
func status(err error) int {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e.Status
	}
	return 0
}

// pages calls fn with the items of each page of a list. Items stay as they came, so that `-o json` prints all that the
// API says, fields of tomorrow included.
func (c *client) pages(ctx context.Context, path, name string, fn func([]json.RawMessage) error) error {
	for path != "" {
		body := map[string]json.RawMessage{}
		if err := c.call(ctx, http.MethodGet, path, nil, &body); err != nil {
			return err
		}
		var items []json.RawMessage
		var links struct{ Next string }
		if err := json.Unmarshal(body[name], &items); err != nil {
			return cli.Fail("is this address a nameplane server's?", "%s answered without %s", c.base, name)
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
		if next == path {
			return cli.Fail("", "%s answered with a page that is followed by itself", c.base)
		}
		path = next
	}
	return nil
}

// list prints a list of the API: as a table with this head, as JSON, or as the sentence none when it is empty.
func (c *client) list(cmd *cobra.Command, out cli.Format, path, name, none string, head []string,
	rows func(json.RawMessage) ([][]string, error)) error {
	l := cli.NewListing(cmd.OutOrStdout(), out, head...)
	err := c.pages(cmd.Context(), path, name, func(items []json.RawMessage) error { return l.Page(items, rows) })
	return l.End(err, none)
}

// sleep waits, or fails when ctx ends.
func (c *client) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return c.unreachable(ctx.Err())
	}
}

// nextPath is the path and query of a link. Its host is left out: behind a proxy it may not be ours to reach.
func nextPath(link string) string {
	u, err := url.Parse(link)
	if err != nil || link == "" {
		return ""
	}
	return u.RequestURI()
}

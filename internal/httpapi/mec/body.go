package mec

import "github.com/nameplane/nameplane/internal/httpapi/mechttp"

// read reads the body of a request.
func (c *call) read() ([]byte, error) { return mechttp.Read(c.w, c.r, c.route.limit) }

// decode reads the body into a wire type.
func (c *call) decode(into any) error {
	b, err := c.read()
	if err != nil {
		return err
	}
	return mechttp.Decode(b, into)
}

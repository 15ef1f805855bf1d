package servermgmt

import "github.com/nameplane/nameplane/internal/httpapi/mechttp"

// maxBody bounds a batch, in octets: some ten thousand records.
const maxBody = 1 << 20

// read reads the body of a request.
func (c *call) read() ([]byte, error) { return mechttp.Read(c.w, c.r, maxBody) }

// decode reads the body into a wire type.
func (c *call) decode(into any) error {
	b, err := c.read()
	if err != nil {
		return err
	}
	return mechttp.Decode(b, into)
}

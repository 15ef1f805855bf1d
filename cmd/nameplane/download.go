package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/nameplane/nameplane/internal/cli"
)

// download copies the body of a reply to w, and fails if it is not complete: the server cuts off what it could not
// finish.
func (c *client) download(req *http.Request, w io.Writer) (int64, error) {
	res, err := c.send(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	in := &sourceReader{r: res.Body}
	n, err := io.Copy(w, in)
	switch {
	case in.err != nil:
		return n, &cli.Failure{Code: cli.ExitUnknown, Err: in.err, Text: fmt.Sprintf("the reply of %s broke off after %s: %s", c.base, cli.Megabytes(n), in.err),
			Hint: "try again; the server's log says more"}
	case err != nil:
		return n, err
	case res.ContentLength >= 0 && n != res.ContentLength:
		return n, cli.Fail("try again", "the server promised %d bytes and sent %d", res.ContentLength, n)
	}
	return n, nil
}

// sourceReader keeps the error of reading, so that a copy knows which of its two ends failed.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// mayWrite refuses a file that exists, before anything is asked of the server.
func mayWrite(path string, force bool) error {
	info, err := os.Stat(path)
	switch {
	case path == "-" || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cli.Fail("", "cannot write: %s", err)
	case info.IsDir():
		return cli.Fail("give the name of a file in it", "%s is a folder", path)
	case !force:
		return cli.Fail("--force overwrites it", "%s exists already", path)
	}
	return nil
}

// writeFile writes a file that only its owner can read, completely or not at all.
func writeFile(path string, force bool, fill func(io.Writer) (int64, error)) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return 0, cli.Fail("", "cannot write: %s", err)
	}
	defer os.Remove(f.Name()) // when it was not renamed
	defer f.Close()
	if size, err = fill(f); err != nil {
		return size, err
	}
	if err := f.Sync(); err != nil {
		return size, cli.Fail("is the disk full?", "cannot write: %s", err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != size {
		return size, cli.Fail("is the disk full?", "%s does not have the %d bytes that were written", f.Name(), size)
	}
	if err := place(f.Name(), path, force); err != nil {
		return size, cli.Fail("", "cannot write: %s", err)
	}
	return size, nil
}

// place gives a finished file its name. A link, unlike a rename, does not overwrite a file that came in the meantime;
// where there are no links, the earlier check must do.
func place(from, to string, force bool) error {
	if !force {
		err := os.Link(from, to)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Rename(from, to)
}

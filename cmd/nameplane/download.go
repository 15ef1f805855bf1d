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

// download copies the body of a reply to w. It returns an error if the body is incomplete: the server closes the
// connection when it cannot finish a reply.
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
		return n, &cli.Failure{Code: cli.ExitUnknown, Err: in.err,
			Text: fmt.Sprintf("the reply of %s ended after %s: %s", c.base, cli.Megabytes(n), in.err),
			Hint: "see the log of the server, and try again"}
	case err != nil:
		return n, err
	case res.ContentLength >= 0 && n != res.ContentLength:
		return n, cli.Fail("try again", "the server announced %d bytes and sent %d", res.ContentLength, n)
	}
	return n, nil
}

// sourceReader keeps the read error, so that the caller of io.Copy knows whether reading or writing failed.
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

// checkOverwrite returns an error for a file that exists, before the command sends a request.
func checkOverwrite(path string, force bool) error {
	info, err := os.Stat(path)
	switch {
	case path == "-" || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return cli.Fail("", "cannot write: %s", err)
	case info.IsDir():
		return cli.Fail("add the name of a file", "%s is a directory", path)
	case !force:
		return cli.Fail("use --force to overwrite it", "%s already exists", path)
	}
	return nil
}

// writeFile writes a file that only its owner can read, completely or not at all. fill writes the content and returns
// its size.
func writeFile(path string, force bool, fill func(io.Writer) (int64, error)) (size int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // CreateTemp uses mode 0600
	if err != nil {
		return 0, cli.Fail("", "cannot write: %s", err)
	}
	defer os.Remove(f.Name()) // fails harmlessly after a rename
	defer f.Close()
	if size, err = fill(f); err != nil {
		return size, err
	}
	// Without Sync, a power failure after the rename can leave an empty file with the final name.
	if err := f.Sync(); err != nil {
		return size, cli.Fail("is the disk full?", "cannot write: %s", err)
	}
	// Some network file systems report a full disk only after the write.
	if info, err := f.Stat(); err != nil || info.Size() != size {
		return size, cli.Fail("is the disk full?", "%s does not have the size that was written: %d bytes", f.Name(), size)
	}
	if err := linkOrRename(f.Name(), path, force); err != nil {
		return size, cli.Fail("", "cannot write: %s", err)
	}
	return size, nil
}

// linkOrRename gives a finished file its final name. A hard link, unlike a rename, does not overwrite a file that was
// created in the meantime. On file systems without hard links only the earlier checkOverwrite protects such a file.
func linkOrRename(from, to string, force bool) error {
	if !force {
		err := os.Link(from, to)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Rename(from, to)
}

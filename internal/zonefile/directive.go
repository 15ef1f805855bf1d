package zonefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

func (f *file) directive(e entry) error {
	w := &words{text: e.text}
	word, _ := w.next()
	var bad *fault
	switch d := strings.ToUpper(string(word)); d {
	case "$ORIGIN":
		bad = f.setOrigin(w)
	case "$TTL":
		bad = f.setTTL(w)
	case "$GENERATE":
		bad = f.generate(e, w)
	case "$INCLUDE":
		return f.include(e, w)
	default:
		bad = &fault{reason: "unknown directive " + show(word),
			hint: `there are $ORIGIN, $TTL, $INCLUDE and $GENERATE; a name that begins with a dollar sign is written \$`}
	}
	if bad != nil {
		return f.fail(e, bad)
	}
	return nil
}

func (f *file) setOrigin(w *words) *fault {
	word, off := w.next()
	if len(word) == 0 {
		return &fault{off: off, reason: "$ORIGIN wants a name"}
	}
	n, bad := f.readName(word, off)
	if bad != nil {
		return bad
	}
	f.origin = n
	return w.end("$ORIGIN")
}

func (f *file) setTTL(w *words) *fault {
	word, off := w.next()
	if len(word) == 0 {
		return &fault{off: off, reason: "$TTL wants a TTL"}
	}
	ttl, bad := parseTTL(word, off)
	if bad != nil {
		return bad
	}
	f.ttl, f.hasTTL, f.ttlFixed = ttl, true, true
	return w.end("$TTL")
}

// include reads another file at this position. The file begins with the current origin, owner and TTL. After it, all
// three are as before (RFC 1035 §5.1 for origin and owner).
func (f *file) include(e entry, w *words) error {
	sub, off, bad := f.included(w)
	if bad != nil {
		return f.fail(e, bad)
	}
	in, err := openFile(f.o.Include, sub.path)
	if err != nil {
		if perr, ok := errors.AsType[*fs.PathError](err); ok {
			err = perr.Err // its path and operation repeat our message
		}
		return f.fail(e, &fault{off: off, reason: fmt.Sprintf("cannot include %q: %s", sub.path, err), err: err,
			hint: "files below the zone file's folder can be included"})
	}
	defer in.Close()
	return sub.parse(in)
}

// included returns the file that a $INCLUDE names, not yet opened, and the offset of its name.
func (f *file) included(w *words) (*file, int, *fault) {
	word, off := w.next()
	if len(word) == 0 {
		return nil, 0, &fault{off: off, reason: "$INCLUDE wants a file"}
	}
	asked := strings.Trim(string(word), `"`)
	origin := f.origin
	if word, off := w.next(); len(word) > 0 {
		n, bad := f.readName(word, off)
		if bad != nil {
			return nil, 0, bad
		}
		origin = n
	}
	if bad := w.end("$INCLUDE"); bad != nil {
		return nil, 0, bad
	}
	target := path.Join(path.Dir(f.path), asked)
	reason, hint := "", ""
	switch {
	case f.o.Include == nil:
		reason, hint = "$INCLUDE is not allowed here",
			"put the records into one file, or import the file with the command line"
	case path.IsAbs(asked) || !fs.ValidPath(target):
		reason, hint = fmt.Sprintf("$INCLUDE of %q leaves the zone file's folder", asked), "copy the file there"
	case f.isOpen(target):
		reason = fmt.Sprintf("%q includes itself", target)
	case f.depth+1 >= maxDepth:
		reason = fmt.Sprintf("$INCLUDE is nested more than %d files deep", maxDepth)
	case f.files >= maxFiles:
		reason = fmt.Sprintf("more than %d files are included", maxFiles)
	}
	if reason != "" {
		return nil, 0, &fault{off: off, reason: reason, hint: hint}
	}
	f.files++
	sub := *f
	sub.in, sub.lastOwner, sub.includedBy, sub.depth = scanner{}, cachedOwner{}, f, f.depth+1
	sub.path, sub.name, sub.origin = target, f.showName(target), origin
	return &sub, off, nil
}

func (f *file) isOpen(target string) bool {
	for ; f != nil; f = f.includedBy {
		if f.path == target {
			return true
		}
	}
	return false
}

// openFile opens regular files only: opening a pipe would block until it has a writer.
func openFile(fsys fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return fsys.Open(name)
}

package lab

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// fileName is the file in which other processes find a lab.
const fileName = "lab.json"

// record is the content of that file.
type record struct {
	Version   int                   `json:"version"`
	Process   int                   `json:"process"`
	Addrs     map[string]string     `json:"addresses"` // loopback addresses by public address
	Hosts     map[string]netip.Addr `json:"hosts"`     // addresses of registries by name
	Authority string                `json:"authority"`
	Hints     []iterate.Host        `json:"hints"`
	Anchor    string                `json:"anchor"`
	Resolvers []Resolver            `json:"resolvers"`
	Domains   []Domain              `json:"domains"`
}

// recordVersion changes when older programs cannot read the file any longer.
const recordVersion = 2

// ErrNoLab reports that no lab is running in a folder.
var ErrNoLab = errors.New("no lab is running there")

// Load connects to the lab that another process has started in a folder.
func Load(dir string) (*Lab, error) {
	text, err := os.ReadFile(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load the lab of %s: %w", dir, ErrNoLab)
	}
	if err != nil {
		return nil, fmt.Errorf("load the lab: %w", err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil || r.Version != recordVersion {
		return nil, fmt.Errorf("load the lab: %s cannot be read by this program", filepath.Join(dir, fileName))
	}
	l := &Lab{Hints: r.Hints, Anchor: r.Anchor, Resolvers: r.Resolvers, Domains: r.Domains,
		Roots: x509.NewCertPool(), dir: dir}
	l.table = table{local: r.Addrs, hosts: r.Hosts}
	if !l.alive(context.Background()) { // the process of the lab was killed
		return nil, fmt.Errorf("load the lab of %s: %w", dir, ErrNoLab)
	}
	if !l.Roots.AppendCertsFromPEM([]byte(r.Authority)) {
		return nil, fmt.Errorf("load the lab: %s has no certificate", fileName)
	}
	return l, nil
}

// ErrRunning reports that a lab is already running in a folder.
var ErrRunning = errors.New("a lab is running there already")

// publish opens the control socket and writes the files of the lab. It returns the function that serves the socket.
func (l *Lab) publish(ctx context.Context) (func(context.Context) error, error) {
	if (&Lab{dir: l.dir}).alive(ctx) {
		l.dir = "" // do not remove the files of the other lab
		return nil, ErrRunning
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	control, err := l.listenControl()
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context) error { return l.serveControl(ctx, control) }
	r := record{Version: recordVersion, Process: os.Getpid(), Addrs: l.table.local, Hosts: l.table.hosts,
		Authority: string(l.registry.authority.pem),
		Hints:     l.Hints, Anchor: l.Anchor, Resolvers: l.Resolvers, Domains: l.Domains}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return run, err
	}
	if err := os.WriteFile(filepath.Join(l.dir, authorityName), l.registry.authority.pem, 0o600); err != nil {
		return run, err
	}
	return run, writeFile(filepath.Join(l.dir, fileName), append(text, '\n'))
}

// authorityName is the certificate of the lab's authority, for tools such as curl.
const authorityName = "ca.pem"

// writeFile replaces a file atomically, so that readers never see a part of it.
func writeFile(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// unpublish removes the files of publish. The folder stays, because it may have existed before.
func (l *Lab) unpublish() {
	if l.dir == "" {
		return
	}
	for _, name := range []string{fileName, authorityName, controlName} {
		os.Remove(filepath.Join(l.dir, name))
	}
}

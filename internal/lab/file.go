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

// fileName is the file by which other processes find a lab.
const fileName = "lab.json"

// record is that file.
type record struct {
	Version   int                   `json:"version"`
	Process   int                   `json:"process"`
	Places    map[string]string     `json:"places"` // by famous address
	Hosts     map[string]netip.Addr `json:"hosts"`  // registries by name
	Authority string                `json:"authority"`
	Hints     []iterate.Host        `json:"hints"`
	Anchor    string                `json:"anchor"`
	Resolvers []Resolver            `json:"resolvers"`
	Domains   []Domain              `json:"domains"`
}

// recordVersion changes when an older program could not read the file.
const recordVersion = 1

// ErrNoLab is that no lab is running in a folder.
var ErrNoLab = errors.New("no lab is running there")

// Load finds the lab that another process has started with a folder.
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
		return nil, fmt.Errorf("load the lab: %s is not a file that this program can read", filepath.Join(dir, fileName))
	}
	l := &Lab{Hints: r.Hints, Anchor: r.Anchor, Resolvers: r.Resolvers, Domains: r.Domains, Roots: x509.NewCertPool(), dir: dir}
	l.table = table{places: r.Places, hosts: r.Hosts}
	if !l.Roots.AppendCertsFromPEM([]byte(r.Authority)) {
		return nil, fmt.Errorf("load the lab: %s has no certificate", fileName)
	}
	return l, nil
}

// publish writes the file, with what belongs to it.
func (l *Lab) publish(_ *[]func(context.Context) error) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	r := record{Version: recordVersion, Process: os.Getpid(), Places: l.table.places, Hosts: l.table.hosts, Authority: string(l.registry.authority.pem),
		Hints: l.Hints, Anchor: l.Anchor, Resolvers: l.Resolvers, Domains: l.Domains}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(l.dir, fileName), append(text, '\n'))
}

// writeFile replaces a file in one step, so that nobody reads half of it.
func writeFile(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (l *Lab) unpublish() {
	if l.dir != "" {
		os.Remove(filepath.Join(l.dir, fileName))
	}
}

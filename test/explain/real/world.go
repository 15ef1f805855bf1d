// Package real is an internet of real servers in a network namespace: NSD and BIND are its authorities, Unbound, BIND,
// PowerDNS and Knot its resolvers, at the addresses at which everybody expects them. So nameplane runs there as it was
// built, and what it says can be compared with what these servers do.
package real

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

// World is the internet of a namespace.
type World struct {
	Dir       string
	Recursors []Recursor
	Anchors   string // file with the trust anchors of this world; empty if its root is not signed

	servers []*server.Process
	anchor  *dns.DS           // nil: not signed
	signed  map[string]string // zones of NSD
}

// startFor is how long all servers together may take until they answer.
const startFor = 40 * time.Second

// Start makes an internet of the network namespace that the process is in, which must be one of its own: it puts public
// addresses on its loopback. Servers end with Stop, and at the latest with the process. In a world that is not signed nameplane
// runs without any option; in one that is, resolvers validate, and nameplane must be told the Anchors.
func Start(dir string, signed bool) (*World, error) {
	w := &World{Dir: dir, Recursors: recursors()}
	if err := w.addresses(); err != nil {
		return nil, err
	}
	if signed {
		if err := w.sign(); err != nil {
			return w, err
		}
	}
	if err := w.authorities(); err != nil {
		return w, err
	}
	if signed {
		if err := w.signing(); err != nil {
			return w, err
		}
	}
	if err := w.startRecursors(); err != nil {
		return w, err
	}
	return w, w.ready()
}

// addresses puts those of all servers on the loopback. Nothing else gets a route, so that no packet can leave.
func (w *World) addresses() error {
	if alone, err := isAlone(); err != nil || !alone {
		return errors.Join(err, errors.New("the network namespace has more than a loopback: it is not ours to change"))
	}
	batch := "link set lo up\n"
	all := append(rootAddrs(), gtldA, gtldA6, gtldB, gtldB6, alpha, beta, gamma, badGlue, badChild, badThird, lame)
	for _, r := range w.Recursors {
		all = append(all, r.Addrs...)
	}
	for _, a := range all {
		addr := netip.MustParseAddr(a)
		line := fmt.Sprintf("address replace %s/%d dev lo", addr, addr.BitLen())
		if addr.Is6() {
			line += " nodad"
		}
		batch += line + "\n"
	}
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w\n%s", err, out)
	}
	return nil
}

// isAlone reports whether there is no interface that leads anywhere.
func isAlone() (bool, error) {
	out, err := exec.Command("ip", "-o", "link", "show", "up").Output()
	if err != nil {
		return false, fmt.Errorf("ip link: %w", err)
	}
	return strings.Count(string(out), "\n") <= strings.Count(string(out), " lo: "), nil
}

// file writes a file of a server.
func (w *World) file(name, text string) (string, error) {
	path := filepath.Join(w.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// run starts a server, whose log is beside its files.
func (w *World) run(name, program string, args ...string) error {
	path, err := need.Installed(program)
	if err != nil {
		return err
	}
	dir := filepath.Join(w.Dir, name)
	p := &server.Process{Name: name, Command: append([]string{path}, args...), WorkDir: dir, LogFile: filepath.Join(dir, "log")}
	w.servers = append(w.servers, p)
	return p.Start()
}

// ready waits until every recursor resolves a name of every authority.
func (w *World) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startFor)
	defer cancel()
	for _, r := range w.Recursors {
		for _, name := range []string{"www.good.com.", "www.live.com."} {
			for {
				m, err := Ask(ctx, r.Addr, name, dns.TypeA, true)
				if err == nil && len(m.Answer) > 0 && (w.anchor == nil || name != "www.live.com." || m.AuthenticatedData) {
					break
				}
				if ctx.Err() != nil {
					return fmt.Errorf("%s does not resolve %s: %v, %v\n%s", r.Name, name, m, err, w.Logs())
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	return nil
}

// Stop ends all servers.
func (w *World) Stop() {
	for _, s := range w.servers {
		_ = s.Signal(syscall.SIGTERM) // all at once; it may have ended by itself
	}
	for _, s := range w.servers {
		s.Stop()
	}
}

// Logs are the ends of what the servers wrote.
func (w *World) Logs() string {
	var b strings.Builder
	for _, s := range w.servers {
		b.WriteString(s.LogTail() + "\n")
	}
	return b.String()
}

// Package real runs an internet of real servers in a network namespace.
//
// Start with Start in this file. NSD and BIND are the authoritative servers (authorities.go, zones.go), and Unbound,
// BIND, PowerDNS and Knot the resolvers (recursors.go). They have the addresses of the public root servers and
// resolvers. So nameplane runs there as released, and its reports can be compared with the behaviour of these
// servers. StartLab (lab.go) runs the resolvers on the domains of the lab instead.
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

// Environment is an internet of real servers in a network namespace.
type Environment struct {
	Dir       string
	Recursors []Recursor
	Anchors   string // file with the trust anchors; empty if the root is not signed

	servers []*server.Process
	hints   string            // root servers of the recursors, as records
	stop    func()            // ends the lab; nil: there is none
	anchor  *dns.DS           // nil: not signed
	signed  map[string]string // signed zones of NSD, by name
}

// startTimeout is how long all servers together may take until they answer.
const startTimeout = 40 * time.Second

// Start starts all servers in the network namespace of the process. The namespace must be the process's own, since
// Start adds public addresses to its loopback interface. The servers end with Stop, or with the process. Without
// signatures nameplane runs without options. With signed zones the resolvers validate, and nameplane needs the file
// Anchors.
func Start(dir string, signed bool) (*Environment, error) {
	env := &Environment{Dir: dir, Recursors: recursors(), hints: rootHints()}
	all := append(rootAddrs(), gtldA, gtldA6, gtldB, gtldB6, alpha, beta, gamma, badGlue, badChild, badThird, lame)
	if err := env.addAddresses(all); err != nil {
		return nil, err
	}
	if signed {
		if err := env.sign(); err != nil {
			return env, err
		}
	}
	if err := env.startAuthorities(); err != nil {
		return env, err
	}
	if signed {
		if err := env.waitSigned(); err != nil {
			return env, err
		}
	}
	if err := env.startRecursors(); err != nil {
		return env, err
	}
	return env, env.waitReady("www.good.com.", "www.live.com.")
}

// addAddresses adds the addresses of authorities and of the recursors to the loopback interface. There are no routes,
// so no packet can leave.
func (env *Environment) addAddresses(all []string) error {
	if isolated, err := isIsolated(); err != nil || !isolated {
		return errors.Join(err, errors.New("the network namespace has an interface besides the loopback: "+
			"it is in use by others"))
	}
	batch := "link set lo up\n"
	for _, r := range env.Recursors {
		all = append(all, r.Addrs...)
		if r.Addr6 != "" {
			all = append(all, r.Addr6)
		}
	}
	for _, a := range all {
		addr := netip.MustParseAddr(a)
		line := fmt.Sprintf("address replace %s/%d dev lo", addr, addr.BitLen())
		if addr.Is6() {
			line += " nodad"
		}
		batch += line + "\n"
	}
	return runIP(batch)
}

// setUp sets the loopback interface up. A socket that is bound before has no source address, so that nobody accepts its
// replies over UDP.
func setUp() error { return runIP("link set lo up\n") }

// runIP runs commands of ip, one per line.
func runIP(batch string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w\n%s", err, out)
	}
	return nil
}

// isIsolated reports whether all interfaces that are up are loopback interfaces.
func isIsolated() (bool, error) {
	out, err := exec.Command("ip", "-o", "link", "show", "up").Output()
	if err != nil {
		return false, fmt.Errorf("ip link: %w", err)
	}
	return strings.Count(string(out), "\n") <= strings.Count(string(out), " lo: "), nil
}

// file writes a file of a server and returns its path.
func (env *Environment) file(name, text string) (string, error) {
	path := filepath.Join(env.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o644)
}

// run starts a server, with its log beside its files.
func (env *Environment) run(name, program string, args ...string) error {
	path, err := need.Installed(program)
	if err != nil {
		return err
	}
	dir := filepath.Join(env.Dir, name)
	p := &server.Process{Name: name, Command: append([]string{path}, args...), WorkDir: dir,
		LogFile: filepath.Join(dir, "log")}
	env.servers = append(env.servers, p)
	return p.Start()
}

// waitReady waits until every recursor resolves the names. If the root is signed, the last one must be secure.
func (env *Environment) waitReady(names ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for _, r := range env.Recursors {
		for _, name := range names {
			for {
				m, err := Ask(ctx, r.Addr, name, dns.TypeA, true)
				if err == nil && len(m.Answer) > 0 && (env.anchor == nil || name != names[len(names)-1] || m.AuthenticatedData) {
					break
				}
				if ctx.Err() != nil {
					return fmt.Errorf("%s does not resolve %s: %v, %v\n%s", r.Name, name, m, err, env.Logs())
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	return nil
}

// Stop ends all servers.
func (env *Environment) Stop() {
	if env.stop != nil {
		env.stop()
	}
	for _, s := range env.servers {
		_ = s.Signal(syscall.SIGTERM) // signal all at once; a server may have ended already
	}
	for _, s := range env.servers {
		s.Stop()
	}
}

// Logs returns the ends of the logs of all servers.
func (env *Environment) Logs() string {
	var b strings.Builder
	for _, s := range env.servers {
		b.WriteString(s.LogTail() + "\n")
	}
	return b.String()
}

package real

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nameplane/nameplane/internal/lab"
)

// labRecursors are the addresses of the recursors beside the lab. The lab has resolvers at the public addresses.
var labRecursors = map[string][2]string{
	"unbound":  {"185.49.141.1", "2a04:b900::141:1"},
	"bind":     {"185.49.141.2", "2a04:b900::141:2"},
	"powerdns": {"185.49.141.3", "2a04:b900::141:3"},
	"knot":     {"185.49.141.4", "2a04:b900::141:4"},
}

// StartLab starts a lab, and the recursors with the root and the trust anchor of the lab. They reach its servers at
// their public addresses, over IPv4 and IPv6, and validate. Nameplane reaches it with the option --lab, by the folder
// LabDir. Like Start, it needs a network namespace of its own.
func StartLab(dir string) (*Environment, *lab.Lab, error) {
	ctx, cancel := context.WithCancel(context.Background())
	env := &Environment{Dir: dir, Recursors: recursors(), stop: cancel}
	for i, r := range env.Recursors {
		addrs := labRecursors[r.Name]
		env.Recursors[i].Addr, env.Recursors[i].Addrs, env.Recursors[i].Addr6 = addrs[0], addrs[:1], addrs[1]
	}
	if err := setUp(); err != nil {
		return env, nil, err
	}
	l, err := lab.Start(ctx, lab.Options{Dir: env.LabDir()})
	if err != nil {
		return env, nil, err
	}
	env.stop = func() {
		cancel()
		_ = l.Wait() // the tests are over
	}
	var addrs []string
	for _, a := range l.Net.Addrs() {
		addrs = append(addrs, a.Addr().String())
	}
	if err := env.addAddresses(addrs); err != nil {
		return env, nil, err
	}
	sockets, err := l.Net.ListenPublic()
	if err != nil {
		return env, nil, err
	}
	go func() { _ = sockets.Run(ctx) }()
	var hints strings.Builder
	for _, h := range l.Hints {
		fmt.Fprintf(&hints, ". 3600000 NS %s\n", h.Name)
		for _, a := range h.Glue {
			typ := "A"
			if a.Is6() {
				typ = "AAAA"
			}
			fmt.Fprintf(&hints, "%s 3600000 %s %s\n", h.Name, typ, a)
		}
	}
	env.hints = hints.String()
	if err := env.setAnchor(l.Anchor); err != nil {
		return env, nil, err
	}
	if err := env.startRecursors(); err != nil {
		return env, nil, err
	}
	return env, l, env.waitReady("www.example.com.", "www.signed.test.")
}

// LabDir is the folder in which nameplane finds the lab.
func (env *Environment) LabDir() string { return filepath.Join(env.Dir, "lab") }

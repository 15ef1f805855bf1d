package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/test/need"
)

// Recursor is a real resolver at addresses of public resolvers.
type Recursor struct {
	Name  string // its software
	Addr  string // Addrs[0]
	Addrs []string
	Addr6 string // it sends from this address over IPv6; empty: it has no IPv6

	start func(*Environment, Recursor) error
	dump  func(context.Context, *Environment, Recursor) (string, error) // nil: its cache cannot be dumped
}

// recursors returns the four resolvers. Each also has the addresses of every fourth of the other resolvers that
// nameplane queries over IPv4 without encryption.
func recursors() []Recursor {
	all := []Recursor{
		{Name: "unbound", Addr: "1.1.1.1", start: (*Environment).unbound, dump: dumpUnbound},
		{Name: "bind", Addr: "8.8.8.8", start: (*Environment).named, dump: dumpBIND},
		{Name: "powerdns", Addr: "9.9.9.10", start: (*Environment).powerdns, dump: dumpPowerDNS},
		{Name: "knot", Addr: "208.67.222.222", start: (*Environment).knot},
	}
	for i := range all {
		all[i].Addrs = []string{all[i].Addr}
	}
	next := 0
	for _, r := range resolvers.Load().Resolvers {
		for i, a := range r.V4 {
			if slices.ContainsFunc(all, func(o Recursor) bool { return o.Addr == a.String() }) || r.Encrypted && i == 0 {
				continue
			}
			all[next%len(all)].Addrs = append(all[next%len(all)].Addrs, a.String())
			next++
		}
	}
	return all
}

// startRecursors starts all resolvers. Each sends from its own address, so that authoritative servers can distinguish
// them. If the root is signed they validate, and synthesize answers from cached NSEC records (RFC 8198). All other
// cache settings are defaults. The top-level domain test is that of the lab: Unbound and Knot deny it by default.
func (env *Environment) startRecursors() (err error) {
	for _, r := range env.Recursors {
		if _, fileErr := env.file(filepath.Join(r.Name, "hints"), env.hints); fileErr != nil {
			return fileErr
		}
		err = errors.Join(err, r.start(env, r))
	}
	return err
}

func (env *Environment) unbound(r Recursor) error {
	dir := filepath.Join(env.Dir, r.Name)
	conf, err := env.file(filepath.Join(r.Name, "unbound.conf"), fmt.Sprintf(`server:
    directory: %[1]q
    username: ""
    chroot: ""
    pidfile: ""
    use-syslog: no
%[3]s    outgoing-interface: %[2]s
%[5]s    access-control: 0.0.0.0/0 allow
    local-zone: "test." nodefault
%[4]s    num-threads: 1
    root-hints: "hints"
remote-control:
    control-enable: yes
    control-interface: "%[1]s/control"
    control-use-cert: no
`, dir, r.Addr, "    interface: "+strings.Join(r.Addrs, "\n    interface: ")+"\n",
		env.ifSigned("    module-config: \"iterator\"\n",
			"    module-config: \"validator iterator\"\n    trust-anchor-file: \""+env.Anchors+
				"\"\n    aggressive-nsec: yes\n"),
		r.if6("    do-ip6: no\n", "    do-ip6: yes\n    outgoing-interface: %s\n")))
	if err != nil {
		return err
	}
	return env.run(r.Name, "unbound", "-d", "-c", conf)
}

func dumpUnbound(ctx context.Context, env *Environment, r Recursor) (string, error) {
	return output(ctx, "unbound-control", "-c", filepath.Join(env.Dir, r.Name, "unbound.conf"), "dump_cache")
}

const rndcKey = `key "rndc" { algorithm hmac-sha256; secret "bmFtZXBsYW5lIG5hbWVwbGFuZSBuYW1lcGxhbmUgIQ=="; };` + "\n"

func (env *Environment) named(r Recursor) error {
	dir := filepath.Join(env.Dir, r.Name)
	if _, err := env.file(filepath.Join(r.Name, "rndc.conf"),
		rndcKey+"options { default-key rndc; default-server 127.0.0.1; };\n"); err != nil {
		return err
	}
	conf, err := env.file(filepath.Join(r.Name, "named.conf"), fmt.Sprintf(`options {
	directory %[1]q; pid-file none; session-keyfile "%[1]s/session.key"; managed-keys-directory %[1]q; dump-file "dump";
	listen-on { %[3]s; }; listen-on-v6 { none; }; query-source address %[2]s;%[7]s
	recursion yes; allow-query { any; }; allow-query-cache { any; }; allow-recursion { any; }; %[5]s empty-zones-enable no;
};
%[4]scontrols { inet 127.0.0.1 port 953 allow { any; } keys { rndc; }; };
%[6]szone "." { type hint; file "hints"; };
`, dir, r.Addr, strings.Join(r.Addrs, "; "), rndcKey,
		env.ifSigned("dnssec-validation no;", "dnssec-validation yes; synth-from-dnssec yes;"), env.bindAnchor(),
		r.if6("", " query-source-v6 address %s;")))
	if err != nil {
		return err
	}
	args := []string{"-g", "-c", conf}
	if r.Addr6 == "" {
		args = append(args, "-4")
	}
	return env.run(r.Name, "named", args...)
}

// if6 returns one of two texts, depending on whether the recursor has IPv6. The second is a format for its address.
func (r Recursor) if6(without, with string) string {
	if r.Addr6 == "" {
		return without
	}
	return fmt.Sprintf(with, r.Addr6)
}

// ifSigned returns one of two texts, depending on whether the root is signed.
func (env *Environment) ifSigned(plain, signed string) string {
	if env.anchor == nil {
		return plain
	}
	return signed
}

func (env *Environment) bindAnchor() string {
	if env.anchor == nil {
		return ""
	}
	return fmt.Sprintf("trust-anchors { . static-ds %d %d %d %q; };\n", env.anchor.KeyTag, env.anchor.Algorithm,
		env.anchor.DigestType, env.anchor.Digest)
}

func dumpBIND(ctx context.Context, env *Environment, r Recursor) (string, error) {
	path := filepath.Join(env.Dir, r.Name, "dump")
	_ = os.Remove(path) // there is none the first time
	if _, err := output(ctx, "rndc", "-c", filepath.Join(env.Dir, r.Name, "rndc.conf"), "dumpdb", "-cache"); err != nil {
		return "", err
	}
	// rndc returns before the dump is complete.
	for ctx.Err() == nil {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "; Dump complete") {
			return string(text), nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", ctx.Err()
}

func (env *Environment) powerdns(r Recursor) error {
	dir := filepath.Join(env.Dir, r.Name)
	anchor := "clearTA()\n"
	if a := env.anchor; a != nil {
		anchor += fmt.Sprintf("addTA('.', '%d %d %d %s')\n", a.KeyTag, a.Algorithm, a.DigestType, a.Digest)
	}
	lua, err := env.file(filepath.Join(r.Name, "anchors.lua"), anchor)
	if err != nil {
		return err
	}
	_, err = env.file(filepath.Join(r.Name, "recursor.conf"), fmt.Sprintf(`local-address=%[2]s
query-local-address=%[1]s%[6]s
hint-file=%[3]s/hints
socket-dir=%[3]s
dnssec=%[4]s
lua-config-file=%[5]s
allow-from=0.0.0.0/0
dont-query=
security-poll-suffix=
daemon=no
write-pid=no
disable-syslog=yes
threads=1
`, r.Addr, strings.Join(r.Addrs, ","), dir, env.ifSigned("off", "validate"), lua,
		r.if6("", ",%s")))
	if err != nil {
		return err
	}
	return env.run(r.Name, "pdns_recursor", "--config-dir="+dir)
}

func dumpPowerDNS(ctx context.Context, env *Environment, r Recursor) (string, error) {
	path := filepath.Join(env.Dir, r.Name, "dump")
	_ = os.Remove(path) // rec_control refuses to overwrite a file
	if _, err := output(ctx, "rec_control", "--config-dir="+filepath.Join(env.Dir, r.Name),
		"--socket-dir="+filepath.Join(env.Dir, r.Name), "dump-cache", path); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

func (env *Environment) knot(r Recursor) error {
	dir := filepath.Join(env.Dir, r.Name)
	anchor := ""
	if env.anchor != nil {
		anchor = fmt.Sprintf("trust_anchors.add('%s')\n", env.anchor)
	}
	conf, err := env.file(filepath.Join(r.Name, "kresd.conf"), fmt.Sprintf(`net.listen({'%[2]s'}, 53, { kind = 'dns' })
%[5]s
net.outgoing_v4('%[1]s')
modules = { 'hints > iterate', 'policy' }
policy.add(policy.suffix(policy.PASS, policy.todnames({'test.'})))
hints.root_file('%[3]s/hints')
trust_anchors.remove('.')
%[4]scache.open(20 * MB, 'lmdb://%[3]s/cache')
`, r.Addr, strings.Join(r.Addrs, "', '"), dir, anchor,
		r.if6("net.ipv6 = false", "net.outgoing_v6('%s')")))
	if err != nil {
		return err
	}
	return env.run(r.Name, "kresd", "-n", "-c", conf, dir)
}

// Holds reports whether the cache of a recursor has an entry for a name; ok is false if the cache cannot be dumped.
func (env *Environment) Holds(ctx context.Context, r Recursor, name string) (holds, ok bool, err error) {
	if r.dump == nil {
		return false, false, nil
	}
	text, err := r.dump(ctx, env, r)
	return strings.Contains(strings.ToLower(text), strings.ToLower(name)), err == nil, err
}

func output(ctx context.Context, program string, args ...string) (string, error) {
	path, err := need.Installed(program)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return string(out), nil
}

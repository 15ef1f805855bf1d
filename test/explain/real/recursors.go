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

// Recursor is a resolver at addresses of public ones.
type Recursor struct {
	Name  string // its software
	Addr  string // the first of Addrs
	Addrs []string

	start func(*World, Recursor) error
	dump  func(context.Context, *World, Recursor) (string, error) // nil: it cannot show what it holds
}

// recursors are four, of which each also stands for every fourth of the other resolvers that nameplane asks: those over
// IPv4 and without encryption.
func recursors() []Recursor {
	all := []Recursor{
		{Name: "unbound", Addr: "1.1.1.1", start: (*World).unbound, dump: dumpUnbound},
		{Name: "bind", Addr: "8.8.8.8", start: (*World).named, dump: dumpBIND},
		{Name: "powerdns", Addr: "9.9.9.10", start: (*World).powerdns, dump: dumpPowerDNS},
		{Name: "knot", Addr: "208.67.222.222", start: (*World).knot},
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

// startRecursors starts all. Each sends from its own address, so that authorities can tell them apart. They validate if the root
// of this world is signed, and then make answers of NSEC records that they hold (RFC 8198). Everything else about caching is the
// default.
func (w *World) startRecursors() (err error) {
	for _, r := range w.Recursors {
		if _, e := w.file(filepath.Join(r.Name, "hints"), rootHints()); e != nil {
			return e
		}
		err = errors.Join(err, r.start(w, r))
	}
	return err
}

func (w *World) unbound(r Recursor) error {
	dir := filepath.Join(w.Dir, r.Name)
	conf, err := w.file(filepath.Join(r.Name, "unbound.conf"), fmt.Sprintf(`server:
    directory: %[1]q
    username: ""
    chroot: ""
    pidfile: ""
    use-syslog: no
%[3]s    outgoing-interface: %[2]s
    do-ip6: no
    access-control: 0.0.0.0/0 allow
%[4]s    num-threads: 1
    root-hints: "hints"
remote-control:
    control-enable: yes
    control-interface: "%[1]s/control"
    control-use-cert: no
`, dir, r.Addr, "    interface: "+strings.Join(r.Addrs, "\n    interface: ")+"\n", w.either("    module-config: \"iterator\"\n",
		"    module-config: \"validator iterator\"\n    trust-anchor-file: \""+w.Anchors+"\"\n    aggressive-nsec: yes\n")))
	if err != nil {
		return err
	}
	return w.run(r.Name, "unbound", "-d", "-c", conf)
}

func dumpUnbound(ctx context.Context, w *World, r Recursor) (string, error) {
	return output(ctx, "unbound-control", "-c", filepath.Join(w.Dir, r.Name, "unbound.conf"), "dump_cache")
}

const rndcKey = `key "rndc" { algorithm hmac-sha256; secret "bmFtZXBsYW5lIG5hbWVwbGFuZSBuYW1lcGxhbmUgIQ=="; };` + "\n"

func (w *World) named(r Recursor) error {
	dir := filepath.Join(w.Dir, r.Name)
	if _, err := w.file(filepath.Join(r.Name, "rndc.conf"), rndcKey+"options { default-key rndc; default-server 127.0.0.1; };\n"); err != nil {
		return err
	}
	conf, err := w.file(filepath.Join(r.Name, "named.conf"), fmt.Sprintf(`options {
	directory %[1]q; pid-file none; session-keyfile "%[1]s/session.key"; managed-keys-directory %[1]q; dump-file "dump";
	listen-on { %[3]s; }; listen-on-v6 { none; }; query-source address %[2]s;
	recursion yes; allow-query { any; }; allow-query-cache { any; }; allow-recursion { any; }; %[5]s empty-zones-enable no;
};
%[4]scontrols { inet 127.0.0.1 port 953 allow { any; } keys { rndc; }; };
%[6]szone "." { type hint; file "hints"; };
`, dir, r.Addr, strings.Join(r.Addrs, "; "), rndcKey, w.either("dnssec-validation no;", "dnssec-validation yes; synth-from-dnssec yes;"), w.bindAnchor()))
	if err != nil {
		return err
	}
	return w.run(r.Name, "named", "-4", "-g", "-c", conf)
}

// either is one of two texts: for a world that is not signed, or for one that is.
func (w *World) either(plain, signed string) string {
	if w.anchor == nil {
		return plain
	}
	return signed
}

func (w *World) bindAnchor() string {
	if w.anchor == nil {
		return ""
	}
	return fmt.Sprintf("trust-anchors { . static-ds %d %d %d %q; };\n", w.anchor.KeyTag, w.anchor.Algorithm, w.anchor.DigestType, w.anchor.Digest)
}

func dumpBIND(ctx context.Context, w *World, r Recursor) (string, error) {
	path := filepath.Join(w.Dir, r.Name, "dump")
	_ = os.Remove(path) // there is none the first time
	if _, err := output(ctx, "rndc", "-c", filepath.Join(w.Dir, r.Name, "rndc.conf"), "dumpdb", "-cache"); err != nil {
		return "", err
	}
	// It is written behind our back.
	for ctx.Err() == nil {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "; Dump complete") {
			return string(text), nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return "", ctx.Err()
}

func (w *World) powerdns(r Recursor) error {
	dir := filepath.Join(w.Dir, r.Name)
	anchor := "clearTA()\n"
	if a := w.anchor; a != nil {
		anchor += fmt.Sprintf("addTA('.', '%d %d %d %s')\n", a.KeyTag, a.Algorithm, a.DigestType, a.Digest)
	}
	lua, err := w.file(filepath.Join(r.Name, "anchors.lua"), anchor)
	if err != nil {
		return err
	}
	_, err = w.file(filepath.Join(r.Name, "recursor.conf"), fmt.Sprintf(`local-address=%[2]s
query-local-address=%[1]s
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
`, r.Addr, strings.Join(r.Addrs, ","), dir, w.either("off", "validate"), lua))
	if err != nil {
		return err
	}
	return w.run(r.Name, "pdns_recursor", "--config-dir="+dir)
}

func dumpPowerDNS(ctx context.Context, w *World, r Recursor) (string, error) {
	path := filepath.Join(w.Dir, r.Name, "dump")
	_ = os.Remove(path) // it refuses to write over one
	if _, err := output(ctx, "rec_control", "--config-dir="+filepath.Join(w.Dir, r.Name), "--socket-dir="+filepath.Join(w.Dir, r.Name), "dump-cache", path); err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

func (w *World) knot(r Recursor) error {
	dir := filepath.Join(w.Dir, r.Name)
	anchor := ""
	if w.anchor != nil {
		anchor = fmt.Sprintf("trust_anchors.add('%s')\n", w.anchor)
	}
	conf, err := w.file(filepath.Join(r.Name, "kresd.conf"), fmt.Sprintf(`net.listen({'%[2]s'}, 53, { kind = 'dns' })
net.ipv6 = false
net.outgoing_v4('%[1]s')
modules = { 'hints > iterate' }
hints.root_file('%[3]s/hints')
trust_anchors.remove('.')
%[4]scache.open(20 * MB, 'lmdb://%[3]s/cache')
`, r.Addr, strings.Join(r.Addrs, "', '"), dir, anchor))
	if err != nil {
		return err
	}
	return w.run(r.Name, "kresd", "-n", "-c", conf, dir)
}

// Holds reports whether a recursor has anything about a name in its cache; ok is false if it cannot tell.
func (w *World) Holds(ctx context.Context, r Recursor, name string) (holds, ok bool, err error) {
	if r.dump == nil {
		return false, false, nil
	}
	text, err := r.dump(ctx, w, r)
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

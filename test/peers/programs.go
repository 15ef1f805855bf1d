package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// BIND is named from the bind9 package.
func BIND() Program {
	return Program{Name: "BIND", Binary: "named", Package: "bind9", configure: configureBIND}
}

// Knot is knotd from the knot package.
func Knot() Program {
	return Program{Name: "Knot", Binary: "knotd", Package: "knot", configure: configureKnot}
}

// NSD is nsd from the nsd package.
func NSD() Program {
	return Program{Name: "NSD", Binary: "nsd", Package: "nsd", configure: configureNSD}
}

// Unbound is unbound from the unbound package: a resolver that answers only for its zones.
func Unbound() Program {
	return Program{Name: "Unbound", Binary: "unbound", Package: "unbound", configure: configureUnbound}
}

// Resolver is an Unbound that sends all queries to one authority, and none to other servers.
func Resolver(authority string) Program {
	p := Unbound()
	p.configure = func(s site) ([]string, error) {
		addr := strings.Replace(authority, ":", "@", 1)
		conf, err := write(s.dir, "unbound.conf", fmt.Sprintf(`server:
    directory: %q
    username: ""
    chroot: ""
    pidfile: ""
    use-syslog: no
    interface: 127.0.0.1@%d
    outgoing-interface: 127.0.0.1
    do-ip6: no
    do-not-query-localhost: no
    module-config: "iterator"
    num-threads: 1
    infra-host-ttl: 1
    infra-keep-probing: yes
stub-zone:
    name: "example.net."
    stub-addr: %[3]s
stub-zone:
    name: "."
    stub-addr: %[3]s
remote-control:
    control-enable: no
`, s.dir, s.port, addr))
		return []string{"-d", "-c", conf}, err
	}
	return p
}

// CoreDNS is the program of test/tools/coredns, built to the given path.
func CoreDNS(binary string) Program {
	return Program{Name: "CoreDNS", Binary: binary, configure: configureCoreDNS}
}

// Command is any other server. In its arguments, {dir} is replaced by its folder and {port} by the port to serve.
func Command(name, binary string, args ...string) Program {
	return Program{Name: name, Binary: binary, configure: func(s site) ([]string, error) {
		r := strings.NewReplacer("{dir}", s.dir, "{port}", strconv.Itoa(s.port))
		out := make([]string, len(args))
		for i, a := range args {
			out[i] = r.Replace(a)
		}
		return out, nil
	}}
}

// configureBIND leaves out -u: as root, named stays root and can read a folder that only root may enter; another user
// could not change user anyway. notify and validation are off, so that named never sends a packet by itself.
// zero-no-soa-ttl is off: RFC 2308 §3 gives a negative answer to an SOA question the same TTL as any other, and only
// BIND deviates from it.
func configureBIND(s site) ([]string, error) {
	var b strings.Builder
	allow, notify, key := "none", "notify no", ""
	if s.opts.Notify != "" {
		allow = "127.0.0.1"
		if k := s.opts.Key; k.Name != "" {
			fmt.Fprintf(&b, "key %q { algorithm hmac-sha256; secret %q; };\n", k.Name, k.Secret)
			key = fmt.Sprintf(" key %q", k.Name)
			allow = "key \"" + k.Name + "\""
		}
		host, port, _ := strings.Cut(s.opts.Notify, ":")
		notify = fmt.Sprintf("notify explicit; notify-delay 0; also-notify { %s port %s%s; }", host, port, key)
	}
	transfer := fmt.Sprintf("allow-transfer { %s; };", allow)
	if t := s.opts.TLS; t.CA != "" {
		_, port, _ := strings.Cut(s.http, ":")
		b.WriteString(t.bind())
		transfer = fmt.Sprintf("listen-on port %s tls transfers { 127.0.0.1; };\n"+
			"\tallow-transfer port %[1]s transport tls { %s; };", port, allow)
	}
	fmt.Fprintf(&b, `options {
	directory %q;
	pid-file none;
	session-keyfile %q;
	managed-keys-directory %q;
	listen-on port %d { 127.0.0.1; };
	listen-on-v6 { none; };
	recursion no;
	%s
	minimal-responses yes;
	zero-no-soa-ttl no;
	empty-zones-enable no;
	dnssec-validation no;
	%s;
};
controls { };
`, s.dir, filepath.Join(s.dir, "session.key"), s.dir, s.port, transfer, notify)
	for _, z := range s.zones {
		file, update := z.File, ""
		if s.opts.Update {
			// named writes the zone back and keeps a journal beside it.
			file, update = filepath.Join(s.dir, zoneFileName(z.Name)), " allow-update { 127.0.0.1; };"
			if err := copyFile(file, z.File); err != nil {
				return nil, err
			}
		}
		fmt.Fprintf(&b, "zone %q { type primary; file %q; check-names ignore;%s };\n", z.Name, file, update)
	}
	conf, err := write(s.dir, "named.conf", b.String())
	return []string{"-g", "-c", conf}, err
}

// configureKnot gives a pinned server one worker of each kind: knotd counts all cores of the machine, not only those
// that it may use.
func configureKnot(s site) ([]string, error) {
	var b strings.Builder
	workers := ""
	if s.opts.Core != "" {
		workers = "\n    udp-workers: 1\n    tcp-workers: 1\n    background-workers: 1"
	}
	fmt.Fprintf(&b, `server:
    rundir: %q
    listen: 127.0.0.1@%d%s
log:
  - target: stderr
    any: info
database:
    storage: %q
control:
    listen: %q
acl:
  - id: transfers
    address: 127.0.0.0/8
    action: transfer
template:
  - id: default
    semantic-checks: off
    journal-content: none
    zonefile-sync: -1
%szone:
`, s.dir, s.port, workers, s.dir, filepath.Join(s.dir, "knot.sock"),
		map[bool]string{true: "    acl: transfers\n"}[s.opts.Transfer])
	for _, z := range s.zones {
		fmt.Fprintf(&b, "  - domain: %q\n    file: %q\n", z.Name, z.File)
	}
	conf, err := write(s.dir, "knot.conf", b.String())
	return []string{"-c", conf}, err
}

// configureNSD turns off the change of user, and the rate limit that Debian compiles in, which answers 200 questions
// per second.
func configureNSD(s site) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `server:
    ip-address: 127.0.0.1@%d
    server-count: 1
    username: ""
    zonesdir: ""
    database: ""
    pidfile: ""
    xfrdir: %q
    xfrdfile: ""
    zonelistfile: %q
    minimal-responses: yes
    refuse-any: no
    rrl-ratelimit: 0
remote-control:
    control-enable: no
`, s.port, s.dir, filepath.Join(s.dir, "zone.list"))
	for _, z := range s.zones {
		fmt.Fprintf(&b, "zone:\n    name: %q\n    zonefile: %q\n", z.Name, z.File)
		if s.opts.Transfer {
			b.WriteString("    provide-xfr: 127.0.0.0/8 NOKEY\n")
		}
	}
	conf, err := write(s.dir, "nsd.conf", b.String())
	return []string{"-d", "-c", conf}, err
}

// configureUnbound lets no packet out. It sends queries only from loopback, and refuses every name outside its zones
// before it would query. It has no validator, which would fetch the root key.
func configureUnbound(s site) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `server:
    directory: %q
    username: ""
    chroot: ""
    pidfile: ""
    use-syslog: no
    interface: 127.0.0.1@%d
    outgoing-interface: 127.0.0.1
    access-control: 127.0.0.0/8 allow
    module-config: "iterator"
    num-threads: 1
    local-zone: "." refuse
`, s.dir, s.port)
	for _, z := range s.zones {
		fmt.Fprintf(&b, "    local-zone: %q transparent\n", z.Name)
	}
	b.WriteString("remote-control:\n    control-enable: no\n")
	for _, z := range s.zones {
		fmt.Fprintf(&b,
			"auth-zone:\n    name: %q\n    zonefile: %q\n    for-downstream: yes\n    for-upstream: yes\n    "+
				"fallback-enabled: no\n", z.Name, z.File)
	}
	conf, err := write(s.dir, "unbound.conf", b.String())
	return []string{"-d", "-c", conf}, err
}

// configureCoreDNS turns off reloading, which would read all zone files every minute of a measurement.
func configureCoreDNS(s site) ([]string, error) {
	var b strings.Builder
	for _, z := range s.zones {
		fmt.Fprintf(&b, "%s:%d {\n\tbind 127.0.0.1\n\tfile %s {\n\t\treload 0\n\t}\n}\n", z.Name, s.port, z.File)
	}
	conf, err := write(s.dir, "Corefile", b.String())
	return []string{"-conf", conf, "-quiet"}, err
}

// write makes a file that only its owner can read: configurations contain TSIG secrets.
func write(dir, name, text string) (string, error) {
	path := filepath.Join(dir, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// copyFile copies a zone file for servers that write to theirs.
func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

func zoneFileName(zone string) string {
	return strings.TrimSuffix(zone, ".") + ".zone"
}

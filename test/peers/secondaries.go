package peers

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
)

// Key is a TSIG key with HMAC-SHA256.
type Key struct{ Name, Secret string }

// Secondaries are the servers that transfer their zones from Options.Primary. They send no NOTIFY, and accept it from
// the primary. Their zones have no files.
func Secondaries() []Program {
	return []Program{
		{Name: "BIND", Binary: "named", Package: "bind9", configure: secondaryBIND},
		{Name: "Knot", Binary: "knotd", Package: "knot", configure: secondaryKnot},
		{Name: "NSD", Binary: "nsd", Package: "nsd", configure: secondaryNSD},
		{Name: "PowerDNS", Binary: "pdns_server", Package: "pdns-server", configure: secondaryPowerDNS},
	}
}

// secondaryBIND turns off what would send packets to other hosts: NOTIFY, recursion, and the keys of the root.
func secondaryBIND(s site) ([]string, error) {
	host, port, err := net.SplitHostPort(s.opts.Primary)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	key := ""
	if k := s.opts.Key; k.Name != "" {
		fmt.Fprintf(&b, "key %q { algorithm hmac-sha256; secret %q; };\n", k.Name, k.Secret)
		key = fmt.Sprintf(" key %q", k.Name)
	}
	if t := s.opts.TLS; t.CA != "" {
		b.WriteString(t.bind())
		key += " tls transfers"
	}
	fmt.Fprintf(&b, `options {
	directory %q;
	pid-file none;
	session-keyfile %q;
	managed-keys-directory %q;
	listen-on port %d { 127.0.0.1; };
	listen-on-v6 { none; };
	recursion no;
	allow-transfer { none; };
	empty-zones-enable no;
	dnssec-validation no;
	notify no;
};
controls { };
`, s.dir, filepath.Join(s.dir, "session.key"), s.dir, s.port)
	for _, z := range s.zones {
		fmt.Fprintf(&b, "zone %q { type secondary; primaries { %s port %s%s; }; };\n", z.Name, host, port, key)
	}
	conf, err := write(s.dir, "named.conf", b.String())
	return []string{"-g", "-c", conf}, err
}

// bind returns the tls block with the name transfers of named.conf.
func (t TLS) bind() string {
	text := fmt.Sprintf("tls transfers { ca-file %q;", t.CA)
	if t.Name != "" {
		text += fmt.Sprintf(" remote-hostname %q;", t.Name)
	}
	if t.Cert != "" {
		text += fmt.Sprintf(" cert-file %q; key-file %q;", t.Cert, t.Key)
	}
	if t.Protocols != "" {
		text += " protocols { " + t.Protocols + "; };"
	}
	return text + " };\n"
}

// secondaryKnot keeps zones only in its journal, so that a test sees what was transferred and not what a file had.
func secondaryKnot(s site) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `server:
    rundir: %q
    listen: 127.0.0.1@%d
log:
  - target: stderr
    any: info
database:
    storage: %q
control:
    listen: %q
`, s.dir, s.port, s.dir, filepath.Join(s.dir, "knot.sock"))
	key, from := "", "    address: 127.0.0.1\n"
	if k := s.opts.Key; k.Name != "" {
		fmt.Fprintf(&b, "key:\n  - id: %q\n    algorithm: hmac-sha256\n    secret: %q\n", k.Name, k.Secret)
		key = fmt.Sprintf("    key: %q\n", k.Name)
		from = key
	}
	fmt.Fprintf(&b, "remote:\n  - id: primary\n    address: %s\n%sacl:\n  - id: notify\n%s    action: notify\n",
		strings.Replace(s.opts.Primary, ":", "@", 1), key, from)
	b.WriteString("template:\n  - id: default\n    semantic-checks: off\n    zonefile-sync: -1\n    zonefile-load: " +
		"none\n    journal-content: all\nzone:\n")
	for _, z := range s.zones {
		fmt.Fprintf(&b, "  - domain: %q\n    master: primary\n    acl: notify\n", z.Name)
	}
	conf, err := write(s.dir, "knot.conf", b.String())
	return []string{"-c", conf}, err
}

// secondaryNSD reloads at once after a transfer. By default NSD waits a second, to collect several transfers.
func secondaryNSD(s site) ([]string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `server:
    ip-address: 127.0.0.1@%d
    server-count: 1
    username: ""
    zonesdir: %q
    database: ""
    pidfile: ""
    xfrdir: %q
    xfrdfile: ""
    zonelistfile: %q
    rrl-ratelimit: 0
    verbosity: 2
    xfrd-reload-timeout: 0
remote-control:
    control-enable: no
`, s.port, s.dir, s.dir, filepath.Join(s.dir, "zone.list"))
	key := "NOKEY"
	if k := s.opts.Key; k.Name != "" {
		fmt.Fprintf(&b, "key:\n    name: %q\n    algorithm: hmac-sha256\n    secret: %q\n", k.Name, k.Secret)
		key = k.Name
	}
	auth := ""
	if t := s.opts.TLS; t.CA != "" {
		auth = " transfers"
		fmt.Fprintf(&b, "server:\n    tls-cert-bundle: %q\ntls-auth:\n    name: transfers\n    auth-domain-name: %q\n",
			t.CA, t.Name)
		if t.Cert != "" {
			fmt.Fprintf(&b, "    client-cert: %q\n    client-key: %q\n", t.Cert, t.Key)
		}
	}
	for _, z := range s.zones {
		fmt.Fprintf(&b, "zone:\n    name: %q\n    request-xfr: %s %s%s\n    allow-notify: 127.0.0.1 %s\n", z.Name,
			strings.Replace(s.opts.Primary, ":", "@", 1), key, auth, key)
	}
	conf, err := write(s.dir, "nsd.conf", b.String())
	return []string{"-d", "-c", conf}, err
}

// secondaryPowerDNS keeps the zones in SQLite, where it also keeps keys. DNSSEC is off: version 4.7 marks records
// from IXFR as not authoritative, and with DNSSEC does not answer them.
func secondaryPowerDNS(s site) ([]string, error) {
	file := filepath.Join(s.dir, "pdns.sqlite3")
	_, err := write(s.dir, "pdns.conf", fmt.Sprintf(`launch=gsqlite3
gsqlite3-database=%s
config-dir=%s
socket-dir=%s
local-address=127.0.0.1
local-port=%d
secondary=yes
xfr-cycle-interval=1
query-cache-ttl=0
cache-ttl=0
negquery-cache-ttl=0
zone-cache-refresh-interval=0
security-poll-suffix=
daemon=no
guardian=no
write-pid=no
loglevel=5
`, file, s.dir, s.dir, s.port))
	if err != nil {
		return nil, err
	}
	create := exec.Command("sh", "-c", `sqlite3 "$1" < /usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql`, "sh",
		file)
	if out, err := create.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make the database: %w\n%s", err, out)
	}
	util := func(args ...string) error {
		if err != nil {
			return err
		}
		var out []byte
		cmd := exec.Command("pdnsutil", append([]string{"--config-dir=" + s.dir}, args...)...)
		if out, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("pdnsutil %v: %w\n%s", args, err, out)
		}
		return err
	}
	if k := s.opts.Key; k.Name != "" {
		_ = util("import-tsig-key", k.Name, "hmac-sha256", k.Secret)
	}
	for _, z := range s.zones {
		name := strings.TrimSuffix(z.Name, ".")
		_ = util("create-secondary-zone", name, s.opts.Primary)
		_ = util("set-meta", name, "IXFR", "1")
		if k := s.opts.Key; k.Name != "" {
			_ = util("activate-tsig-key", name, k.Name, "secondary")
		}
	}
	return []string{"--config-dir=" + s.dir}, err
}

package real

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// startAuthorities starts all authoritative servers.
func (env *Environment) startAuthorities() error {
	return errors.Join(
		env.nsd("root", rootAddrs(), map[string]string{".": env.zone(".", rootZone), "root-servers.net": rootServersZone()}),
		env.nsd("gtld", []string{gtldA, gtldA6, gtldB, gtldB6},
			map[string]string{"com": env.zone("com.", comZone), "net": netZone(), "gtld-servers.net": gtldServersZone()}),
		env.nsd("alpha", []string{alpha}, map[string]string{"good.com": goodZone(), "other.net": otherZone(),
			"bad.com": badZone(4), "half.com": halfZone()}),
		env.nsd("bad", []string{badGlue, badChild, badThird}, map[string]string{"bad.com": badZone(5)}),
		env.nsd("lame", []string{lame}, map[string]string{"elsewhere.net": apex("elsewhere.net", 600,
			"ns1.elsewhere.net="+lame)}),
		env.bind(),
	)
}

// zone returns the text of a zone, signed if there is a signed version.
func (env *Environment) zone(name string, text func() string) string {
	if s, ok := env.signed[name]; ok {
		return s
	}
	return text()
}

// nsd starts an NSD with the zones.
func (env *Environment) nsd(name string, addrs []string, zones map[string]string) error {
	dir := filepath.Join(env.Dir, name)
	var b strings.Builder
	b.WriteString("server:\n")
	for _, a := range addrs {
		fmt.Fprintf(&b, "    ip-address: %s\n", a)
	}
	// Debian's rate limit of 200 queries per second is off. Every setting that is not about files is the default.
	fmt.Fprintf(&b, `    server-count: 1
    username: ""
    zonesdir: %q
    database: ""
    pidfile: ""
    xfrdir: %q
    xfrdfile: ""
    zonelistfile: %q
    rrl-ratelimit: 0
remote-control:
    control-enable: no
`, dir, dir, filepath.Join(dir, "zone.list"))
	for zone, text := range zones {
		file, err := env.file(filepath.Join(name, zoneFile(zone)), "$ORIGIN "+strings.TrimSuffix(zone, ".")+".\n"+text)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "zone:\n    name: %q\n    zonefile: %q\n", zone, file)
	}
	conf, err := env.file(filepath.Join(name, "nsd.conf"), b.String())
	if err != nil {
		return err
	}
	return env.run(name, "nsd", "-d", "-c", conf)
}

func zoneFile(zone string) string { return "zone." + strings.TrimSuffix(zone, ".") }

// bind starts a BIND that logs all queries. Tests can change some of its zones.
func (env *Environment) bind() error {
	const name = "beta"
	dir := filepath.Join(env.Dir, name)
	var b strings.Builder
	fmt.Fprintf(&b, `options {
	directory %[1]q; pid-file none; session-keyfile "%[1]s/session.key"; managed-keys-directory %[1]q;
	listen-on { %s; %s; }; listen-on-v6 { none; };
	recursion no; allow-transfer { none; }; notify no; dnssec-validation no; empty-zones-enable no;
};
controls { };
logging {
	channel all { stderr; }; category default { all; }; category update { null; };
	channel questions { file "questions"; }; category queries { questions; };
};
`, dir, beta, gamma)
	zones := map[string]func() string{"good.com": goodZone, "other.net": otherZone}
	maps.Copy(zones, updated)
	for zone, text := range zones {
		file, err := env.file(filepath.Join(name, zoneFile(zone)), "$ORIGIN "+zone+".\n"+text())
		if err != nil {
			return err
		}
		update := ""
		if _, ok := updated[zone]; ok {
			update = " allow-update { any; };"
			if env.anchor != nil {
				update += fmt.Sprintf(" dnssec-policy default; key-directory %q;", env.keys())
			}
		}
		fmt.Fprintf(&b, "zone %q { type primary; file %q;%s };\n", zone, file, update)
	}
	conf, err := env.file(filepath.Join(name, "named.conf"), b.String())
	if err != nil {
		return err
	}
	return env.run(name, "named", "-4", "-f", "-c", conf)
}

var question = regexp.MustCompile(`client @\S+ (\S+)#\d+ \(\S+\): query: (\S+) IN`)

// Asked returns how many queries for a name of BIND's zones came from an address.
func (env *Environment) Asked(from, name string) (n int, err error) {
	text, err := os.ReadFile(filepath.Join(env.Dir, "beta", "questions"))
	if err != nil {
		return 0, err
	}
	for _, m := range question.FindAllStringSubmatch(string(text), -1) {
		if m[1] == from && strings.EqualFold(m[2], strings.TrimSuffix(name, ".")) {
			n++
		}
	}
	return n, nil
}

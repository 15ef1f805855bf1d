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

// authorities starts all of them.
func (w *World) authorities() error {
	return errors.Join(
		w.nsd("root", rootAddrs(), map[string]string{".": w.zone(".", rootZone), "root-servers.net": rootServersZone()}),
		w.nsd("gtld", []string{gtldA, gtldA6, gtldB, gtldB6}, map[string]string{"com": w.zone("com.", comZone), "net": netZone(), "gtld-servers.net": gtldServersZone()}),
		w.nsd("alpha", []string{alpha}, map[string]string{"good.com": goodZone(), "other.net": otherZone(), "bad.com": badZone(4), "half.com": halfZone()}),
		w.nsd("bad", []string{badGlue, badChild, badThird}, map[string]string{"bad.com": badZone(5)}),
		w.nsd("lame", []string{lame}, map[string]string{"elsewhere.net": apex("elsewhere.net", 600, "ns1.elsewhere.net="+lame)}),
		w.bind(),
	)
}

// zone is the text of a zone, signed if the world is.
func (w *World) zone(name string, text func() string) string {
	if s, ok := w.signed[name]; ok {
		return s
	}
	return text()
}

// nsd starts an NSD that has the zones.
func (w *World) nsd(name string, addrs []string, zones map[string]string) error {
	dir := filepath.Join(w.Dir, name)
	var b strings.Builder
	b.WriteString("server:\n")
	for _, a := range addrs {
		fmt.Fprintf(&b, "    ip-address: %s\n", a)
	}
	// Debian's limit of 200 questions a second is off; all else that is not about files is the default.
	fmt.Fprintf(&b, "    server-count: 1\n    username: \"\"\n    zonesdir: %q\n    database: \"\"\n    pidfile: \"\"\n    xfrdir: %q\n    xfrdfile: \"\"\n    zonelistfile: %q\n    rrl-ratelimit: 0\nremote-control:\n    control-enable: no\n",
		dir, dir, filepath.Join(dir, "zone.list"))
	for zone, text := range zones {
		file, err := w.file(filepath.Join(name, zoneFile(zone)), "$ORIGIN "+strings.TrimSuffix(zone, ".")+".\n"+text)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "zone:\n    name: %q\n    zonefile: %q\n", zone, file)
	}
	conf, err := w.file(filepath.Join(name, "nsd.conf"), b.String())
	if err != nil {
		return err
	}
	return w.run(name, "nsd", "-d", "-c", conf)
}

func zoneFile(zone string) string { return "zone." + strings.TrimSuffix(zone, ".") }

// bind starts a BIND some of whose zones can be changed, and which notes all questions.
func (w *World) bind() error {
	const name = "beta"
	dir := filepath.Join(w.Dir, name)
	var b strings.Builder
	fmt.Fprintf(&b, `options {
	directory %[1]q; pid-file none; session-keyfile "%[1]s/session.key"; managed-keys-directory %[1]q;
	listen-on { %s; %s; }; listen-on-v6 { none; };
	recursion no; allow-transfer { none; }; notify no; dnssec-validation no; empty-zones-enable no;
};
controls { };
logging { channel all { stderr; }; category default { all; }; channel questions { file "questions"; }; category queries { questions; }; category update { null; }; };
`, dir, beta, gamma)
	zones := map[string]func() string{"good.com": goodZone, "other.net": otherZone}
	maps.Copy(zones, updated)
	for zone, text := range zones {
		file, err := w.file(filepath.Join(name, zoneFile(zone)), "$ORIGIN "+zone+".\n"+text())
		if err != nil {
			return err
		}
		update := ""
		if _, ok := updated[zone]; ok {
			update = " allow-update { any; };"
			if w.anchor != nil {
				update += fmt.Sprintf(" dnssec-policy default; key-directory %q;", w.keys())
			}
		}
		fmt.Fprintf(&b, "zone %q { type primary; file %q;%s };\n", zone, file, update)
	}
	conf, err := w.file(filepath.Join(name, "named.conf"), b.String())
	if err != nil {
		return err
	}
	return w.run(name, "named", "-4", "-f", "-c", conf)
}

var question = regexp.MustCompile(`client @\S+ (\S+)#\d+ \(\S+\): query: (\S+) IN`)

// Asked are the questions for a name of a zone that can be changed that an address has asked its servers.
func (w *World) Asked(from, name string) (n int, err error) {
	text, err := os.ReadFile(filepath.Join(w.Dir, "beta", "questions"))
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

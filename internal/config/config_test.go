package config

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestExampleIsTheDefault(t *testing.T) {
	c, err := Parse("example.yaml", []byte(Example()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Default(), c); diff != "" {
		t.Errorf("the example differs from the defaults (-default +example):\n%s", diff)
	}
	for _, key := range allKeys(reflect.TypeFor[Config]()) {
		if !strings.Contains(Example(), key+":") {
			t.Errorf("the example has no %s", key)
		}
	}
	if err := Default().Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
}

// TestFewSettings keeps the number of settings small: a value that nobody needs to change is a constant. A list of
// sections counts as one setting.
func TestFewSettings(t *testing.T) {
	const most = 70
	got := leaves(reflect.TypeFor[Config](), "")
	if len(got) > most {
		t.Errorf("there are %d settings, want at most %d: %s", len(got), most, strings.Join(got, ", "))
	}
	for key := range removed {
		if slices.Contains(got, key) {
			t.Errorf("%s is a setting and is listed as removed", key)
		}
	}
}

func leaves(t reflect.Type, path string) (out []string) {
	for i := range t.NumField() {
		name := strings.TrimPrefix(path+"."+t.Field(i).Tag.Get("yaml"), ".")
		if f := t.Field(i).Type; f.Kind() == reflect.Struct {
			out = append(out, leaves(f, name)...)
		} else {
			out = append(out, name)
		}
	}
	return out
}

// TestDocumentedSettings checks that every setting that the documentation names in dotted form exists.
func TestDocumentedSettings(t *testing.T) {
	all := append(leaves(reflect.TypeFor[Config](), ""), sections(reflect.TypeFor[Config](), "")...)
	top := strings.Join(keys(reflect.TypeFor[Config]()), "|")
	dotted := regexp.MustCompile("`((?:" + top + ")(?:\\.[a-z_]+)+)(?:: [^`]*)?`")
	files, err := filepath.Glob("../../docs/*/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documentation: %v", err)
	}
	found := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range dotted.FindAllStringSubmatch(string(text), -1) {
			if m[1] == "dns.openshift.io" {
				continue // an API group of Kubernetes
			}
			found++
			if !slices.Contains(all, m[1]) {
				t.Errorf("%s names %s, which is not a setting", filepath.Base(file), m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("the documentation names %d settings, want at least 10", found)
	}
}

func sections(t reflect.Type, path string) (out []string) {
	for i := range t.NumField() {
		if f := t.Field(i).Type; f.Kind() == reflect.Struct {
			name := strings.TrimPrefix(path+"."+t.Field(i).Tag.Get("yaml"), ".")
			out = append(append(out, name), sections(f, name)...)
		}
	}
	return out
}

func allKeys(t reflect.Type) (out []string) {
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("yaml"))
		f := t.Field(i).Type
		if f.Kind() == reflect.Slice {
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct {
			out = append(out, allKeys(f)...)
		}
	}
	return out
}

func TestParse(t *testing.T) {
	text := `
dns:
  listen: ["127.0.0.1:5300", "[::1]:5300"]
  rrl:
    responses: unlimited
    exempt: [192.0.2.1, "2001:db8::/32"]
  tcp:
http: {max_import: 64KiB}
forward: {max_stale: 1m30s}
designate:
  nameservers:
    - ns1.example.org.
    - ns2.example.org.
`
	got, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.DNS.Listen = []string{"127.0.0.1:5300", "[::1]:5300"}
	want.DNS.RRL.Responses = Unlimited
	want.DNS.RRL.Exempt = []string{"192.0.2.1", "2001:db8::/32"}
	want.HTTP.MaxImport, want.Forward.MaxStale = 64<<10, 90*time.Second
	want.Designate.Nameservers = []string{"ns1.example.org.", "ns2.example.org."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	networks := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/32")}
	if diff := cmp.Diff(networks, got.DNS.RRL.ExemptNetworks(),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("ExemptNetworks (-want +got):\n%s", diff)
	}
	if n := got.Designate.NameserverNames(); len(n) != 2 || n[1].String() != "ns2.example.org." {
		t.Errorf("NameserverNames = %v", n)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "{}"} {
		if c, err := Parse("x.yaml", []byte(empty)); err != nil || !reflect.DeepEqual(c, Default()) {
			t.Errorf("Parse(%q): %v, want the defaults", empty, err)
		}
	}
}

const withTLS = "http: {tls: {cert: c, key: k}}\n"

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"typing error", "dns:\n  lisen: [':53']\n",
			[]string{"x.yaml:2:3: dns.lisen: no such setting; did you mean listen?"}},
		{"swapped letters", "dns:\n  rlr: {}\n", []string{"did you mean rrl?"}},
		{"wrong section", "listen: ':53'\n", []string{"x.yaml:1:1: listen: no such setting; " +
			"did you mean dns.listen or http.listen or apps.listen or mep.listen or externaldns.listen?"}},
		{"nothing like it", "frobnicate: 1\n", []string{"the settings of the file are: data, user, nat64, log"}},
		{"two at once", "a_b_c: 1\nlog:\n  lvel: info\n",
			[]string{"x.yaml:1:1: a_b_c", "x.yaml:3:3: log.lvel: no such setting; did you mean level?"}},
		{"set twice", "data: a\ndata: b\n", []string{"x.yaml:2:1: data: is set a second time; first on line 1"}},
		{"section without settings", "dns: ':53'\n", []string{"x.yaml:1:6: dns: must contain settings"}},
		{"not a mapping", "- a\n", []string{"x.yaml:1:1: must contain settings"}},
		{"wrong type", "dns:\n  udp_size: many\n", []string{"x.yaml:2: many must be a whole number"}},
		{"not YAML", "dns: [\n", []string{"x.yaml:"}},
		{"two documents", "data: a\n---\ndata: b\n", []string{"more than one document"}},
		{"alias", "data: &a x\nuser: *a\n", []string{"x.yaml:1:7: data: anchors and aliases", "x.yaml:2:7: user: anchors"}},
		{"value", "log:\n  format: xml\n", []string{"x.yaml:2:11: log.format: must be one of text, json"}},
		{"value in a list", "dns:\n  listen:\n    - 127.0.0.1:53\n    - ns1.example.org:53\n",
			[]string{"x.yaml:4:7: dns.listen[1]: must be IP:PORT"}},
		{"empty list", "dns:\n  listen: []\n", []string{"x.yaml:2:11: dns.listen: must have at least one address"}},
		{"size", "http:\n  max_import: 1MB\n", []string{"x.yaml:2: 1MB must be a number of bytes"}},
		{"large size", "http:\n  max_import: 9999999999999GiB\n",
			[]string{"x.yaml:2: 9999999999999GiB must be a number of bytes"}},
		{"time without a unit", "forward:\n  max_stale: 30\n",
			[]string{"x.yaml:2: 30 must be a time with its unit, such as 30s"}},
		{"short time", "follow:\n  interval: 1ms\n", []string{"x.yaml:2:13: follow.interval: must be a time from 10s"}},
		{"list for a text", "data: [a]\n", []string{"x.yaml:1: must be a text"}},
		{"cert without key", "http:\n  tls:\n    cert: a.pem\n", []string{"x.yaml:3:5: http.tls: needs both cert and key"}},
		{"TLS without a certificate", "dns:\n  tls: [':853']\n", []string{"dns.cert: must name a certificate"}},
		{"QUIC without a certificate", "dns:\n  quic: [':853']\n", []string{"dns.cert: must name a certificate"}},
		{"DNS certificate without key", "dns:\n  cert: a.pem\n", []string{"x.yaml:2:9: dns.cert: needs dns.key"}},
		{"proxy address without proxies", "dns:\n  listen: ['proxy://127.0.0.1:53']\n",
			[]string{"x.yaml:2:12: dns.listen[0]: requires dns.proxies"}},
		{"not a proxy", "dns:\n  proxies: [everybody]\n", []string{"x.yaml:2:13: dns.proxies[0]: must be an address"}},
		{"HTTPS with a name", "dns:\n  cert: c\n  key: k\n  https: ['ns1.example.org:443']\n",
			[]string{"dns.https[0]: must be IP:PORT"}},
		{"HTTPS for proxies", "dns:\n  cert: c\n  key: k\n  https: ['proxy://127.0.0.1:443']\n",
			[]string{"dns.https[0]: must be IP:PORT"}},
		{"url", "http:\n  public_url: dns.example.org\n", []string{"http.public_url: must be http://"}},
		{"url with a path", "http:\n  public_url: https://example.org/dns\n", []string{"http.public_url"}},
		{"relative nameserver", "designate:\n  nameservers: [ns1.example.org]\n",
			[]string{"designate.nameservers[0]: must be a name that ends with a dot"}},
		{"quota of zero", "designate:\n  quotas:\n    zones: 0\n",
			[]string{"x.yaml:3: 0 must be a whole number greater than 0, or the word unlimited"}},
		{"quota of -1", "designate:\n  quotas:\n    zone_records: -1\n",
			[]string{"x.yaml:3: -1 must be a whole number greater than 0, or the word unlimited"}},
		{"JWT without a list", "apps:\n  jwt: {issuer: x}\n", []string{"x.yaml:2:8: apps.jwt: must be a list"}},
		{"typing error in a list", "apps:\n  jwt:\n    - isuer: x\n",
			[]string{"x.yaml:3:7: apps.jwt[0].isuer: no such setting; did you mean issuer?"}},
		{"not a section in a list", "apps: {jwt: [x]}\n", []string{"x.yaml:1:14: apps.jwt[0]: must contain settings"}},
		{"alias in a list", "apps: {jwt: [&a {issuer: x, keys: y}, *a]}\n",
			[]string{"apps.jwt[0]: anchors", "apps.jwt[1]: anchors"}},
		{"wrong type in a list", "apps:\n  jwt:\n    - issuer: x\n      keys: y\n      leeway: 3\n",
			[]string{"x.yaml:5: 3 must be a time with its unit"}},
		{"JWT without keys", "apps: {jwt: [{issuer: x}]}\n", []string{"x.yaml:1:14: apps.jwt[0].keys: must name a file"}},
		{"JWT with a secret", "apps: {jwt: [{issuer: x, keys: y, algorithms: [HS256]}]}\n",
			[]string{"x.yaml:1:48: apps.jwt[0].algorithms[0]: must be one of RS256"}},
		{"no algorithm", "apps: {jwt: [{issuer: x, keys: y, algorithms: []}]}\n",
			[]string{"apps.jwt[0].algorithms: must have at least one"}},
		{"two issuers of one name", "apps: {jwt: [{issuer: x, keys: y}, {issuer: x, keys: y}]}\n",
			[]string{"apps.jwt[1].issuer: is listed twice"}},
		{"long leeway", "apps: {jwt: [{issuer: x, keys: y, leeway: 1h}]}\n", []string{"apps.jwt[0].leeway: must be a time"}},
		{"applications for all", withTLS + "apps: {listen: ':80', authentication: none}\n",
			[]string{"x.yaml:2:39: apps.authentication: none lets everybody who reaches :80"}},
		{"platforms without certificates", "mep: {listen: '127.0.0.1:80', platforms: [mepm]}\n",
			[]string{"mep.platforms: requires mep.authentication: certificate"}},
		{"JWT without authentication", "apps: {listen: '127.0.0.1:80', authentication: none, jwt: [{issuer: x, keys: y}]}\n",
			[]string{"apps.jwt: has no effect"}},
		{"apps address", "apps: {listen: here}\n", []string{"apps.listen: must be IP:PORT"}},
		{"apps in the clear", "apps: {listen: ':80'}\n", []string{"apps.listen: needs the certificate of http.tls"}},
		{"a CA without TLS", "mep: {listen: '127.0.0.1:80', client_ca: a}\n",
			[]string{"mep.client_ca: needs the certificate of http.tls"}},
		{"TLS of one listener", "mep: {listen: ':80', tls: {cert: c, key: k}}\n",
			[]string{"x.yaml:1:22: mep.tls: is no longer a setting: the certificate is that of http.tls"}},
		{"token file for everybody", "externaldns: {listen: '[::]:80', token_file: t}\n",
			[]string{"externaldns.token_file: lets everybody who reaches [::]:80 act with the token in it",
				"externaldns.listen: needs the certificate of http.tls"}},
		{"platform for all", withTLS + "mep: {listen: '[::]:80', authentication: none}\n",
			[]string{"mep.authentication: none lets everybody who reaches [::]:80 change what is answered: " +
				"listen on 127.0.0.1"}},
		{"platform for all behind a CA", withTLS + "mep: {listen: ':80', authentication: none, client_ca: a}\n",
			[]string{"mep.authentication: none"}},
		{"certificates of nobody", withTLS + "mep: {listen: ':80', authentication: certificate}\n",
			[]string{"mep.authentication: certificate needs mep.client_ca"}},
		{"upstream by name", "forward:\n  upstreams:\n    - resolver.example.org\n",
			[]string{"x.yaml:3:7: forward.upstreams[0]: must be an address"}},
		{"upstream twice", "forward: {upstreams: ['127.0.0.1', 'udp://127.0.0.1:53', 'tcp://127.0.0.1']}\n",
			[]string{"forward.upstreams[1]: is listed twice"}},
		{"clients without upstreams", "forward: {clients: [192.0.2.0/24]}\n",
			[]string{"forward.clients: requires forward.upstreams"}},
		{"open resolver", "forward: {upstreams: ['127.0.0.1'], clients: [127.0.0.1, 0.0.0.0/0]}\n",
			[]string{"x.yaml:1:58: forward.clients[1]: lets the whole internet"}},
		{"open resolver, IPv6", "forward: {upstreams: ['127.0.0.1'], clients: ['::/0']}\n",
			[]string{"forward.clients[0]: lets the whole internet"}},
		{"half the internet is not the whole", "forward: {upstreams: ['127.0.0.1'], clients: ['::/0', x]}\n",
			[]string{"forward.clients[0]", "forward.clients[1]: must be an address or a network"}},
		{"replies too small", "dns: {udp_size: 100}\n", []string{"dns.udp_size: must be from 512 to 4096"}},
		{"long version", "dns: {version: " + strings.Repeat("x", 201) + "}\n",
			[]string{"dns.version: must be at most 200 bytes"}},
		{"long NSID", "dns: {nsid: " + strings.Repeat("x", 129) + "}\n", []string{"dns.nsid: must be at most 128 bytes"}},
		{"no rate", "dns: {rrl: {responses: 0}}\n",
			[]string{"x.yaml:1: 0 must be a whole number greater than 0, or the word unlimited"}},
		{"small cache", "forward: {cache_size: 1KiB}\n", []string{"forward.cache_size: must be from 64KiB to 1024GiB"}},
		{"old answers", "forward: {max_stale: 1000h}\n", []string{"forward.max_stale: must be a time from 0s to 168h"}},
		{"callbacks", "mec: {callbacks: {networks: [example.org]}}\n",
			[]string{"mec.callbacks.networks[0]: must be an address"}},
		{"limit", "journal: {changes: 0}\n", []string{"journal.changes: must be at least 1"}},
		{"removed limit", "dns:\n  rrl:\n    slip: 0\n",
			[]string{"x.yaml:3:5: dns.rrl.slip: is no longer a setting: it is always 2; remove the line"}},
		{"removed switch", "apps: {extensions: true}\n",
			[]string{"x.yaml:1:8: apps.extensions: is no longer a setting: remove the line, and set mec.edgegallery: true"}},
		{"network", "dns: {rrl: {exempt: [here]}}\n", []string{"x.yaml:1:22: dns.rrl.exempt[0]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(tt.text))
			if err == nil {
				t.Fatal("the file was accepted")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want %q in it", err, want)
				}
			}
			if n := strings.Count(err.Error(), "\n"); n > 0 && len(tt.want) < 2 {
				t.Errorf("one mistake, %d lines:\n%v", n+1, err)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "np.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("np.yaml", "data: state\ndns: {cookie_secret_file: cookie}\nhttp: {tls: {cert: c.pem, key: /etc/k.pem}}\n"+
		"apps: {jwt: [{issuer: x, keys: j.pem}]}\nmep: {client_ca: ca.pem}\n"+
		"forward: {tls_ca: roots.pem}\n")
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Data != filepath.Join(dir, "state") || c.HTTP.TLS.Cert != filepath.Join(dir, "c.pem") ||
		c.HTTP.TLS.Key != "/etc/k.pem" {
		t.Errorf("paths %q %q %q", c.Data, c.HTTP.TLS.Cert, c.HTTP.TLS.Key)
	}
	for _, f := range []struct{ got, want string }{
		{c.Apps.JWT[0].Keys, "j.pem"}, {c.MEP.ClientCA, "ca.pem"}, {c.Forward.TLSCA, "roots.pem"}, {c.Apps.ClientCA, ""},
	} {
		if f.want != "" {
			f.want = filepath.Join(dir, f.want)
		}
		if f.got != f.want {
			t.Errorf("path %q, want %q", f.got, f.want)
		}
	}
	if _, err := c.DNS.CookieSecret(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing secret: %v", err)
	}
	write("cookie", "00112233445566778899aabbccddeeff\n")
	if s, err := c.DNS.CookieSecret(); err != nil || s[1] != 0x11 || s[15] != 0xff {
		t.Errorf("CookieSecret = %x, %v", s, err)
	}
	write("cookie", "secret-words\n")
	if _, err := c.DNS.CookieSecret(); err == nil || !strings.Contains(err.Error(), "32 hexadecimal digits") ||
		strings.Contains(err.Error(), "secret-words") {
		t.Errorf("bad secret: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of no file: %v", err)
	}
}

func TestDiff(t *testing.T) {
	a, b := Default(), Default()
	if d := Diff(a, b); d != nil {
		t.Errorf("Diff of equals = %v", d)
	}
	b.Log.Level, b.DNS.RRL.Exempt, b.HTTP.TLS.Cert = "debug", []string{"192.0.2.1"}, "x"
	want := []string{"log.level", "dns.rrl.exempt", "http.tls.cert"}
	if diff := cmp.Diff(want, Diff(a, b)); diff != "" {
		t.Errorf("Diff (-want +got):\n%s", diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Example())
	f.Add("dns:\n  lisen: x\n")
	f.Add("a: &a [*a]\n")
	f.Add("? {a: b}\n: c\n")
	f.Add("<<: {data: x}\n")
	f.Add("dns: !!binary x\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("x.yaml", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "x.yaml:") {
				t.Errorf("error without a position: %v", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Errorf("Parse accepted what Validate refuses: %v", err)
		}
	})
}

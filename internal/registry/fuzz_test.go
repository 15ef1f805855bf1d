package registry_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/registry"
)

// sane fails the test if the parsed data is unsafe to show or inconsistent.
func sane(t *testing.T, got registry.Parsed) {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatalf("cannot be written as JSON: %v", err)
	}
	var back registry.Parsed
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("cannot be read from JSON: %v", err)
	}
	for _, s := range shown(back) {
		if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) ||
			len(s) > 1000 {
			t.Errorf("%q is not safe to show", s)
		}
	}
	if u := got.Registrar.URL; u != "" && !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
		t.Errorf("%q is not a link", u)
	}
	for _, h := range got.Nameservers {
		if n, err := dnsname.Parse(h.Name); err != nil || n.String() != h.Name {
			t.Errorf("%q is not a host name: %v", h.Name, err)
		}
	}
	if len(got.DNSSEC.DS)+len(got.DNSSEC.Keys) > 0 && !(got.DNSSEC.Known && got.DNSSEC.Signed) {
		t.Error("there are keys, but the domain is not signed")
	}
	if year := got.Registration.Dates.Expires.Year(); year != 1 && (year < 1980 || year > 2151) {
		t.Errorf("expires %v", got.Registration.Dates.Expires)
	}
}

// shown returns the texts of a registration.
func shown(p registry.Parsed) []string {
	all := []string{p.Handle, p.Registrar.Name, p.Registrar.IANAID, p.Registrar.URL, p.Registrar.AbuseEmail,
		p.Registrar.AbusePhone, p.Name, p.Referral}
	for _, s := range p.Statuses {
		all = append(all, s.Code)
	}
	return all
}

func FuzzRDAP(f *testing.F) {
	for _, body := range fixtures(f, "rdap/*.json") {
		f.Add(body)
	}
	f.Add([]byte(`{"errorCode":404}`))
	f.Add([]byte(`{"ldhName":"a.test","entities":[{"roles":["abuse"],"entities":[{"entities":[` +
		`{"entities":[{"entities":[]}]}]}]}]}`))
	f.Add([]byte(`{"ldhName":"\u202eevil.test","status":["\u001b[2J"],"handle":1e400}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, err := registry.ParseRDAP(body); err == nil {
			sane(t, got)
		}
	})
}

func FuzzWhois(f *testing.F) {
	for file, body := range fixtures(f, "whois/*.txt") {
		f.Add(body, domainOf(file))
	}
	f.Add([]byte("No match for example.com"), "example.com.")
	f.Add([]byte("[Name Server]\n  (\n ( a\nnic-hdl: x\n\nperson:\n y"), "example.jp.")
	f.Add([]byte("Registrar:\n\x1b[31m\xff\xfe: \u202e"), "example.com.")
	f.Fuzz(func(t *testing.T, body []byte, domain string) {
		got := registry.ParseWhois(body, domain)
		sane(t, got)
		data := got.Registrar.Name != "" || got.Dates != (registry.Dates{}) || len(got.Nameservers) > 0
		if got.Verdict == "not found" && data && got.Registration.Confidence == "high" {
			t.Errorf("free, but there is data: %+v", got.Registration)
		}
	})
}

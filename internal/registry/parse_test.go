package registry_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/registry"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a value with the golden file of a fixture.
func golden(t *testing.T, fixture string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	file := strings.TrimSuffix(fixture, filepath.Ext(fixture)) + ".golden"
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fixture, diff)
	}
}

func fixtures(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		if all[f], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// domainOf returns the domain of a fixture, from its file name.
func domainOf(file string) string {
	return strings.TrimPrefix(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), "registrar.") + "."
}

func TestWhoisFixtures(t *testing.T) {
	for file, body := range fixtures(t, "whois/*.txt") {
		got := registry.ParseWhois(body, domainOf(file))
		if got.Verdict != "found" || got.Name != domainOf(file) {
			t.Errorf("%s: %s, about %q", file, got.Verdict, got.Name)
		}
		golden(t, file, got)
	}
}

func TestRDAPFixtures(t *testing.T) {
	for file, body := range fixtures(t, "rdap/*.json") {
		got, err := registry.ParseRDAP(body)
		if err != nil || got.Name != domainOf(file) {
			t.Errorf("%s: about %q, %v", file, got.Name, err)
		}
		golden(t, file, got)
	}
}

// TestWhoisWithoutData has the phrases with which registries say that a domain does not exist, and refusals. No
// refusal may ever count as free.
func TestWhoisWithoutData(t *testing.T) {
	tests := []struct{ domain, text, want string }{
		{"example.com", "No match for domain \"EXAMPLE.COM\".\n" +
			">>> Last update of whois database: 2026-11-15T10:00:00Z <<<\n\nNOTICE: too many requests are blocked.\n",
			"refused: too many queries"},
		{"example.com", "No match for domain \"EXAMPLE.COM\".\n" +
			">>> Last update of whois database: 2026-11-15T10:00:00Z <<<\n\nNOTICE: terms\n", "not found"},
		{"example.org", "Domain not found.\n>>> Last update of WHOIS database: 2026-11-15T10:00:00Z <<<\n", "not found"},
		{"example.net", "DOMAIN NOT FOUND\n", "not found"},
		{"example.us", "No Data Found\nURL of the ICANN Whois Inaccuracy Complaint Form: https://www.icann.org/wicf/\n",
			"not found"},
		{"example.de", "Domain: example.de\nStatus: free\n", "not found"},
		{"example.jp", "[ JPRS database provides information on network administration. ]\n\nNo match!!\n\n" +
			"With JPRS WHOIS, you can query the following.\n", "not found"},
		{"example.co.uk", "\n    No match for \"example.co.uk\".\n\n    This domain name has not been registered.\n\n" +
			"    WHOIS lookup made at 10:00:00 15-Nov-2026\n", "not found"},
		{"example.fr", "%%\n%% This is the AFNIC Whois server.\n%%\n\n%% NOT FOUND\n", "not found"},
		{"example.eu", "% WHOIS example.eu\nDomain: example.eu\nScript: LATIN\n\nStatus: AVAILABLE\n", "not found"},
		{"example.com.br", "% Copyright (c) Nic.br\n\n% No match for example.com.br\n", "not found"},
		{"example.nl", "example.nl is free\n", "not found"},
		{"example.it", "Domain:             example.it\nStatus:             AVAILABLE\n", "not found"},
		{"example.be", "Domain:\texample.be\nStatus:\tAVAILABLE\n", "not found"},
		{"example.pl", "No information available about domain name example.pl in the Registry NASK database.\n", "not found"},
		{"example.ca", "Not found: example.ca\n", "not found"},
		{"example.se", "# Copyright\n\ndomain \"example.se\" not found.\n", "not found"},
		{"example.ch", "We do not have an entry in our database matching your query.\n", "not found"},
		{"example.cz", "%ERROR:101: no entries found\n%\n% No entries found.\n", "not found"},
		{"example.at", "% Copyright\n% nothing found\n", "not found"},
		{"example.ru", "% TCI Whois Service.\n\nNo entries found for the selected source(s).\n", "not found"},
		{"example.kr", "query : example.kr\n\n\n" +
			"The requested domain was not found in the Registry or Registrar's WHOIS Server.\n", "not found"},
		{"example.cn", "No matching record.\n", "not found"},
		{"example.hk", "The domain has not been registered.\n", "not found"},
		{"example.mx", "No_Se_Encontro_El_Objeto/Object_Not_Found\n", "not found"},
		{"example.ar", "El dominio no se encuentra registrado en NIC Argentina\n", "not found"},
		{"example.pt", "example.pt - No Match\n", "not found"},
		{"example.tw", "No Found\n", "not found"},
		{"example.info", "The queried object does not exist: previous registration\n", "not found"},

		{"example.co", "No Data Found\n>>> Last update of WHOIS database: 2026-11-15T10:00:00Z <<<\n\n" +
			"Terms: the registry reserves the right to restrict your access to the database\n" +
			"for excessive querying, or for failure to otherwise abide by this policy.\n", "not found"},

		{"example.com", "", "the reply could not be read"},
		{"example.com", "Hello.\n\nInformation that is not here may be available elsewhere.\n" +
			"If no entries found in the index are listed, ask.\n", "the reply could not be read"},
		{"example.com", "The registry of other.com is available.\n", "the reply could not be read"},
		{"example.de", "% Error: 55000000002 Connection refused; access control limit reached\n",
			"refused: too many queries"},
		{"example.eu", "-1: Maximum queries per minute reached: no match\nNo match\nrate limit exceeded\n",
			"refused: too many queries"},
		{"example.org", "WHOIS LIMIT EXCEEDED - SEE WWW.REGISTRY.EXAMPLE/WHOIS FOR DETAILS\n", "refused: too many queries"},
		{"example.br", "% Query rate limit exceeded. Reduced information.\n", "refused: too many queries"},
		{"example.fr", "%% Too many requests...\n%% NOT FOUND\n", "refused: too many queries"},
		{"example.co", "This name is reserved by the registry.\nNot found.\n", "the registry reserves this name"},
		{"example.uk", "This domain cannot be registered because it contravenes the Nominet UK naming rules.\n",
			"the registry reserves this name"},
		{"example.com", "Domain Name: OTHER.COM\nRegistrar: X\nCreation Date: 1999-01-01\n",
			"the reply is about another domain"},
		{"example.be", "Domain:\texample.be\nStatus:\tNOT AVAILABLE\nRegistered:\tTue Mar 5 2002\n", "found"},
		{"example.com", "Domain Name: EXAMPLE.COM\nCreation Date: 1999-01-01\nNot found means available.\nNo match\n",
			"found"},
	}
	for _, tt := range tests {
		got := registry.ParseWhois([]byte(tt.text), tt.domain+".")
		if got.Verdict != tt.want {
			t.Errorf("%s: %q reads as %q, want %q", tt.domain, tt.text, got.Verdict, tt.want)
		}
	}
}

func TestRDAPWithoutData(t *testing.T) {
	tests := []struct {
		body string
		code uint64
		err  string
	}{
		{`{"errorCode":404,"title":"Not Found"}`, 404, ""},
		{`{"errorCode":"422","title":"too fast"}`, 422, ""},
		{`{"errorCode":429,"ldhName":"example.com","status":[]}`, 0, ""},
		{`{"objectClassName":"entity","handle":"x"}`, 0, "the reply is not about a domain"},
		{`{"rdapConformance":["rdap_level_0"],"notices":[]}`, 0, "the reply is not about a domain"},
		{`[]`, 0, "the reply is not about a domain"},
		{`null`, 0, "the reply is not about a domain"},
		{`<html>secret@example.com</html>`, 0, "the reply is not JSON"},
		{``, 0, "the reply is not JSON"},
		{"\ufeff" + `{"ldhName":"example.com"}`, 0, ""},
	}
	for _, tt := range tests {
		got, err := registry.ParseRDAP([]byte(tt.body))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got.Code != tt.code || text != tt.err {
			t.Errorf("%s: code %d, error %q, want %d, %q", tt.body, got.Code, text, tt.code, tt.err)
		}
	}
}

func TestParseDate(t *testing.T) {
	tests := []struct{ text, want string }{
		{"2026-08-14T07:01:44Z", "2026-08-14T07:01:44Z"},
		{"2026-08-14T07:01:44.123456Z", "2026-08-14T07:01:44Z"},
		{"2018-03-12T21:44:25+01:00", "2018-03-12T20:44:25Z"},
		{"2025-03-23T10:53:03+0000", "2025-03-23T10:53:03Z"},
		{"2026-02-14 00:56:54", "2026-02-14T00:56:54Z"},
		{"2026-02-14 00:56:54 UTC", "2026-02-14T00:56:54Z"},
		{"2026-02-14", "2026-02-14T00:00:00Z"},
		{"2026/04/01 01:03:18 (JST)", "2026-03-31T16:03:18Z"},
		{"2027/02/28", "2027-02-28T00:00:00Z"},
		{"26-Nov-1999", "1999-11-26T00:00:00Z"},
		{"before 1-Aug-1996", "1996-08-01T00:00:00Z"},
		{"before Aug-1996", "1996-08-01T00:00:00Z"},
		{"19990521 #158423", "1999-05-21T00:00:00Z"},
		{"31.8.2027 00:00:00", "2027-08-31T00:00:00Z"},
		{"01.02.2001", "2001-02-01T00:00:00Z"},
		{"31/12/2026", "2026-12-31T00:00:00Z"},
		{"Tue Mar 5 2002", "2002-03-05T00:00:00Z"},
		{"2026. 01. 02.", "2026-01-02T00:00:00Z"},
		{"0001-01-01T00:00:00Z", ""},
		{"9999-12-31T00:00:00Z", ""},
		{"12/31/2026", ""},
		{"soon", ""},
		{"", ""},
	}
	for _, tt := range tests {
		got := ""
		if d := registry.ParseDate(tt.text); !d.IsZero() {
			got = d.Format(time.RFC3339)
		}
		if got != tt.want {
			t.Errorf("parseDate(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestWhoisHost(t *testing.T) {
	tests := []struct{ text, want string }{
		{"whois.example.net", "whois.example.net:43"},
		{"WHOIS.EXAMPLE.NET", "whois.example.net:43"},
		{"whois://whois.example.net", "whois.example.net:43"},
		{"whois://whois.example.net:4343", "whois.example.net:4343"},
		{"https://whois.example.net/lookup?x", "whois.example.net:43"},
		{"whois.example.net:", ""},
		{"whois.example.net:99999", ""},
		{"localhost", ""},
		{"whois.example.net\r\nquit", ""},
		{"", ""},
	}
	for _, tt := range tests {
		if got := registry.WhoisHost(tt.text); got != tt.want {
			t.Errorf("whoisHost(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

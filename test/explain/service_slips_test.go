package explain_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/explain"
)

// slip is a mistake of a person who copied a record into the form of a DNS host.
type slip struct {
	scenario
	finds string // the only finding above notice
}

// slips has every class of mistakes that the report names.
func slips() []slip {
	const cname, token = "CNAME edge.example.net.", `TXT "a1b2c3d4e5"`
	toAddr := []string{"{type: Hostname, value: edge.example.net}", "{type: IPAddress, value: 93.184.9.1}"}
	record := func(name, data, finds, words string) slip {
		return slip{scenario{name: name, zone: []string{cname, data}, words: words}, finds}
	}
	proof := func(name, data, finds, words string) slip {
		return slip{scenario{name: name, proof: true, zone: []string{token, data}, words: words}, finds}
	}
	return []slip{
		{scenario{name: "doubled suffix", zone: []string{"app.example.com. 300", "app.example.com.example.com. 300"},
			words: "the name of the zone was entered with the host"}, "SVC22"},
		{scenario{name: "@ as text", host: "example.com", objects: apex, zone: []string{"app.example.com. 300 " + cname,
			"\\@.example.com. 300 A 93.184.9.1\n\\@.example.com. 300 AAAA 2606:2800:9::1"},
			words: "the sign @ was stored as a label"}, "SVC22"},
		{scenario{name: "@ after the host", zone: []string{"app.example.com. 300", "app.\\@.example.com. 300"},
			words: "the sign @ was stored as a label"}, "SVC22"},
		record("quotes", `CNAME \"edge.example.net\".`, "SVC21", "quotation marks were copied"),
		record("URL", "CNAME https://edge.example.net.", "SVC21", "a URL was entered where a name belongs"),
		record("URL with a path", `CNAME https://edge.example.net/path.`, "SVC21", "a URL was entered"),
		record("wrong type", `TXT "edge.example.net"`, "SVC21", "it has another type"),
		{scenario{name: "IPv4 in AAAA", objects: toAddr, zone: []string{cname, "AAAA ::ffff:93.184.9.1"},
			words: "an IPv4 address was entered in a record for IPv6"}, "SVC21"},
		record("no-break space", `CNAME edge.example.net\194\160.`, "SVC21", "an invisible character was copied"),
		record("trailing space", `CNAME edge.example.net\032.`, "SVC21", "a space or an invisible character"),
		record("missing final dot", "CNAME edge.example.net.example.com.", "SVC21", "the form added the name of the zone"),
		{scenario{name: "smart dash", objects: []string{"edge.example.net}]", "my-edge.example.net}]"},
			target: []string{"edge.example.net. 60 A 93", "my-edge.example.net. 60 A 93", "edge.example.net. 60 AAAA",
				"my-edge.example.net. 60 AAAA"},
			zone: []string{cname, `CNAME my\226\128\147edge.example.net.`}, words: "a hyphen became a typographic dash"},
			"SVC21"},
		{scenario{name: "old value beside the new one", objects: toAddr, zone: []string{cname, "A 93.184.9.1, 93.184.8.8"},
			words: "About 50 of 100 visitors reach another server"}, "SVC25"},
		{scenario{name: "another zone", zone: []string{"app.example.com. 300 " + cname, `zone example.org.
example.org. 3600 SOA ns1.example.com. hostmaster.example.com. 1 7200 3600 1209600 300
example.org. 3600 NS ns1.example.com., ns2.example.com.
app.example.org. 300 ` + cname}, words: "There is app.example.org CNAME edge.example.net.: the same record is in " +
			"another zone"}, "SVC22"},
		{scenario{name: "TXT at the apex", proof: true, zone: []string{"_token.app.example.com. 300 " + token,
			"example.com. 300 " + token}, words: "There is example.com TXT"}, "OWN01"},
		{scenario{name: "TXT without the underscore", proof: true, zone: []string{"_token.app", "token.app"},
			words: "an underscore is missing"}, "OWN01"},
		proof("TXT with quotes", `TXT "\"a1b2c3d4e5\""`, "OWN02", "quotation marks"),
		proof("TXT split", `TXT "a1b2c", "3d4e5"`, "OWN02", "the value is spread over several records"),
		proof("TXT joined", `TXT "a1b2c3d4e5 x9y8"`, "OWN02", "other text was added"),
		proof("TXT with its name", `TXT "_token.app=a1b2c3d4e5"`, "OWN02", "the whole line was pasted"),
		proof("TXT cut", `TXT "a1b2c3d4"`, "OWN02", "the end of the value is missing"),
		proof("TXT in upper case", `TXT "A1B2C3D4E5"`, "OWN02", "upper and lower case changed"),
		proof("TXT of before", `TXT "z9y8x7w6v5"`, "OWN03", "probably an older one"),
	}
}

// TestServiceSlips checks that each mistake is named, and that nothing else is reported.
func TestServiceSlips(t *testing.T) {
	for _, s := range slips() {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := s.judge(t)
				named := false
				for _, f := range r.Findings {
					switch {
					case f.Status != explain.Fail || !f.Severity.AtLeast(explain.Warning):
					case f.ID != s.finds:
						t.Errorf("%s %s: %s", f.Severity, f.ID, f.Words)
					default:
						named = strings.Contains(f.Words, s.words)
					}
				}
				if !named {
					t.Errorf("%s: %s; want %s with %q", r.Summary, textOf(r, s.finds), s.finds, s.words)
				}
			})
		})
	}
}

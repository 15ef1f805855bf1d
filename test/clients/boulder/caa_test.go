// Package boulder compares the checks of CAA records with the decisions of Boulder, the software of Let's Encrypt. Both
// read the same zones. Pebble, the CA of the other tests, does not read CAA records. Start with TestCAA.
package boulder

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
)

// TestCAA checks that TLS06 or TLS07 fails exactly if Let's Encrypt refuses to issue the certificate.
func TestCAA(t *testing.T) {
	const other = `CAA 0 issue "digicert.com"`
	const ours = `CAA 0 issue "letsencrypt.org"`
	for _, tt := range []struct {
		name  string
		zone  []string // records and commands of the zone example.com
		edge  string   // a record of edge.example.net
		host  string   // default app.example.com
		want  string   // the check that fails; "": Let's Encrypt issues
		says  string   // part of the words of the check
		their string   // part of the problem of Boulder
	}{
		{name: "no records"},
		{name: "this CA", zone: []string{"app.example.com. 60 " + ours}},
		{name: "a property in capitals", zone: []string{`app.example.com. 60 CAA 0 ISSUE "digicert.com"`}, want: "TLS06",
			says: "permit only digicert.com", their: "prevents issuance"},
		{name: "this CA of several", zone: []string{"app.example.com. 60 " + other, "app.example.com. 60 " + ours}},
		{name: "another CA", zone: []string{"app.example.com. 60 " + other}, want: "TLS06",
			says: "permit only digicert.com", their: "prevents issuance"},
		{name: "another CA at the apex", zone: []string{"example.com. 60 " + other}, want: "TLS06",
			says: "permit only digicert.com", their: "prevents issuance"},
		{name: "another CA at the apex only", zone: []string{"example.com. 60 " + other, "app.example.com. 60 " + ours}},
		{name: "no CA", zone: []string{`example.com. 60 CAA 0 issue ";"`}, want: "TLS06", says: "permit no CA",
			their: "prevents issuance"},
		{name: "only contacts", zone: []string{`example.com. 60 CAA 0 iodef "mailto:hostmaster@example.com"`}},
		{name: "another CA for wildcards", zone: []string{`example.com. 60 CAA 0 issuewild "digicert.com"`}},
		{name: "a wildcard, and another CA for wildcards", host: "*.example.com", zone: []string{"example.com. 60 " + ours,
			`example.com. 60 CAA 0 issuewild "digicert.com"`}, want: "TLS06", says: "permit only digicert.com",
			their: "prevents issuance"},
		{name: "an unknown critical property", zone: []string{`example.com. 60 CAA 128 future "letsencrypt.org"`},
			want: "TLS06", says: "permit no CA", their: "prevents issuance"},
		{name: "an unknown property", zone: []string{`example.com. 60 CAA 0 future "x"`}},
		{name: "another CA at the target of the alias", zone: []string{"alias.example.com. 60 CNAME edge.example.net."},
			host: "alias.example.com", edge: other, want: "TLS06", says: "permit only digicert.com",
			their: "prevents issuance"},
		{name: "SERVFAIL", zone: []string{"fault servfail * CAA"}, want: "TLS07", says: "do not answer",
			their: "looking up CAA"},
		{name: "no reply", zone: []string{"fault timeout * CAA"}, want: "TLS07", says: "do not answer",
			their: "looking up CAA"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // because some wait for timeouts
			host := "app.example.com"
			if tt.host != "" {
				host = tt.host
			}
			network := internet(strings.Join(tt.zone, "\n"), tt.edge)
			problem := letsEncrypt(t, network, host)
			if (problem != "") != (tt.want != "") || !strings.Contains(problem, tt.their) {
				t.Errorf("Let's Encrypt says %q, want %q", problem, tt.their)
			}
			failed, words := "", ""
			for _, f := range findings(t, network, host) {
				if f.Status == explain.Fail && (f.ID == "TLS06" || f.ID == "TLS07") {
					failed, words = failed+f.ID, words+f.Words
				}
			}
			if failed != tt.want || !strings.Contains(words, tt.says) {
				t.Errorf("failed: %q (%s), want %q (%s)", failed, words, tt.want, tt.says)
			}
		})
	}
}

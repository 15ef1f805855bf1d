package powerdns

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// firstZones are the zones before the first request.
var firstZones = []string{
	`{"name":"example.org.","kind":"Native","nameservers":["ns1.localhost."],"rrsets":[` +
		`{"name":"www.example.org.","type":"A","ttl":300,"records":[{"content":"192.0.2.1"},{"content":"192.0.2.2"}],` +
		`"comments":[{"content":"the site","account":""}]},` +
		`{"name":"alias.example.org.","type":"CNAME","ttl":300,"records":[{"content":"www.example.org."}]},` +
		`{"name":"mail.example.org.","type":"MX","ttl":300,"records":[{"content":"10 mx.example.org."}]},` +
		`{"name":"text.example.org.","type":"TXT","ttl":300,"records":[{"content":"\"one\""}]}]}`,
	`{"name":"example.net.","kind":"Master","account":"web","nameservers":["ns1.localhost.","ns2.localhost."]}`,
	`{"name":"second.test.","kind":"Slave","masters":["127.0.0.1"]}`,
}

// generator generates requests from a fixed seed, so that every run sends the same.
type generator struct{ *rand.Rand }

func (g generator) of(list ...string) string { return list[g.IntN(len(list))] }

// sections are the sections of testdata/requests.txt.
var sections = []string{"broken", "comments", "create", "show", "update", "remove", "command", "server", "search",
	"keys"}

// generate returns at least n requests: first every line of testdata/requests.txt, then those without a valid key, and
// then each kind in turn, with random values.
func generate(t *testing.T, n int) []request {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(4, 7))}
	kinds := []func(generator) request{replaceGood, replaceGood, replaceBad, replaceBad, deleteSets,
		several,
		createGood, metadata, metadata, keys}
	var out []request
	for _, name := range sections {
		list := lines(t, name)
		out = append(out, list...)
		kinds = append(kinds, func(g generator) request { return list[g.IntN(len(list))] })
	}
	for _, key := range []string{wrongKey, noKey} {
		for _, path := range []string{"/api", "/api/v1/servers", "/zones", "/zones/example.org.", "/zones/none.test."} {
			out = append(out, request{method: "GET", path: path, key: key})
		}
		out = append(out, request{method: "DELETE", path: "/zones/example.org.", key: key})
	}
	for i := 0; len(out) < n; i++ {
		out = append(out, kinds[i%len(kinds)](g))
	}
	return out
}

// lines returns the requests of a section of testdata/requests.txt: a method, a path and a body in each line.
func lines(t *testing.T, section string) (out []request) {
	t.Helper()
	b, err := os.ReadFile("testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut("\n"+string(b), "\n# "+section+"\n")
	text, _, _ = strings.Cut(text, "\n\n")
	for line := range strings.Lines(text) {
		method, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		path, body, _ := strings.Cut(rest, " ")
		out = append(out, send(method, path, body))
	}
	if len(out) < 3 {
		t.Fatalf("testdata/requests.txt has %d requests of %s", len(out), section)
	}
	return out
}

const zonePath = "/zones/example.org."

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b))
}

func rrset(change, name, typ string, ttl int, contents ...string) string {
	var records []string
	for _, c := range contents {
		records = append(records, `{"content":`+quoted(c)+`,"disabled":false}`)
	}
	return fmt.Sprintf(`{"changetype":"%s","name":%s,"type":"%s","ttl":%d,"records":[%s]}`, change, quoted(name), typ, ttl,
		strings.Join(records, ","))
}

func send(method, path, body string) request { return request{method: method, path: path, body: body} }

func patch(sets ...string) request {
	return send("PATCH", zonePath, `{"rrsets":[`+strings.Join(sets, ",")+`]}`)
}

// good are records in the form of PowerDNS.
var good = map[string][]string{
	"A":     {"192.0.2.1", "198.51.100.7", "203.0.113.255"},
	"AAAA":  {"2001:db8::1", "2001:db8:0:0:0:0:0:2", "::"},
	"CNAME": {"www.example.org.", "Host.Example.NET."},
	"MX":    {"10 mx.example.org.", "0 .", "65535 a.test."},
	"NS":    {"ns1.example.org.", "ns2.test."},
	"PTR":   {"host.example.org."},
	"SRV":   {"0 5 5060 sip.example.org.", "0 0 0 ."},
	"TXT":   {`"v=spf1 -all"`, `"a" "b"`, `"with \"quotes\""`, `"semi;colon"`, `"back\\slash"`, `""`},
	"CAA":   {`0 issue "ca.test"`, `128 issuewild ";"`, `0 iodef "mailto:a@example.org"`},
	"SSHFP": {"1 1 0123456789abcdef0123456789abcdef01234567"},
	"TLSA":  {"3 1 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
	"DS":    {"12345 8 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
	"HTTPS": {"1 . alpn=h2,h3", "0 alias.example.org.", "1 . port=8443 ipv4hint=192.0.2.1"},
	"SVCB":  {"1 svc.example.org. alpn=h2"},
	"NAPTR": {`100 10 "S" "SIP+D2U" "" _sip._udp.example.org.`, `1 2 "u" "E2U+sip" "!^.*$!sip:a@example.org!" .`},
	"DNAME": {"other.example.net."},
	"LOC":   {"52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000.00m 10.00m"},
	"ALIAS": {"target.example.net."},
	"SPF":   {`"v=spf1 -all"`},
	"HINFO": {`"PC" "Linux"`},
	"RP":    {"admin.example.org. txt.example.org."},
}

// types has the keys of good in a fixed order.
var types = []string{"A", "AAAA", "CNAME", "MX", "NS", "PTR", "SRV", "TXT", "CAA", "SSHFP", "TLSA", "DS", "HTTPS",
	"SVCB", "NAPTR", "DNAME", "LOC", "ALIAS", "SPF", "HINFO", "RP"}

func (g generator) name() string {
	return g.of("a", "b", "c.d", "*", "*.w", "_sip._udp", "x-1", "UPPER", "0/25", "deep.er.name", "xn--bcher-kva") +
		fmt.Sprintf("%d", g.IntN(50)) + ".example.org."
}

// wild returns a name whose first label may be a wildcard.
func (g generator) wild() string { return g.of("*", "*.w", "*.x.y") + ".example.org." }

func replaceGood(g generator) request {
	typ := types[g.IntN(len(types))]
	contents := []string{g.of(good[typ]...)}
	if typ == "A" && g.IntN(2) == 0 {
		contents = good[typ]
	}
	name := strings.TrimPrefix(g.name(), "*")
	if g.IntN(6) == 0 {
		name = g.wild()
	}
	return patch(rrset(g.of("REPLACE", "replace"), name, typ, g.IntN(86400), contents...))
}

// bad are records that PowerDNS refuses.
var bad = [][2]string{{"A", "192.0.2.300"}, {"A", "192.0.2"}, {"A", "2001:db8::1"}, {"A", ""}, {"AAAA", "192.0.2.1"},
	{"AAAA", "2001:db8::g"}, {"AAAA", "::ffff:192.0.2.1"}, {"CNAME", "www.example.org"}, {"CNAME", ""},
	{"MX", "mx.example.org."},
	{"MX", "10  mx.example.org."}, {"MX", "70000 mx.example.org."}, {"MX", "10 mx.example.org"}, {"TXT", "no quotes"},
	{"TXT", `"open`}, {"SRV", "0 5 sip.example.org."}, {"SRV", "0 5 5060 sip"}, {"NS", "ns_1.example.org."},
	{"MX", "10 -bad.example.org."}, {"CAA", "0 issue ca.test"}, {"SSHFP", "1 1 xyz"}, {"NOTYPE", "x"},
	{"SOA", "ns1.localhost. a.example.org. 1 2 3 4 5"}, {"DNSKEY", "257 3 8 AwEAAQ=="}, {"OPT", "x"}}

func replaceBad(g generator) request {
	switch g.IntN(5) {
	case 0:
		return patch(rrset("REPLACE", g.of("www.example.net.", "example.com.", "org."), "A", 60, "192.0.2.1"))
	case 1:
		return patch(rrset("REPLACE", g.of("no-dot.example.org", "sp ace.example.org.", "a..example.org.", "",
			"*a.example.org.", strings.Repeat("a", 64)+".example.org."), "A", 60, "192.0.2.1"))
	case 2:
		return patch(rrset("REPLACE", g.of("www.example.org.", "mail.example.org."), "CNAME", 60, "a.test."))
	case 3:
		return patch(rrset("REPLACE", "alias.example.org.", g.of("A", "TXT", "MX"), 60, good["A"][0]))
	}
	b := bad[g.IntN(len(bad))]
	return patch(rrset("REPLACE", fmt.Sprintf("bad%d.example.org.", g.IntN(9)), b[0], 60, b[1]))
}

func deleteSets(g generator) request {
	name := g.of("www.example.org.", "none.example.org.", "text.example.org.", "other.example.net.", "a.test.")
	return patch(fmt.Sprintf(`{"changetype":"%s","name":"%s","type":"%s"}`, g.of("DELETE", "delete"), name,
		g.of("A", "TXT", "MX")))
}

func several(g generator) request {
	n := g.IntN(9)
	name := fmt.Sprintf("s%d.example.org.", n)
	switch g.IntN(8) {
	case 0: // an A record becomes a CNAME record
		return patch(`{"changetype":"DELETE","name":"www.example.org.","type":"A"}`,
			rrset("REPLACE", "www.example.org.", "CNAME", 60, "a.test."))
	case 1: // in the other order it does not
		return patch(rrset("REPLACE", "www.example.org.", "CNAME", 60, "a.test."),
			`{"changetype":"DELETE","name":"www.example.org.","type":"A"}`)
	case 2:
		return patch(rrset("REPLACE", name, "A", 60, "192.0.2.1"), rrset("REPLACE", name, "A", 60, "192.0.2.2"))
	case 3:
		return patch(rrset("REPLACE", name, "A", 60, "192.0.2.1"), rrset("REPLACE", "x"+name, "A", 60, "192.0.2.300"))
	case 4:
		return patch(rrset("REPLACE", name, "A", 60, "192.0.2.1", "192.0.2.1"))
	case 5:
		return patch(rrset("REPLACE", name, g.of("CNAME", "DNAME"), 60, "a.test.", "b.test."))
	case 6:
		return patch(rrset("REPLACE", name, "A", 60))
	}
	return patch(rrset("REPLACE", name, "A", 60, "192.0.2.1"), rrset("REPLACE", name, "AAAA", 60, "2001:db8::1"),
		rrset("REPLACE", name, "TXT", 60, `"x"`))
}

func createGood(g generator) request {
	name := fmt.Sprintf("new%d.test.", g.IntN(1000))
	ns := g.of(`"ns1.localhost."`, `"ns1.localhost.","ns2.localhost."`)
	rest := g.of(``, `,"rrsets":[]`, `,"account":"web"`, `,"soa_edit_api":"INCREASE"`, `,"soa_edit":"INCEPTION-INCREMENT"`,
		`,"api_rectify":true`, `,"dnssec":false`, `,"serial":7`, `,"catalog":""`, `,"masters":[]`,
		`,"rrsets":[{"name":"www.`+name+`","type":"A","ttl":60,"records":[{"content":"192.0.2.1","set-ptr":false}]}]`,
		`,"zone":"www 60 IN A 192.0.2.1\nmail 60 IN MX 10 www.`+name+`\n"`)
	kind := g.of("Native", "Master", "native", "PRIMARY", "other")
	return send("POST", "/zones"+g.of("", "", "?rrsets=false"),
		fmt.Sprintf(`{"name":"%s","kind":"%s","nameservers":[%s]%s}`, name, kind, ns, rest))
}

func metadata(g generator) request {
	const path = "/zones/example.org./metadata"
	kind := g.of("X-A", "X-B", "SOA-EDIT", "ALLOW-AXFR-FROM", "NSEC3PARAM", "UNKNOWN", "SOA-EDIT-API", "PRESIGNED")
	value := g.of(`["a"]`, `["a","b"]`, `[]`, `"a"`, `[1]`)
	switch g.IntN(6) {
	case 0:
		return send("GET", path, "")
	case 1, 2:
		return send("POST", path, g.of(`{"kind":"`+kind+`","metadata":`+value+`}`, `{}`, `{"kind":1}`))
	case 3:
		return send("PUT", path+"/"+kind, g.of(`{"metadata":`+value+`}`, `{}`))
	case 4:
		return send("DELETE", path+"/"+kind, "")
	}
	return send("GET", g.of(path, "/zones/none.test./metadata")+"/"+kind, "")
}

func keys(g generator) request {
	name, algorithm := g.of("k1", "k2.example.org."), g.of("hmac-sha256", "hmac-md5", "hmac-sha256.")
	path := "/tsigkeys/" + g.of("k1.", "k1", "k2.example.org.", "none.")
	switch g.IntN(6) {
	case 0:
		return send("GET", "/tsigkeys", "")
	case 1, 2:
		return send("POST", "/tsigkeys", g.of(`{"name":"`+name+`","algorithm":"`+algorithm+`","key":"c2VjcmV0"}`,
			`{"name":"`+name+`","algorithm":"hmac-sha256"}`, `{"name":"x","algorithm":"none","key":"c2VjcmV0"}`,
			`{"name":"x","algorithm":"hmac-sha256","key":"%"}`, `{}`, `{"name":"x"}`))
	case 3:
		return send("PUT", path, g.of(`{"key":"b3RoZXI="}`, `{"algorithm":"none"}`, `{}`,
			`{"key":"%"}`))
	case 4:
		return send("DELETE", path, "")
	}
	return send("GET", path, "")
}

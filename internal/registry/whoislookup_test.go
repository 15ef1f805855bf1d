package registry_test

import (
	"io"
	"strings"

	"github.com/nameplane/nameplane/internal/registry"
)

const noRDAP = "https://data.iana.org/rdap/dns.json: status 404"

// withoutRDAP sets up a network without a list of RDAP servers.
func withoutRDAP(whois map[string]string) func(*network) {
	return func(w *network) {
		w.web["data.iana.org"] = serve(404, "")
		for host, text := range whois {
			w.whois[host] = say(text)
		}
	}
}

const thin = "Domain Name: EXAMPLE.COM\nRegistrar WHOIS Server: %\nCreation Date: 1999-01-01\nRegistrar: X\n"

func referring(to string) string { return strings.Replace(thin, "%", to, 1) }

func whoisScenarios() []scenario {
	return []scenario{{
		name: "WHOIS to the registrar", state: registry.Registered, from: registry.WHOIS,
		set: withoutRDAP(map[string]string{"whois.registry.example": referring("whois.registrar.example"),
			"whois.registrar.example": "Domain Name: example.com\nRegistrar: X\n" +
				"Registrar Registration Expiration Date: 2027-01-01\n"}),
		asked: []string{noRDAP, rootWhois, theWhois + ": found", "whois.registrar.example:43 example.com: found"},
	}, {
		name: "WHOIS in a loop", state: registry.Registered, from: registry.WHOIS,
		set: withoutRDAP(map[string]string{"whois.registry.example": referring("whois.a.example"),
			"whois.a.example": referring("whois.b.example"), "whois.b.example": referring("whois.a.example")}),
		asked: []string{noRDAP, rootWhois, theWhois + ": found", "whois.a.example:43 example.com: found",
			"whois.b.example:43 example.com: found"},
	}, {
		name: "WHOIS without an end", state: registry.Registered, from: registry.WHOIS,
		set: func(w *network) {
			withoutRDAP(nil)(w)
			for i, host := range strings.Fields("registry a b c d e") {
				w.whois["whois."+host+".example"] = say(referring("whois." + strings.Fields("a b c d e f")[i] + ".example"))
			}
		},
		asked: []string{noRDAP, rootWhois, theWhois + ": found", "whois.a.example:43 example.com: found",
			"whois.b.example:43 example.com: found"},
	}, {
		name: "WHOIS that refers to itself", state: registry.Registered, from: registry.WHOIS,
		set:   withoutRDAP(map[string]string{"whois.registry.example": referring("whois.registry.example")}),
		asked: []string{noRDAP, rootWhois, theWhois + ": found"},
	}, {
		name: "WHOIS that only refers", state: registry.Unknown,
		set: withoutRDAP(map[string]string{"whois.registry.example": "ReferralServer: whois://whois.a.example:43\n",
			"whois.a.example": "ReferralServer: whois://whois.registry.example\n"}),
		asked: []string{noRDAP, rootWhois, theWhois + ": referred to another server",
			"whois.a.example:43 example.com: referred to another server"},
	}, {
		name: "WHOIS that refers to a private address", state: registry.Registered, from: registry.WHOIS,
		set: withoutRDAP(map[string]string{"whois.registry.example": referring("10.0.0.1")}),
		asked: []string{noRDAP, rootWhois, theWhois + ": found",
			"10.0.0.1:43 example.com: ask 10.0.0.1:43: the address is not a public one"},
	}, {
		name: "WHOIS that refers to the port of another service", state: registry.Registered, from: registry.WHOIS,
		set: withoutRDAP(map[string]string{"whois.registry.example": referring("mail.example:25")}),
		asked: []string{noRDAP, rootWhois, theWhois + ": found",
			"mail.example:25 example.com: ask mail.example:25: port 25: no registry server uses this port"},
	}, {
		name: "WHOIS that refuses", state: registry.Unknown,
		set:   withoutRDAP(map[string]string{"whois.registry.example": "Query rate limit exceeded. No match.\n"}),
		asked: []string{noRDAP, rootWhois, theWhois + ": refused: too many queries"},
	}, {
		name: "WHOIS that says nothing", state: registry.Unknown,
		set:   withoutRDAP(map[string]string{"whois.registry.example": ""}),
		asked: []string{noRDAP, rootWhois, theWhois + ": ask whois.registry.example:43: the reply is empty"},
	}, {
		name: "no WHOIS at IANA, but a fallback", ask: "example.to", state: registry.Free, from: registry.WHOIS,
		set: func(w *network) {
			withoutRDAP(map[string]string{"whois.iana.org": "domain: TO\n", "whois.tonic.to": "No match for example.to"})(w)
		},
		asked: []string{noRDAP, "whois.iana.org:43 to: reply", "whois.tonic.to:43 example.to: not found"},
	}, {
		name: "no WHOIS at IANA", ask: "example.shop", state: registry.Free, from: registry.WHOIS,
		set: func(w *network) {
			withoutRDAP(map[string]string{"whois.iana.org": "domain: SHOP\n", "whois.nic.shop": "Domain not found."})(w)
		},
		asked: []string{noRDAP, "whois.iana.org:43 shop: reply", "whois.nic.shop:43 example.shop: not found"},
	}, {
		name: "a top-level domain that does not exist", ask: "example.invalid", state: registry.Unknown,
		set:   withoutRDAP(map[string]string{"whois.iana.org": "% This query returned 0 objects.\n"}),
		asked: []string{noRDAP, "whois.iana.org:43 invalid: reply"},
	}, {
		name: "a server off IANA's list without the domain, WHOIS with it", ask: "example.de", state: registry.Registered,
		from: registry.WHOIS,
		set: func(w *network) {
			w.web["rdap.denic.de"] = serve(404, `{"errorCode":404}`)
			w.whois["whois.registry.example"] = say("Domain: example.de\nStatus: connect\nNserver: ns1.example.net\n")
		},
		asked: []string{iana, "https://rdap.denic.de/domain/example.de: status 404", "whois.iana.org:43 de: reply",
			"whois.registry.example:43 -T dn,ace example.de: found"},
	}, {
		name: "a server off IANA's list with the domain", ask: "example.de", state: registry.Registered, from: registry.RDAP,
		set:   func(w *network) { w.web["rdap.denic.de"] = serve(200, `{"ldhName":"example.de","events":[]}`) },
		asked: []string{iana, "https://rdap.denic.de/domain/example.de: status 200"},
	}, {
		name: "a Japanese query format", ask: "example.jp", state: registry.Free, from: registry.WHOIS,
		set:   withoutRDAP(map[string]string{"whois.registry.example": "No match!!"}),
		asked: []string{noRDAP, "whois.iana.org:43 jp: reply", "whois.registry.example:43 example.jp/e: not found"},
	}, {
		name: "WHOIS in Latin-1", ask: "example.com.br", state: registry.Registered, from: registry.WHOIS,
		set: func(w *network) {
			withoutRDAP(nil)(w)
			w.whois["whois.registry.example"] = func(_ string, w io.Writer) {
				io.WriteString(w, "domain: example.com.br\nregistrar: Associa\xe7\xe3o\ncreated: 19990101 #1\n")
			}
		},
		asked: []string{noRDAP, "whois.iana.org:43 br: reply", "whois.registry.example:43 example.com.br: found"},
	}}
}

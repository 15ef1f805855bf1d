package registry

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is the class of a WHOIS text.
type verdict string

const (
	isFound    verdict = "found"
	isFree     verdict = "not found"
	isBusy     verdict = "refused: too many queries"
	isReserved verdict = "the registry reserves this name"
	isUnclear  verdict = "the reply could not be read"
	isReferral verdict = "referred to another server"
	isOther    verdict = "the reply is about another domain"
)

// whoisReply is a WHOIS text about a domain.
type whoisReply struct {
	Registration
	verdict  verdict
	name     string // name of the domain; empty if the text has none
	referral string // host:port of the next server to query
	parts    keyParts
}

// parseWhois parses a WHOIS text about a domain. The name of the domain ends with a dot.
func parseWhois(text, domain string) whoisReply {
	var r whoisReply
	block, person := -1, false
	for _, f := range scanWhois(text) {
		if f.block != block {
			block, person = f.block, slices.Contains(personKeys, f.key)
			r.parts = keyParts{}
		}
		if !person {
			r.addField(f)
		}
	}
	r.verdict = r.judge(text, domain)
	r.Confidence = r.confidence(domain)
	return r
}

// personKeys begin the description of a contact. Contacts are dropped: they are personal data that no check needs.
var personKeys = []string{"nic-hdl", "nic-hdl-br", "person", "role", "contact", "contact handle"}

// roleWords begin the keys and headings of contacts: "Registrant Name:", "Administrative Contact".
var roleWords = []string{"registrant", "holder", "owner", "administrative", "admin", "technical", "tech", "billing"}

// isContact reports whether the heading or the key of a field is about a contact.
func isContact(section, key string) bool {
	return slices.ContainsFunc(roleWords, func(w string) bool {
		return section == w || section == w+"s" || strings.HasPrefix(section, w+" ") || strings.HasPrefix(key, w+" ")
	})
}

// addField sets the data for one field. It ignores fields of contacts.
func (r *whoisReply) addField(f field) {
	if isContact(f.section, "") {
		return
	}
	key := f.key
	switch {
	case f.section == "keys" && key == "flags": // .eu: flags:KSK protocol:3 …
		key, f.value = "dnskey", key+":"+f.value
	case strings.HasPrefix(f.section, "registrar"):
		key = registrarKeys[f.key]
		if f.key == "" && r.Registrar.Name != "" {
			return // the address of the registrar
		}
	case key == "":
		key = f.section
	}
	if isContact("", key) {
		return
	}
	if set, ok := setters[key]; ok {
		set(r, f.value)
		return
	}
	if m := numberedKey().FindStringSubmatch(key); m != nil {
		r.addKeyPart(m[1], m[2], f.value)
	}
}

// registrarKeys maps the keys below the heading "Registrar" to full keys.
var registrarKeys = map[string]string{
	"": "registrar", "name": "registrar", "organization": "registrar", "organisation": "registrar",
	"url": "registrar url", "website": "registrar url", "web": "registrar url", "iana id": "registrar iana id",
	"abuse contact email": "registrar abuse contact email",
}

// setters maps the keys of all known registries to functions that set their values.
var setters = func() map[string]func(*whoisReply, string) {
	all := map[string]func(*whoisReply, string){}
	on := func(set func(r *whoisReply, value string), keys ...string) {
		for _, k := range keys {
			all[k] = set
		}
	}
	text := func(at func(*whoisReply) *string, keys ...string) {
		on(func(r *whoisReply, v string) {
			if p := at(r); *p == "" {
				*p = clean(v)
			}
		}, keys...)
	}
	// The first date counts: later ones may belong to a contact.
	date := func(at func(*whoisReply) *time.Time, keys ...string) {
		on(func(r *whoisReply, v string) {
			if p := at(r); p.IsZero() {
				*p = parseDate(v)
			}
		}, keys...)
	}
	on((*whoisReply).setName, "domain name", "domain", "domain name (ace)", "domain-ace", "complete domain name")
	text(func(r *whoisReply) *string { return &r.Handle }, "registry domain id", "domain id", "roid")
	on((*whoisReply).setRegistrar, "registrar", "registrar name", "sponsoring registrar", "registrar organization",
		"authorized agency")
	text(func(r *whoisReply) *string { return &r.Registrar.IANAID }, "registrar iana id", "sponsoring registrar iana id")
	on(func(r *whoisReply, v string) { r.Registrar.URL = cmp.Or(r.Registrar.URL, webURL(v)) }, "registrar url",
		"website", "registrar website")
	text(func(r *whoisReply) *string { return &r.Registrar.AbuseEmail }, "registrar abuse contact email",
		"abuse contact email")
	text(func(r *whoisReply) *string { return &r.Registrar.AbusePhone }, "registrar abuse contact phone")
	date(func(r *whoisReply) *time.Time { return &r.Dates.Created }, "creation date", "created", "created on",
		"created date", "registered on", "registered", "registered date", "registration date", "registration time",
		"domain registration date",
		"record created", "domain record activated", "first registration date")
	date(func(r *whoisReply) *time.Time { return &r.Dates.Updated }, "updated date", "changed", "last updated",
		"last updated on", "last updated date", "last update", "last-update", "modified", "last modified", "updated",
		"update date", "modification date",
		"domain record last updated", "modified date")
	date(func(r *whoisReply) *time.Time { return &r.Dates.Expires }, "registry expiry date", "expiry date",
		"expiration date", "expires", "expires on", "expire date", "expire", "paid-till", "renewal date", "validity",
		"valid until", "expiration time",
		"domain expires", "exp date", "expires date", "domain expiration date")
	date(func(r *whoisReply) *time.Time { return &r.Dates.RegistrarExpires }, "registrar registration expiration date")
	date(func(r *whoisReply) *time.Time { return &r.Dates.Transferred }, "transfer date", "transferred",
		"last transferred")
	on((*whoisReply).setStatus, "domain status", "status", "state", "eppstatus", "registration status", "domaintype")
	on((*whoisReply).setHost, "name server", "nserver", "nameserver", "nameservers", "name servers", "domain nameservers",
		"domain servers in listed order", "domain name servers", "dns", "dns servers", "name servers information",
		"host name",
		"ns 1", "ns 2", "ns 3", "ns 4", "nameserver 1", "nameserver 2", "nameserver 3", "nameserver 4")
	on((*whoisReply).setSigned, "dnssec", "signed", "dnssec signed", "dnssec status")
	on((*whoisReply).setDS, "dnssec ds data", "ds record", "dsrecord", "ds", "ds-rdata", "ds rdata", "signing key",
		"dnskey", "keys")
	on(func(r *whoisReply, v string) {
		if strings.EqualFold(v, "yes") {
			r.addStatus("serverHold")
		}
	}, "hold")
	on((*whoisReply).setReferral, "registrar whois server", "whois server", "referralserver", "refer", "whois")
	return all
}()

func (r *whoisReply) setName(v string) {
	if words := strings.Fields(v); r.name == "" && len(words) > 0 {
		r.name = hostName(words[0])
	}
}

// nominetTag matches the suffix of registrar names in .uk.
var nominetTag = lazy(`\s*\[Tag = [^\]]*\]$`)

func (r *whoisReply) setRegistrar(v string) {
	r.Registrar.Name = cmp.Or(r.Registrar.Name, nominetTag().ReplaceAllString(clean(v), ""))
}

// setStatus also accepts lists: "REGISTERED, DELEGATED, VERIFIED".
func (r *whoisReply) setStatus(v string) {
	for _, word := range strings.Split(v, ",") {
		word = strings.TrimSpace(word)
		if i := strings.Index(word, " ("); i > 0 { // .co.jp: Connected (2027/03/31)
			if r.Dates.Expires.IsZero() {
				r.Dates.Expires = parseDate(strings.Trim(word[i:], " ()"))
			}
			word = word[:i]
		}
		r.addStatus(word)
	}
}

func (r *whoisReply) setHost(v string) {
	if words := strings.Fields(v); len(words) > 0 {
		r.addHost(hostName(words[0]), addrs(words[1:]))
	}
}

func (r *whoisReply) setSigned(v string) {
	switch words := strings.ToLower(v); {
	case r.DNSSEC.Known:
	case strings.HasPrefix(words, "unsigned"), strings.HasPrefix(words, "no"), words == "inactive", words == "false":
		r.DNSSEC.Known = true
	case strings.HasPrefix(words, "signed"), words == "yes", words == "active", words == "true":
		r.DNSSEC.Known, r.DNSSEC.Signed = true, true
	}
}

// number parses the number at the start of a text such as "8 [RSASHA256]".
func number(s string, bits int) (uint64, bool) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(words[0], 10, bits)
	return n, err == nil
}

package lab

import (
	"fmt"
	"strings"
	"time"
)

// answerWHOIS returns the reply of a WHOIS server to a query.
func (r *registry) answerWHOIS(host, query string) string {
	name := strings.ToLower(query)
	for _, before := range []string{"domain ", "-t dn,ace ", "domain = ", "="} {
		name = strings.TrimPrefix(name, before)
	}
	name = strings.Trim(strings.TrimSuffix(name, "/e"), ". ")
	if host == ianaWHOIS.host {
		return r.refer(name)
	}
	d := r.domains[name]
	if d == nil {
		return fmt.Sprintf("No match for domain %q.\n>>> Last update of whois database: %s <<<\n",
			strings.ToUpper(name), time.Now().UTC().Format(time.RFC3339))
	}
	return d.text(host)
}

// refer returns IANA's reply: the WHOIS server of a top-level domain.
func (r *registry) refer(name string) string {
	top := name[strings.LastIndex(name, ".")+1:]
	for _, t := range r.tlds {
		if t.name == top && t.whois.host != "" {
			return fmt.Sprintf("%% IANA WHOIS server of the lab\n\nrefer:        %s\n\ndomain:       %s\n\n"+
				"whois:        %[1]s\n\nstatus:       ACTIVE\nsource:       IANA\n", t.whois.host, strings.ToUpper(top))
		}
	}
	return "% IANA WHOIS server of the lab\n% This query returned 0 objects.\n"
}

// text returns a domain in the format of most registries. The registrar has more data than the registry.
func (d *registration) text(host string) string {
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", key, value)
		}
	}
	date := func(word string) string {
		if at, ok := d.dates[word]; ok {
			return at.Format(time.RFC3339)
		}
		return ""
	}
	line("Domain Name", strings.ToUpper(d.domain))
	line("Registry Domain ID", handle(d))
	line("Registrar WHOIS Server", d.registrar.whois.host)
	line("Updated Date", date("changed"))
	line("Creation Date", date("created"))
	if host == d.registrar.whois.host {
		line("Registrar Registration Expiration Date", date("closes"))
		line("Registrant Organization", "Example Widgets, Inc.")
		line("Registrant Email", "REDACTED FOR PRIVACY")
	}
	line("Registry Expiry Date", date("expires"))
	line("Registrar", d.registrar.name)
	line("Registrar IANA ID", fmt.Sprint(d.registrar.id))
	for _, s := range d.status {
		line("Domain Status", s+" https://icann.org/epp#"+s)
	}
	for _, ns := range d.ns {
		line("Name Server", strings.ToUpper(strings.TrimSuffix(ns, ".")))
	}
	if d.ds == "" {
		line("DNSSEC", "unsigned")
	} else {
		line("DNSSEC", "signedDelegation")
		_, data, _ := strings.Cut(d.ds, "\tDS\t")
		line("DNSSEC DS Data", data)
	}
	fmt.Fprintf(&b, ">>> Last update of WHOIS database: %s <<<\n\n"+
		"This is the WHOIS server of a lab. All data is fictitious.\n", time.Now().UTC().Format(time.RFC3339))
	return b.String()
}

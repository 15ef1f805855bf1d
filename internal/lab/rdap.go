package lab

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// object is a JSON object.
type object = map[string]any

// rdapPath is the path of the RDAP service on all RDAP servers.
const rdapPath = "/rdap/"

// ServeHTTP answers for all RDAP servers and for IANA's list of them (RFC 9224).
func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	host := strings.ToLower(req.Host)
	if host == ianaRDAP.host && req.URL.Path == "/rdap/dns.json" {
		reply(w, http.StatusOK, r.bootstrap())
		return
	}
	name, ok := strings.CutPrefix(req.URL.Path, rdapPath+"domain/")
	if !ok {
		reply(w, http.StatusNotFound, problem(http.StatusNotFound, "only domains are supported"))
		return
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	d := r.domains[name]
	if d == nil || !r.knows(host, d) {
		reply(w, http.StatusNotFound, problem(http.StatusNotFound, "no such domain"))
		return
	}
	if d.behavior == "busy" || d.behavior == "hesitant" && r.first(host+" "+name) {
		w.Header().Set("Retry-After", retryAfter[d.behavior])
		reply(w, http.StatusTooManyRequests, problem(http.StatusTooManyRequests, "retry later"))
		return
	}
	reply(w, http.StatusOK, r.describe(host, d))
}

// retryAfter has the Retry-After values of busy servers in seconds.
var retryAfter = map[string]string{"busy": "3600", "hesitant": "1"}

// first reports whether something is requested for the first time.
func (r *registry) first(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.seen[what]
	r.seen[what] = true
	return !was
}

// knows reports whether a host has data about a domain, as its registry or as its registrar.
func (r *registry) knows(host string, d *registration) bool {
	if host == d.registrar.rdap.host {
		return true
	}
	return slices.ContainsFunc(r.tlds, func(t *tld) bool {
		return t.rdap.host == host && strings.HasSuffix(d.domain, "."+t.name)
	})
}

// bootstrap returns the file by which clients find the RDAP server of a top-level domain (RFC 9224 §3).
func (r *registry) bootstrap() object {
	services := []any{}
	for _, t := range r.tlds {
		if t.rdap.host != "" {
			services = append(services, []any{[]string{t.name}, []string{"https://" + t.rdap.host + rdapPath}})
		}
	}
	return object{"version": "1.0", "publication": time.Now().UTC().Format(time.RFC3339),
		"description": "RDAP servers of the lab", "services": services}
}

func reply(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/rdap+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func problem(status int, title string) object {
	return object{"rdapConformance": []string{"rdap_level_0"}, "errorCode": status, "title": title}
}

// actions maps dates to the event actions of RDAP (RFC 9083 §10.2.3).
var actions = []struct{ word, action string }{
	{"created", "registration"}, {"changed", "last changed"}, {"expires", "expiration"},
	{"closes", "registrar expiration"},
}

// describe returns a domain in the format of RFC 9083 §5.3.
func (r *registry) describe(host string, d *registration) object {
	url := "https://" + host + rdapPath + "domain/" + d.domain
	out := object{
		"objectClassName": "domain", "handle": handle(d), "ldhName": strings.ToUpper(d.domain),
		"rdapConformance": []string{"rdap_level_0"},
		"links":           []object{{"value": url, "rel": "self", "href": url, "type": "application/rdap+json"}},
		"status":          spaced(d.status), "entities": []object{d.registrar.entity()}, "secureDNS": d.secureDNS(),
		"notices": []object{{"title": "Terms of Use",
			"description": []string{"This is the registry of a lab. All data is fictitious."}}},
	}
	if other := d.registrar.rdap.host; other != "" && other != host {
		link := "https://" + other + rdapPath + "domain/" + d.domain
		out["links"] = append(out["links"].([]object), object{"value": url, "rel": "related", "href": link,
			"type": "application/rdap+json"})
	}
	events := []object{{"eventAction": "last update of RDAP database", "eventDate": time.Now().UTC().Format(time.RFC3339)}}
	for _, a := range actions {
		if at, ok := d.dates[a.word]; ok && (a.word != "closes" || host == d.registrar.rdap.host) {
			events = append(events, object{"eventAction": a.action, "eventDate": at.Format(time.RFC3339)})
		}
	}
	out["events"] = events
	var servers []object
	for _, ns := range d.ns {
		host := strings.ToUpper(strings.TrimSuffix(ns, "."))
		servers = append(servers, object{"objectClassName": "nameserver", "ldhName": host})
	}
	out["nameservers"] = servers
	if r.rdap[host].behavior == "odd" {
		out["notices"] = object{"title": "Terms of Use", "description": "an object instead of a list"}
		if len(d.status) == 1 {
			out["status"] = spaced(d.status)[0]
		}
	}
	return out
}

func handle(d *registration) string { return fmt.Sprintf("%d_DOMAIN-LAB", len(d.domain)*7919) }

// spaced converts EPP statuses to the form of RDAP (RFC 8056 §2): clientHold becomes "client hold".
func spaced(status []string) []string {
	out := []string{}
	for _, s := range status {
		var b strings.Builder
		for i, c := range s {
			if 'A' <= c && c <= 'Z' {
				if i > 0 {
					b.WriteByte(' ')
				}
				c += 'a' - 'A'
			}
			b.WriteRune(c)
		}
		out = append(out, strings.ReplaceAll(b.String(), "ok", "active"))
	}
	return out
}

func (r registrar) entity() object {
	return object{"objectClassName": "entity", "roles": []string{"registrar"}, "handle": fmt.Sprint(r.id),
		"publicIds":  []object{{"type": "IANA Registrar ID", "identifier": fmt.Sprint(r.id)}},
		"vcardArray": []any{"vcard", [][]any{{"version", object{}, "text", "4.0"}, {"fn", object{}, "text", r.name}}}}
}

// secureDNS returns the DS record that the registry has. It can differ from the one in the zone of the TLD.
func (d *registration) secureDNS() object {
	rec, _ := dns.NewRR(d.ds) // nil for an empty text
	ds, ok := rec.(*dns.DS)
	if !ok {
		return object{"delegationSigned": false}
	}
	return object{"delegationSigned": true,
		"dsData": []object{{"keyTag": ds.KeyTag, "algorithm": ds.Algorithm, "digestType": ds.DigestType,
			"digest": strings.ToUpper(ds.Digest)}}}
}

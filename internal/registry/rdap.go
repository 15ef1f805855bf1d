package registry

import (
	"cmp"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// rdapReply is an RDAP reply about a domain.
type rdapReply struct {
	Registration
	name    string   // name of the domain; empty if the reply has none
	related []string // URLs of further RDAP replies about the domain, at the registrar
	code    uint64   // error code
}

var errNotDomain = errors.New("the reply is not about a domain")

// parseRDAP parses an RDAP reply (RFC 9083).
func parseRDAP(body []byte) (rdapReply, error) {
	top, err := parseJSON(body)
	if err != nil {
		return rdapReply{}, err
	}
	var r rdapReply
	data := top.get("ldhName").exists() || top.get("nameservers").exists() || top.get("events").exists()
	if r.code, _ = top.get("errorCode").number(16); r.code != 0 && !data {
		return r, nil
	}
	r.code = 0 // some servers send an error about too many queries together with the data
	// Some servers omit the class.
	if class := top.get("objectClassName").word(); class != "domain" && (class != "" || !data) {
		return r, errNotDomain
	}
	r.name = rdapName(top)
	r.Handle = top.get("handle").text()
	for _, s := range top.get("status").list() {
		r.addStatus(s.text())
	}
	for _, e := range top.get("events").list() {
		r.addEvent(e.get("eventAction").word(), parseDate(e.get("eventDate").text()))
	}
	for _, ns := range top.get("nameservers").list() {
		r.addHost(cmp.Or(rdapName(ns), hostName(ns.text())), rdapAddrs(ns.get("ipAddresses")))
	}
	r.DNSSEC = rdapDNSSEC(top.get("secureDNS"))
	for _, e := range top.get("entities").list() {
		r.addEntity(e, 0)
	}
	for _, l := range top.get("links").list() {
		r.addLink(l)
	}
	return r, nil
}

// rdapName returns the name of a domain or a name server. Some servers send U-labels instead of A-labels.
func rdapName(n node) string {
	for _, key := range []string{"ldhName", "unicodeName"} {
		s := n.get(key).text()
		if name := hostName(s); name != "" {
			return name
		}
		if name, err := dnsname.Parse(s); err == nil && s != "" {
			if ascii, err := ascii(name); err == nil {
				return hostName(ascii.String())
			}
		}
	}
	return ""
}

func rdapAddrs(n node) []netip.Addr {
	var words []string
	for _, a := range slices.Concat(n.get("v4").list(), n.get("v6").list()) {
		words = append(words, a.text())
	}
	return addrs(words)
}

// addrs returns the words that are IP addresses.
func addrs(words []string) (found []netip.Addr) {
	for _, w := range words {
		a, err := netip.ParseAddr(strings.Trim(w, "[](),;"))
		if err == nil && a.Zone() == "" && !slices.Contains(found, a) {
			found = append(found, a)
		}
	}
	return found
}

func (r *Registration) addStatus(word string) {
	s := StatusOf(word)
	if s.Code != "" && !r.Has(s.Code) && len(r.Statuses) < maxList {
		r.Statuses = append(r.Statuses, s)
	}
}

// addHost adds a name server, or adds addresses to a known one. Some registries write one line per address.
func (r *Registration) addHost(name string, addrs []netip.Addr) {
	i := slices.IndexFunc(r.Nameservers, func(h Host) bool { return h.Name == name })
	switch {
	case name == "" || len(r.Nameservers) >= maxList:
	case i < 0:
		r.Nameservers = append(r.Nameservers, Host{name, addrs})
	default:
		for _, a := range addrs {
			if h := &r.Nameservers[i]; !slices.Contains(h.Addrs, a) && len(h.Addrs) < maxList {
				h.Addrs = append(h.Addrs, a)
			}
		}
	}
}

// addEvent keeps the first date of each kind, except for transfers: there it keeps the last.
func (r *Registration) addEvent(action string, at time.Time) {
	first := func(t *time.Time) {
		if t.IsZero() {
			*t = at
		}
	}
	switch action {
	case "registration":
		first(&r.Dates.Created)
	case "last changed":
		first(&r.Dates.Updated)
	case "expiration":
		first(&r.Dates.Expires)
	case "registrar expiration":
		first(&r.Dates.RegistrarExpires)
	case "transfer":
		if at.After(r.Dates.Transferred) {
			r.Dates.Transferred = at
		}
	}
}

// rdapDNSSEC reads the secureDNS object. DS or key data implies a signed delegation, whatever delegationSigned says.
func rdapDNSSEC(n node) (d DNSSEC) {
	d.Signed, d.Known = n.get("delegationSigned").truth()
	for _, ds := range n.get("dsData").list() {
		tag, tagOK := ds.get("keyTag").number(16)
		algorithm, algorithmOK := ds.get("algorithm").number(8)
		digestType, typeOK := ds.get("digestType").number(8)
		digest := hexDigest(ds.get("digest").text())
		if tagOK && algorithmOK && typeOK && digest != "" {
			d.DS = append(d.DS, DS{uint16(tag), uint8(algorithm), uint8(digestType), digest})
		}
	}
	for _, key := range n.get("keyData").list() {
		flags, flagsOK := key.get("flags").number(16)
		protocol, protocolOK := key.get("protocol").number(8)
		algorithm, algorithmOK := key.get("algorithm").number(8)
		public := strings.ReplaceAll(key.get("publicKey").text(), " ", "")
		if flagsOK && protocolOK && algorithmOK && public != "" {
			d.Keys = append(d.Keys, Key{uint16(flags), uint8(protocol), uint8(algorithm), public})
		}
	}
	if len(d.DS)+len(d.Keys) > 0 {
		d.Known, d.Signed = true, true
	}
	return d
}

// hexDigest returns a digest in upper case without spaces, or "" if it is not hexadecimal.
func hexDigest(s string) string {
	s = strings.ToUpper(strings.ReplaceAll(s, " ", ""))
	if strings.Trim(s, "0123456789ABCDEF") != "" {
		return ""
	}
	return s
}

// addLink keeps a link to the RDAP reply of the registrar. Links to its web page can also have the relation
// "related".
func (r *rdapReply) addLink(l node) {
	rel, href := l.get("rel").word(), l.get("href").text()
	if rel != "related" || len(r.related) >= maxList {
		return
	}
	u, err := url.Parse(href)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return
	}
	if l.get("type").word() == "application/rdap+json" || strings.Contains(strings.ToLower(u.Path), "/domain/") {
		r.related = append(r.related, u.String())
	}
}

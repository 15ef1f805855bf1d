package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// problem is a setting with an invalid value.
type problem struct{ key, reason string }

// Validate checks values that did not come from a file, but from flags.
func (c Config) Validate() error {
	var errs []error
	for _, p := range c.problems() {
		errs = append(errs, fmt.Errorf("%s: %s", p.key, p.reason))
	}
	return errors.Join(errs...)
}

// problems returns all invalid values.
func (c Config) problems() []problem {
	var v checker
	v.need(c.Data != "", "data", "must name a directory")
	for i, s := range c.NAT64 {
		_, err := specialaddr.ParseNAT64(s)
		v.need(err == nil, fmt.Sprintf("nat64[%d]", i),
			"must be an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, such as 2001:db8:64::/96")
	}
	v.oneOf("log.format", c.Log.Format, "text", "json")
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.dns(c.DNS)
	v.http(c.HTTP)
	v.apps(c.Apps, c.HTTP.TLS)
	v.mep(c.MEP, c.HTTP.TLS)
	v.webhook(c.Webhook, c.HTTP.TLS)
	v.forward(c.Forward)
	v.transfer(c.Transfer)
	v.follow(c.Follow)
	v.mec(c.MEC)
	v.explain(c.Explain)
	v.positive("journal.changes", c.Journal.Changes)
	v.designate(c.Designate)
	return v.found
}

// checker collects problems.
type checker struct{ found []problem }

// need records a problem unless ok is set. Checks continue after a problem, so that one run shows all of them.
func (v *checker) need(ok bool, key, reason string) {
	if !ok {
		v.found = append(v.found, problem{key, reason})
	}
}

func (v *checker) oneOf(key, value string, allowed ...string) {
	v.need(slices.Contains(allowed, value), key, "must be one of "+strings.Join(allowed, ", "))
}

func (v *checker) positive(key string, value int) {
	v.need(value >= 1, key, "must be at least 1")
}

// within checks that a duration is in a range. The message shows the least value as an example of the syntax.
func (v *checker) within(key string, d, least, most time.Duration) {
	v.need(least <= d && d <= most, key, fmt.Sprintf("must be a time from %s to %s, such as %s", least, most, least))
}

func (v *checker) networks(key string, texts []string) {
	for i, s := range texts {
		_, err := parseNetwork(s)
		v.need(err == nil, fmt.Sprintf("%s[%d]", key, i), "must be an address or a network, such as 192.0.2.0/24")
	}
}

// server checks the address of a DNS server, and reports whether it is valid.
func (v *checker) server(key, text string) (resolve.Server, bool) {
	s, err := resolve.ParseServer(text)
	v.need(err == nil, key,
		"must be an address, such as 127.0.0.1:53, tcp://192.0.2.1:53 or tls://192.0.2.1:853#dns.example.org")
	return s, err == nil
}

func (v *checker) dns(d DNS) {
	v.need(len(d.Listen) > 0, "dns.listen", "must have at least one address")
	v.dnsAddresses("dns.listen", d.Listen, len(d.Proxies) > 0)
	v.dnsAddresses("dns.tls", d.TLS, len(d.Proxies) > 0)
	v.need((d.Cert == "") == (d.Key == ""), "dns.cert", "needs dns.key, and dns.key needs dns.cert")
	for i, a := range d.HTTPS {
		v.address(fmt.Sprintf("dns.https[%d]", i), a)
	}
	for i, a := range d.QUIC {
		v.address(fmt.Sprintf("dns.quic[%d]", i), a)
	}
	v.need(len(d.TLS)+len(d.HTTPS)+len(d.QUIC) == 0 || d.Cert != "", "dns.cert",
		"must name a certificate for dns.tls, dns.https and dns.quic")
	v.networks("dns.proxies", d.Proxies)
	v.need(512 <= d.UDPSize && d.UDPSize <= 4096, "dns.udp_size", "must be from 512 to 4096")
	// With these limits, the largest question with all options fits a reply of 512 bytes.
	v.need(len(d.Version) <= 200, "dns.version", "must be at most 200 bytes")
	v.need(len(d.NSID) <= 128, "dns.nsid", "must be at most 128 bytes")
	v.networks("dns.rrl.exempt", d.RRL.Exempt)
	v.positive("dns.tcp.max_connections", d.TCP.MaxConnections)
	v.positive("dns.tcp.max_per_client", d.TCP.MaxPerClient)
}

// dnsAddresses checks the addresses of a DNS listener. proxies says whether the networks of proxies are known.
func (v *checker) dnsAddresses(key string, addresses []string, proxies bool) {
	for i, a := range addresses {
		k := fmt.Sprintf("%s[%d]", key, i)
		rest, proxied := strings.CutPrefix(a, "proxy://")
		v.address(k, rest)
		v.need(!proxied || proxies, k, "requires dns.proxies: the networks of the proxies whose headers are trusted")
	}
}

func (v *checker) http(h HTTP) {
	v.address("http.listen", h.Listen)
	if h.PublicURL != "" {
		u, err := url.Parse(h.PublicURL)
		ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Trim(u.Path, "/") == "" &&
			u.RawQuery == "" && u.User == nil && u.Fragment == ""
		v.need(ok, "http.public_url", "must be http:// or https:// and a host, such as https://dns.example.org")
	}
	v.need((h.TLS.Cert == "") == (h.TLS.Key == ""), "http.tls", "needs both cert and key")
	v.need(h.TLS.ClientCA == "" || h.TLS.Cert != "", "http.tls.client_ca", "needs cert and key as well")
	v.need(h.MaxImport >= 4096, "http.max_import", "must be at least 4KiB")
}

func (v *checker) designate(d Designate) {
	v.need(len(d.Nameservers) > 0, "designate.nameservers", "must have at least one name")
	for i, s := range d.Nameservers {
		_, err := dnsname.Parse(s)
		v.need(err == nil && strings.HasSuffix(s, "."), fmt.Sprintf("designate.nameservers[%d]", i),
			"must be a name that ends with a dot, such as ns1.example.org.")
	}
	const most = 1<<31 - 1 // RFC 2181 §8
	v.need(d.MinTTL <= most, "designate.min_ttl", "must be at most 2147483647")
	v.need(d.MinTTL <= d.DefaultTTL && 0 < d.DefaultTTL && d.DefaultTTL <= most, "designate.default_ttl",
		"must be at least 1 and min_ttl, and at most 2147483647")
	for _, q := range []struct {
		key   string
		value Limit
	}{
		{"zones", d.Quotas.Zones}, {"zone_recordsets", d.Quotas.ZoneRecordsets}, {"zone_records", d.Quotas.ZoneRecords},
		{"recordset_records", d.Quotas.RecordsetRecords},
	} {
		v.need(q.value == Unlimited || q.value > 0, "designate.quotas."+q.key, "must be greater than 0, or unlimited")
	}
}

// address checks IP:PORT, where the IP may be left out, and reports whether it is valid. Host names are not resolved.
func (v *checker) address(key, s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err == nil && host != "" && host != "localhost" {
		_, err = netip.ParseAddr(host)
	}
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	v.need(err == nil, key, "must be IP:PORT, such as 127.0.0.1:53, [::1]:53 or :53 for all addresses")
	return err == nil
}

package check

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// fail returns a finding that the check failed. Without a severity, Judge sets the severity of the check.
func fail(severity explain.Severity, actor explain.Actor, subject, format string, args ...any) explain.Finding {
	return explain.Finding{Status: explain.Fail, Severity: severity, Actor: actor, Subject: subject,
		Words: fmt.Sprintf(format, args...)}
}

// pass returns a finding that the check passed.
func pass(subject, format string, args ...any) []explain.Finding {
	return []explain.Finding{{Status: explain.Pass, Subject: subject, Words: fmt.Sprintf(format, args...)}}
}

// unknown returns a finding that the check could not be made. It has no fix, because nothing is known to be wrong.
func unknown(subject, format string, args ...any) []explain.Finding {
	return []explain.Finding{{Status: explain.NotKnown, Subject: subject, Words: fmt.Sprintf(format, args...)}}
}

// text returns a name without its final dot.
func text(n dnsname.Name) string {
	if n.IsRoot() {
		return "the root" // "." would end the sentence
	}
	return words.Name(n)
}

func texts(names []dnsname.Name) []string { return words.Each(names, text) }

// server returns the name and the address of a server.
func server(s explain.Server) string { return fmt.Sprintf("%s (%s)", text(s.Host), s.Addr) }

// serverAt returns the same for an address, or only the address if it is no known server of the zone.
func serverAt(f *explain.Facts, zone dnsname.Name, addr netip.Addr) string {
	if s, ok := find(f.Servers, func(s explain.Server) bool { return s.Zone == zone && s.Addr == addr }); ok {
		return server(s)
	}
	return addr.String()
}

// servers returns the names of several addresses, as serverAt does.
func servers(f *explain.Facts, zone dnsname.Name, addrs []netip.Addr) []string {
	return words.Each(addrs, func(a netip.Addr) string { return serverAt(f, zone, a) })
}

// sentence returns a text from another source, ending with exactly one dot.
func sentence(s string) string {
	if s = strings.TrimRight(s, ". "); s == "" {
		return "the reason is not known."
	}
	return s + "."
}

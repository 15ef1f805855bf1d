package check

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// fail is a finding that something is wrong. Without a severity it has the worst of its check.
func fail(severity explain.Severity, actor explain.Actor, subject, format string, args ...any) explain.Finding {
	return explain.Finding{Status: explain.Fail, Severity: severity, Actor: actor, Subject: subject, Words: fmt.Sprintf(format, args...)}
}

func pass(subject, format string, args ...any) []explain.Finding {
	return []explain.Finding{{Status: explain.Pass, Subject: subject, Words: fmt.Sprintf(format, args...)}}
}

func unknown(subject, format string, args ...any) []explain.Finding {
	return []explain.Finding{{Status: explain.NotKnown, Subject: subject, Words: fmt.Sprintf(format, args...)}}
}

// text is a name as people write it.
func text(n dnsname.Name) string {
	if n.IsRoot() {
		return "the root" // a dot ends sentences
	}
	return words.Name(n)
}

func texts(names []dnsname.Name) []string { return words.Each(names, text) }

// server is a server as people know it: its name, and its address.
func server(s explain.Server) string { return fmt.Sprintf("%s (%s)", text(s.Host), s.Addr) }

// serverAt is the same for one of which only the address is known.
func serverAt(f *explain.Facts, zone dnsname.Name, addr netip.Addr) string {
	if s, ok := find(f.Servers, func(s explain.Server) bool { return s.Zone == zone && s.Addr == addr }); ok {
		return server(s)
	}
	return addr.String()
}

func servers(f *explain.Facts, zone dnsname.Name, addrs []netip.Addr) []string {
	return words.Each(addrs, func(a netip.Addr) string { return serverAt(f, zone, a) })
}

// sentence is what somebody else wrote, with the dot that a sentence has.
func sentence(s string) string { return strings.TrimRight(s, ". ") + "." }

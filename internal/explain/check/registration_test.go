package check_test

import (
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

func expires(in time.Duration) func(*explain.Facts) {
	return func(f *explain.Facts) { reg(f).Dates.Expires = now.Add(in) }
}

func status(words ...string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		for _, w := range words {
			reg(f).Statuses = append(reg(f).Statuses, registry.StatusOf(w))
		}
	}
}

// registryDown makes RDAP and WHOIS both fail.
func registryDown(f *explain.Facts) {
	f.Registrations = []registry.Registration{{Domain: "example.org.", State: registry.Unknown,
		Why: "RDAP and WHOIS did not answer in time."}}
}

func free(f *explain.Facts) {
	f.Registrations = []registry.Registration{{Domain: "example.org.", State: registry.Free, Source: registry.RDAP}}
}

func registrationStories() []story {
	unknowns := func(ids ...string) (out []story) {
		for _, id := range ids {
			out = append(out, story{id, "RDAP and WHOIS are down", registryDown, "unknown", ""})
		}
		return out
	}
	return append([]story{
		{"REG01", "registered", nil, "pass", "is registered at Good Names."},
		{"REG01", "a name with a dot", func(f *explain.Facts) {
			f.Registrations[0].Registrar.Name = "Good Names, Inc."
		}, "pass", "example.org is registered at Good Names, Inc."},
		{"REG01", "the registry and the parent zone both say no", func(f *explain.Facts) {
			undelegated(f)
			free(f)
		}, "fail critical", "example.org is not registered, or is misspelled"},
		{"REG01", "both say no, but there is one like it",
			then(undelegated, free, similar("example.com", explain.NearSpelling)), "fail critical",
			"org does not have it. The similar name example.com exists."},
		{"REG01", "there is no such top-level domain", then(rootless, registryDown), "fail critical",
			"example.org cannot be registered: there is no top-level domain org."},
		{"REG01", "the registry says no, but it is delegated", free, "pass", ""},
		{"REG01", "the registry says no, and nobody else was asked", func(f *explain.Facts) {
			free(f)
			undelegated(f)
			unfound(f)
		}, "unknown", ""},
		{"REG01", "the registry is down, and the domain is delegated", registryDown, "pass", "is delegated"},
		{"REG01", "the registry is down, and the parent zone says no", func(f *explain.Facts) {
			undelegated(f)
			registryDown(f)
		}, "unknown", ""},
		{"REG01", "a public suffix", func(f *explain.Facts) { f.Domain = dnsname.Name{} }, "", ""},

		{"REG02", "200 days", nil, "pass", "in 200 days"},
		{"REG02", "29 days", expires(29 * days), "fail warning", "ends in 29 days, on 2026-12-14, according to the registry"},
		{"REG02", "15 days", expires(15 * days), "fail warning", ""},
		{"REG02", "8 days", expires(8 * days), "fail warning", ""},
		{"REG02", "7 days", expires(7 * days), "fail error", ""},
		{"REG02", "3 days", expires(3 * days), "fail error", ""},
		{"REG02", "1 day", expires(days), "fail critical", ""},
		{"REG02", "yesterday", expires(-days), "fail critical", "ended on 2026-11-14"},
		{"REG02", "the registrar's date is earlier", func(f *explain.Facts) {
			reg(f).Dates.RegistrarExpires = now.Add(5 * days)
		}, "fail error", "until when it is paid; the date of the registry is 2027-06-03"},
		{"REG02", "over, and it can only be restored", then(expires(-40*days), status("redemptionPeriod")), "fail critical",
			"ended on 2026-10-06, according to the registry. | It is too late to renew the domain"},
		{"REG02", "no dates", func(f *explain.Facts) { reg(f).Dates = registry.Dates{} }, "unknown", ""},

		{"REG03", "no hold", nil, "pass", ""},
		{"REG03", "clientHold", status("clientHold"), "fail critical", "The registrar switched the domain off"},
		{"REG03", "server hold", status("server hold"), "fail critical", "serverHold"},
		{"REG03", "inactive", status("inactive"), "fail critical", ""},
		{"REG04", "not deleted", nil, "pass", ""},
		{"REG04", "redemption", status("redemption period"), "fail critical", "higher price"},
		{"REG04", "pending delete", status("pendingDelete"), "fail critical", ""},

		{"REG05", "at rest", nil, "pass", ""},
		{"REG05", "pending", status("pending transfer"), "fail warning", "being transferred to another registrar"},
		{"REG05", "came three days ago", func(f *explain.Facts) {
			reg(f).Dates.Transferred = now.Add(-3 * days)
		}, "fail warning", "was transferred to its registrar, Good Names, on 2026-11-12, 3 days ago"},
		{"REG05", "another registrar than before", func(f *explain.Facts) {
			f.Past = []explain.Past{{At: now.Add(-30 * days), Registrar: "Old Names"}}
		}, "fail warning", "is registered at Good Names; on 2026-10-16 it was registered at Old Names"},

		{"REG06", "locked", nil, "pass", ""},
		{"REG06", "not locked", func(f *explain.Facts) {
			reg(f).Statuses = []registry.Status{registry.StatusOf("ok")}
		}, "fail notice", "not locked"},
		{"REG06", "a WHOIS server that returns little", func(f *explain.Facts) {
			reg(f).Source, reg(f).Confidence, reg(f).Statuses = registry.WHOIS, "medium",
				[]registry.Status{registry.StatusOf("connect")}
		}, "unknown", ""},

		{"REG07", "the same", nil, "pass", ""},
		{"REG07", "others", func(f *explain.Facts) {
			reg(f).Nameservers = []registry.Host{{Name: "ns1.new.net."}}
		}, "fail warning", "The registry lists ns1.new.net for example.org, but org hands out ns2.example.net and " +
			"ns1.example.org."},
		{"REG07", "one server of the parent zone is late", func(f *explain.Facts) {
			zoneOf(f).ParentNS = append(zoneOf(f).ParentNS, nsSet(3600, "ns1.old.net"))
		}, "pass", ""},
		{"REG07", "none published", func(f *explain.Facts) { reg(f).Nameservers = nil }, "unknown", ""},

		{"REG08", "the same", nil, "pass", ""},
		{"REG08", "another one", func(f *explain.Facts) { sec(f).DS[0].KeyTag = 8 }, "fail error", "DS for key 7"},
		{"REG08", "not there yet", func(f *explain.Facts) { *sec(f) = unsigned() }, "fail error", "does not have it"},
		{"REG08", "still there", func(f *explain.Facts) {
			reg(f).DNSSEC = registry.DNSSEC{Known: true}
		}, "fail error", "still has the DS"},
		{"REG08", "only published that it is signed", func(f *explain.Facts) { reg(f).DNSSEC.DS = nil }, "pass", ""},
		{"REG08", "the DS was not seen", func(f *explain.Facts) {
			*sec(f) = secure.Zone{Name: name("example.org"), State: secure.Unknown, Cause: secure.NotSeen}
		}, "unknown", ""},

		{"REG09", "answered", nil, "pass", "by RDAP"},
		{"REG09", "RDAP and WHOIS are down", registryDown, "unknown", "did not answer in time"},
		{"REG09", "not asked", func(f *explain.Facts) { f.Registrations = nil }, "unknown", ""},
	}, unknowns("REG02", "REG03", "REG04", "REG05", "REG06", "REG07", "REG08")...)
}

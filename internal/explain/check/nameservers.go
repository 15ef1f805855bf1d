package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// perHost judges each nameserver of each zone by its name. judge returns no finding for a host that is well.
func perHost(f *explain.Facts, ok string, judge func(z iterate.Zone, h iterate.Host) []explain.Finding) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding {
		var all []explain.Finding
		for _, h := range z.Hosts {
			all = append(all, judge(z, h)...)
		}
		switch {
		case len(all) > 0:
			return worst(all)
		case len(z.Hosts) == 0:
			return unknown(text(z.Name), "The nameservers of %s are not known.", text(z.Name))
		}
		return pass(text(z.Name), ok, text(z.Name))
	})
}

// left is how bad it is that a nameserver cannot be found: some users wait for another one, or all get nothing.
func left(z iterate.Zone) explain.Severity {
	if slices.ContainsFunc(z.Hosts, func(h iterate.Host) bool { return len(h.Addrs()) > 0 }) {
		return explain.Error
	}
	return explain.Critical
}

func glued(f *explain.Facts) []explain.Finding {
	return perHost(f, "Resolvers get the addresses of the nameservers inside %s with the delegation.", func(z iterate.Zone, h iterate.Host) []explain.Finding {
		parent, _ := iterate.Join(z.ParentNS)
		if z.Hidden || !h.Name.IsIn(z.Name) || !slices.Contains(parent, h.Name) || len(h.Glue) > 0 {
			return nil
		}
		if _, slip := doubled(h.Name, z.Name); slip && len(h.Found) == 0 {
			return nil // DEL11 says what it is
		}
		ns, zone := text(h.Name), text(z.Name)
		x := fail(left(z), who(f, z.Name, explain.Registrar), ns, "%s is a nameserver of %s with a name inside of it, and %s does not hand out its address.", ns, zone, text(z.Parent))
		if len(h.Found) > 0 {
			x.Fix = fmt.Sprintf("Add the host record %s with the address %s at your registrar.", ns, words.Some(addrTexts(h.Found)))
		}
		x.Visible = nsVisible(f, z)
		return []explain.Finding{x}
	})
}

func addrTexts(addrs []netip.Addr) []string { return words.Each(addrs, netip.Addr.String) }

func sameGlue(f *explain.Facts) []explain.Finding {
	return perHost(f, "The addresses that come with the delegation of %s are those of its nameservers.", func(z iterate.Zone, h iterate.Host) []explain.Finding {
		if len(h.Glue) == 0 || z.Hidden || z.Name.IsRoot() {
			return nil
		}
		ns := text(h.Name)
		if len(h.Found) == 0 {
			if h.Problem != "" || !h.Name.IsIn(z.Name) {
				return nil // what there is to say about it, others say; glue of others' names is not asked for again
			}
			if evidence := deniedIn(f, z, h.Name); evidence != nil {
				x := fail(explain.Notice, who(f, z.Name, explain.DNSHost), ns, "%s hands out an address for %s, but %s itself says that there is no such name.", text(z.Parent), ns, text(z.Name))
				x.Fix = fmt.Sprintf("Add the address records of %s to the zone, or take it out of the list of nameservers at your registrar.", ns)
				return []explain.Finding{seen(x, evidence)}
			}
			return unknown(ns, "What address %s has by its own zone could not be found out.", ns)
		}
		var old, gone []netip.Addr
		for _, family := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
			glue, found := only(h.Glue, family), only(h.Found, family)
			if len(glue) > 0 && len(found) > 0 { // a family that the one side leaves out is not handed out wrongly
				old, gone = append(old, without(glue, found)...), append(gone, without(found, glue)...)
			}
		}
		above := text(z.Parent)
		var x explain.Finding
		switch {
		case len(old) > 0:
			x = fail("", who(f, z.Name, explain.Registrar), ns, "%s hands out %s for %s, but its own zone says %s.", above, words.Some(addrTexts(old)), ns, words.Some(addrTexts(h.Found)))
			x.Fix = fmt.Sprintf("Change the host record %s at your registrar from %s to %s, and leave the old address answering until all have the new one.", ns, words.Some(addrTexts(old)), words.Some(addrTexts(h.Found)))
		case len(gone) > 0:
			x = fail(explain.Warning, who(f, z.Name, explain.Registrar), ns, "%s has the address %s as well, which %s does not hand out.", ns, words.Some(addrTexts(gone)), above)
			x.Fix = fmt.Sprintf("Add %s to the host record %s at your registrar.", words.Some(addrTexts(gone)), ns)
		default:
			return nil
		}
		x.Visible = nsVisible(f, z)
		return []explain.Finding{x}
	})
}

// deniedIn are the replies of a zone's servers that a name of it does not exist.
func deniedIn(f *explain.Facts, z iterate.Zone, name dnsname.Name) (evidence []int) {
	for i, e := range f.Exchanges {
		if e.Zone == z.Name && e.Question.Name == name && e.Class == iterate.NXDomain {
			evidence = append(evidence, i)
		}
	}
	return evidence
}

func nsNotAlias(f *explain.Facts) []explain.Finding {
	return perHost(f, "No name of a nameserver of %s is an alias.", func(z iterate.Zone, h iterate.Host) []explain.Finding {
		ns := text(h.Name)
		target, evidence := aliasAt(f, h.Name)
		switch {
		case target != "" || h.Problem == "is an alias":
			words := ""
			if target != "" {
				words = " for " + strings.TrimSuffix(target, ".")
			}
			x := fail("", who(f, z.Name, explain.DNSHost), ns, "%s is listed as a nameserver of %s, but it is an alias (CNAME)%s. Many resolvers do not follow it.", ns, text(z.Name), words)
			x.Visible = nsVisible(f, z)
			return []explain.Finding{seen(x, evidence)}
		case h.Problem == "not looked up" || h.Problem == "could not be looked up":
			return unknown(ns, "%s %s.", ns, h.Problem)
		}
		return nil
	})
}

// aliasAt is what a CNAME at a name leads to, as far as a reply shows it.
func aliasAt(f *explain.Facts, name dnsname.Name) (target string, evidence []int) {
	for i, e := range f.Exchanges {
		if e.Question.Name != name || e.Class != iterate.Answer {
			continue
		}
		v, err := e.View()
		if err != nil {
			continue
		}
		if alias := iterate.Records(v.Answer, name, rr.TypeCNAME); len(alias) > 0 {
			return alias[0].Text(), []int{i}
		}
	}
	return "", nil
}

func nsResolve(f *explain.Facts) []explain.Finding {
	return perHost(f, "The name of every nameserver of %s leads to an address.", func(z iterate.Zone, h iterate.Host) []explain.Finding {
		ns, zone := text(h.Name), text(z.Name)
		if len(h.Addrs()) > 0 {
			return nil
		}
		x := fail(left(z), who(f, z.Name, explain.Registrar), ns, "")
		meant, slip := doubled(h.Name, z.Name)
		_, err := netip.ParseAddr(ns)
		switch {
		case err == nil:
			x.Words = fmt.Sprintf("%s is listed as a nameserver of %s: that is an address, where a name must be.", ns, zone)
			x.Fix = "Put the name of the nameserver there, and its address into the record of that name."
		case slip:
			short := strings.TrimSuffix(meant.String(), ".")
			x.Words = fmt.Sprintf("%s is listed as a nameserver of %s and does not exist: %s was appended to %s.", ns, zone, zone, short)
			x.Fix = fmt.Sprintf("Write the name with a dot at its end, %q, and not %q.", meant, short)
		case h.Problem == "no such name":
			x.Words = fmt.Sprintf("%s is listed as a nameserver of %s, but the name does not exist.", ns, zone)
		case h.Problem == "no address":
			x.Words = fmt.Sprintf("%s is listed as a nameserver of %s, but it has no address.", ns, zone)
		case h.Problem == "is an alias" || h.Problem == "no glue" || h.Problem == "loop":
			return nil // DEL10, DEL08 and DEL13
		default:
			return unknown(ns, "The address of %s could not be looked up.", ns)
		}
		x.Visible = nsVisible(f, z)
		return []explain.Finding{x}
	})
}

func nsRegistered(f *explain.Facts) []explain.Finding {
	if len(f.Registrations) == 0 {
		return nil
	}
	return perHost(f, "The domains of the nameservers of %s are registered.", func(z iterate.Zone, h iterate.Host) []explain.Finding {
		domain := registry.SuffixOf(h.Name).Domain
		if domain.IsZero() || domain == f.Domain {
			return nil // of the domain itself REG01 and REG02 tell
		}
		ns, name := text(h.Name), domain
		r, ok := registrationOf(f, name)
		switch end := r.Dates.Expires; {
		case !ok:
			return nil // not asked for
		case r.State == registry.Free && len(h.Addrs()) == 0:
			return []explain.Finding{fail(explain.Critical, who(f, z.Name, explain.Registrar), ns, "%s is a nameserver of %s, but the domain %s is not registered: anyone can register it and answer for %s.", ns, text(z.Name), text(name), text(z.Name))}
		case r.State != registry.Registered:
			return unknown(ns, "Whether %s, the domain of the nameserver %s, is registered could not be found out.", text(name), ns)
		case !end.IsZero() && end.Sub(f.At) <= 7*oneDay:
			return []explain.Finding{fail(explain.Error, explain.Registrar, ns, "%s is a nameserver of %s, and the registration of its domain %s ends on %s.", ns, text(z.Name), text(name), words.Day(end))}
		}
		return nil
	})
}

func noCircle(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding {
		zone := text(z.Name)
		loops := only(f.Notes, func(n iterate.Note) bool { return n.Kind == iterate.NoteNSLoop && n.Zone == z.Name })
		circle := words.Each(loops, func(n iterate.Note) string { return strings.TrimSuffix(n.Subject, ".") })
		open := slices.ContainsFunc(z.Hosts, func(h iterate.Host) bool {
			return h.Problem == "not looked up" || h.Problem == "could not be looked up"
		})
		switch {
		case len(circle) > 0:
			return []explain.Finding{fail(left(z), who(f, z.Name, explain.Registrar), zone, "The nameservers of %s cannot be found: one must know %s for that, which only these nameservers can tell.", zone, words.Some(circle))}
		case open || len(z.Hosts) == 0:
			return unknown(zone, "Not all nameservers of %s could be looked up.", zone)
		}
		return pass(zone, "The nameservers of %s can be found without asking themselves.", zone)
	})
}

func nsPublic(f *explain.Facts) []explain.Finding {
	return perHost(f, "All nameservers of %s have public addresses.", func(z iterate.Zone, h iterate.Host) (out []explain.Finding) {
		severity := explain.Critical
		for _, o := range z.Hosts {
			if slices.ContainsFunc(o.Addrs(), func(a netip.Addr) bool { return special(f, a) == "" }) {
				severity = explain.Error // there are others to ask
			}
		}
		for _, a := range h.Addrs() {
			if why := special(f, a); why != "" {
				x := fail(severity, who(f, z.Name, explain.DNSHost), text(h.Name), "%s, a nameserver of %s, has the address %s, which is %s: nobody can reach it from the internet.", text(h.Name), text(z.Name), a, why)
				x.Visible = nsVisible(f, z)
				out = append(out, x)
			}
		}
		return out
	})
}

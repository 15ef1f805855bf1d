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

// perHost runs judge for each nameserver name of each zone. judge returns no finding if the host passes.
func perHost(f *explain.Facts, ok string,
	judge func(z iterate.Zone, h iterate.Host) []explain.Finding) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding {
		var all []explain.Finding
		for _, h := range z.Hosts {
			all = append(all, judge(z, h)...)
		}
		switch {
		case len(all) > 0:
			// Unknown hosts hide behind failed ones: the finding about the failure is what the user needs.
			return worst(all)
		case len(z.Hosts) == 0:
			return unknown(text(z.Name), "The nameservers of %s are not known.", text(z.Name))
		}
		return pass(text(z.Name), ok, text(z.Name))
	})
}

// lossSeverity returns the severity of a nameserver that cannot be found: error if another one has an address,
// otherwise critical.
func lossSeverity(z iterate.Zone) explain.Severity {
	if slices.ContainsFunc(z.Hosts, func(h iterate.Host) bool { return len(h.Addrs()) > 0 }) {
		return explain.Error
	}
	return explain.Critical
}

// glued is check DEL08: Nameservers inside the zone come with their addresses. Without glue, a resolver would have to
// ask the zone for the addresses of its own servers. RFC 9471 therefore requires it in the referral.
func glued(f *explain.Facts) []explain.Finding {
	return perHost(f, "Resolvers get the addresses of the nameservers inside %s with the delegation.",
		func(z iterate.Zone, h iterate.Host) []explain.Finding {
			parent, _ := iterate.Join(z.ParentNS)
			// Hidden: the parent zone and the zone have the same servers, so no referral with glue was seen.
			if z.Hidden || !h.Name.IsIn(z.Name) || !slices.Contains(parent, h.Name) || len(h.Glue) > 0 {
				return nil
			}
			if _, slip := doubled(h.Name, z.Name); slip && len(h.Found) == 0 {
				return nil // DEL11 reports the missing dot
			}
			ns, zone := text(h.Name), text(z.Name)
			x := fail(lossSeverity(z), actorFor(f, z.Name, explain.Registrar), ns,
				"%s is a nameserver of %s with a name inside the zone, but %s does not hand out its address.", ns, zone,
				text(z.Parent))
			if len(h.Found) > 0 {
				x.Fix = fmt.Sprintf("Add the host record %s with the address %s at your registrar.", ns,
					words.Some(addrTexts(h.Found)))
			}
			x.Visible = nsVisible(f, z)
			return []explain.Finding{x}
		})
}

func addrTexts(addrs []netip.Addr) []string { return words.Each(addrs, netip.Addr.String) }

// sameGlue is check DEL09: The parent zone hands out the right addresses of the nameservers. Resolvers begin with the
// glue, and may replace it by the address in the zone, which ranks higher (RFC 2181 §5.4.1): users of one resolver can
// reach another server than users of the next.
func sameGlue(f *explain.Facts) []explain.Finding {
	return perHost(f, "The glue addresses in the delegation of %s are those of its nameservers.",
		func(z iterate.Zone, h iterate.Host) []explain.Finding {
			if len(h.Glue) == 0 || z.Hidden || z.Name.IsRoot() {
				return nil
			}
			ns := text(h.Name)
			if len(h.Found) == 0 {
				if h.Problem != "" || !h.Name.IsIn(z.Name) {
					return nil // other checks report the problem; glue for names in other zones is not compared
				}
				if evidence := deniedIn(f, z, h.Name); evidence != nil {
					x := fail(explain.Notice, actorFor(f, z.Name, explain.DNSHost), ns,
						"%s hands out an address for %s, but %s itself says that the name does not exist.", text(z.Parent), ns,
						text(z.Name))
					x.Fix = fmt.Sprintf("Add the address records of %s to the zone, or remove this nameserver at your registrar.", ns)
					return []explain.Finding{seen(x, evidence)}
				}
				return unknown(ns, "The address of %s in its own zone could not be determined.", ns)
			}
			// An old address is worse than a missing one: resolvers query a machine that may belong to somebody else by now.
			var old, gone []netip.Addr
			for _, family := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
				glue, found := only(h.Glue, family), only(h.Found, family)
				if len(glue) > 0 && len(found) > 0 { // a family that only one side has is not a contradiction
					old, gone = append(old, without(glue, found)...), append(gone, without(found, glue)...)
				}
			}
			above := text(z.Parent)
			var x explain.Finding
			switch {
			case len(old) > 0:
				x = fail("", actorFor(f, z.Name, explain.Registrar), ns, "%s hands out %s for %s, but its own zone says %s.", above,
					words.Some(addrTexts(old)), ns, words.Some(addrTexts(h.Found)))
				x.Fix = fmt.Sprintf("Change the host record %s at your registrar from %s to %s, and keep the old address "+
					"answering until everyone has the new one.", ns, words.Some(addrTexts(old)), words.Some(addrTexts(h.Found)))
			case len(gone) > 0:
				x = fail(explain.Warning, actorFor(f, z.Name, explain.Registrar), ns,
					"%s also has the address %s, which %s does not hand out.", ns, words.Some(addrTexts(gone)), above)
				x.Fix = fmt.Sprintf("Add %s to the host record %s at your registrar.", words.Some(addrTexts(gone)), ns)
			default:
				return nil
			}
			x.Visible = nsVisible(f, z)
			return []explain.Finding{x}
		})
}

// deniedIn returns the replies in which servers of the zone deny a name.
func deniedIn(f *explain.Facts, z iterate.Zone, name dnsname.Name) (evidence []int) {
	for i, e := range f.Exchanges {
		if e.Zone == z.Name && e.Question.Name == name && e.Class == iterate.NXDomain {
			evidence = append(evidence, i)
		}
	}
	return evidence
}

// nsNotAlias is check DEL10: No nameserver's name is an alias.
func nsNotAlias(f *explain.Facts) []explain.Finding {
	return perHost(f, "No name of a nameserver of %s is an alias.",
		func(z iterate.Zone, h iterate.Host) []explain.Finding {
			ns := text(h.Name)
			target, evidence := aliasAt(f, h.Name)
			switch {
			// RFC 2181 §10.3 forbids an alias as the target of an NS record.
			case target != "" || h.Problem == "is an alias":
				words := ""
				if target != "" {
					words = " for " + strings.TrimSuffix(target, ".")
				}
				x := fail("", actorFor(f, z.Name, explain.DNSHost), ns,
					"%s is listed as a nameserver of %s, but it is an alias (CNAME)%s. Many resolvers do not follow it.", ns,
					text(z.Name), words)
				x.Visible = nsVisible(f, z)
				return []explain.Finding{seen(x, evidence)}
			case h.Problem == "not looked up" || h.Problem == "could not be looked up":
				return unknown(ns, "%s %s.", ns, h.Problem)
			}
			return nil
		})
}

// aliasAt returns the target of a CNAME at a name, if a reply contains one.
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

// nsResolve is check DEL11: The name of every nameserver leads to an address. Resolvers try the other nameservers, so
// with a working one this costs time and redundancy only.
func nsResolve(f *explain.Facts) []explain.Finding {
	return perHost(f, "The name of every nameserver of %s leads to an address.",
		func(z iterate.Zone, h iterate.Host) []explain.Finding {
			ns, zone := text(h.Name), text(z.Name)
			if len(h.Addrs()) > 0 {
				return nil
			}
			x := fail(lossSeverity(z), actorFor(f, z.Name, explain.Registrar), ns, "")
			meant, slip := doubled(h.Name, z.Name)
			_, err := netip.ParseAddr(ns)
			switch {
			case err == nil:
				x.Words = fmt.Sprintf("%s is listed as a nameserver of %s: this is an address, but it must be a name.", ns, zone)
				x.Fix = "Enter the name of the nameserver, and put its address into the record of that name."
			// A missing final dot has its own fix.
			case slip:
				short := strings.TrimSuffix(meant.String(), ".")
				x.Words = fmt.Sprintf("%s is listed as a nameserver of %s and does not exist: %s was appended to %s.", ns, zone,
					zone, short)
				x.Fix = fmt.Sprintf("Write the name with a final dot, %q instead of %q.", meant, short)
			case h.Problem == "no such name":
				x.Words = fmt.Sprintf("%s is listed as a nameserver of %s, but the name does not exist.", ns, zone)
			case h.Problem == "no address":
				x.Words = fmt.Sprintf("%s is listed as a nameserver of %s, but it has no address.", ns, zone)
			case h.Problem == "is an alias" || h.Problem == "no glue" || h.Problem == "loop":
				return nil // DEL10, DEL08 and DEL13 report these
			default:
				return unknown(ns, "The address of %s could not be resolved.", ns)
			}
			x.Visible = nsVisible(f, z)
			return []explain.Finding{x}
		})
}

// nsRegistered is check DEL12: The domains of the nameservers are registered, and do not expire soon.
func nsRegistered(f *explain.Facts) []explain.Finding {
	if len(f.Registrations) == 0 {
		return nil
	}
	return perHost(f, "The domains of the nameservers of %s are registered.",
		func(z iterate.Zone, h iterate.Host) []explain.Finding {
			domain := registry.SuffixOf(h.Name).Domain
			if domain.IsZero() || domain == f.Domain {
				return nil // REG01 and REG02 report the domain itself
			}
			ns, name := text(h.Name), domain
			r, ok := registrationOf(f, name)
			switch end := r.Dates.Expires; {
			case !ok:
				return nil // the registry was not queried for it
			// A registry can be wrong about "free". Only together with a name that does not resolve it is a takeover.
			case r.State == registry.Free && len(h.Addrs()) == 0:
				return []explain.Finding{fail(explain.Critical, actorFor(f, z.Name, explain.Registrar), ns,
					"%s is a nameserver of %s, but the domain %s is not registered: anyone can register it and answer for %s.", ns,
					text(z.Name), text(name), text(z.Name))}
			case r.State != registry.Registered:
				return unknown(ns, "Whether %s, the domain of the nameserver %s, is registered could not be determined.",
					text(name), ns)
			// Seven days, as in REG02: less time than most owners need to reach a registrar.
			case !end.IsZero() && end.Sub(f.At) <= 7*oneDay:
				return []explain.Finding{fail(explain.Error, explain.Registrar, ns,
					"%s is a nameserver of %s, and the registration of its domain %s ends on %s.", ns, text(z.Name), text(name),
					words.Day(end))}
			}
			return nil
		})
}

// noCircle is check DEL13: The nameservers can be found without asking themselves. Two domains that are each served
// only by nameservers in the other one form such a circle, though each is correct by itself. Answers in caches can
// hide it for days.
func noCircle(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) []explain.Finding {
		zone := text(z.Name)
		loops := only(f.Notes, func(n iterate.Note) bool { return n.Kind == iterate.NoteNSLoop && n.Zone == z.Name })
		circle := words.Each(loops, func(n iterate.Note) string { return strings.TrimSuffix(n.Subject, ".") })
		// A host that was not looked up may be the one that breaks the circle.
		open := slices.ContainsFunc(z.Hosts, func(h iterate.Host) bool {
			return h.Problem == "not looked up" || h.Problem == "could not be looked up"
		})
		switch {
		case len(circle) > 0:
			return []explain.Finding{fail(lossSeverity(z), actorFor(f, z.Name, explain.Registrar), zone,
				"The nameservers of %s cannot be found: this requires %s, which only these nameservers know.", zone,
				words.Some(circle))}
		case open || len(z.Hosts) == 0:
			return unknown(zone, "Not all nameservers of %s could be resolved.", zone)
		}
		return pass(zone, "The nameservers of %s can be found without asking themselves.", zone)
	})
}

// nsPublic is check DEL14: All nameservers have public addresses. It is an error and not critical: the address may work
// where the name is used, and DEL05 reports servers that do not reply.
func nsPublic(f *explain.Facts) []explain.Finding {
	return perHost(f, "All nameservers of %s have public addresses.",
		func(z iterate.Zone, h iterate.Host) (out []explain.Finding) {
			for _, a := range h.Addrs() {
				if why := special(f, a); why != "" {
					x := fail("", actorFor(f, z.Name, explain.DNSHost), text(h.Name),
						"%s, a nameserver of %s, has the address %s, which is %s: nobody can reach it from the internet.", text(h.Name),
						text(z.Name), a, why)
					x.Visible = nsVisible(f, z)
					out = append(out, x)
				}
			}
			return out
		})
}

package lab

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/simnet"
)

// tld describes the registry of a top-level domain. Its lines are
//
//	rdap HOST ADDRESS [odd]    odd: JSON that violates RFC 9083
//	whois HOST ADDRESS
//
// Without an rdap line it is not on the list of IANA, and only WHOIS has its data.
type tld struct {
	name  string // without dots
	rdap  service
	whois service
}

// service is the address of a registry's server and its behavior.
type service struct {
	host     string
	addr     netip.Addr
	behavior string
}

// registration is the data of a registry about a domain. Its lines are
//
//	registrar NAME | IANA-ID | RDAP-HOST ADDRESS | WHOIS-HOST ADDRESS    the last two are optional
//	created, changed, expires, closes TIME   a date, or days from now: +20d; closes is the registrar's own expiry
//	status WORD, WORD...                     EPP statuses
//	ns NAME...
//	ds                                       the DS record of the key with which simnet signs the domain
//	rdap busy|hesitant                       replies with status 429; hesitant: only the first time
type registration struct {
	domain    string // with A-labels, without the final dot
	registrar registrar
	dates     map[string]time.Time
	status    []string
	ns        []string
	ds        string
	behavior  string // behavior of RDAP servers for this domain
}

type registrar struct {
	name        string
	id          int
	rdap, whois service
}

func parseService(words []string) (s service, err error) {
	if len(words) < 2 || len(words) > 3 {
		return s, fmt.Errorf("give a host and its address")
	}
	s.host = words[0]
	if s.addr, err = netip.ParseAddr(words[1]); err != nil {
		return s, err
	}
	s.behavior = strings.Join(words[2:], "")
	return s, nil
}

func (p *plan) addTLD(s section) (err error) {
	t := &tld{name: strings.Trim(s.args[0], ".")}
	for _, line := range s.lines {
		words := strings.Fields(line)
		switch words[0] {
		case "rdap":
			t.rdap, err = parseService(words[1:])
		case "whois":
			t.whois, err = parseService(words[1:])
		default:
			err = fmt.Errorf("%q is not a line of a tld section", words[0])
		}
		if err != nil {
			return err
		}
	}
	p.tlds = append(p.tlds, t)
	return nil
}

// addRegistration reads a section that makes a registration differ from the healthy one of registerOthers.
func (p *plan) addRegistration(s section) error {
	name, err := dnsname.Parse(s.args[0])
	if err != nil {
		return err
	}
	r := &registration{domain: strings.TrimSuffix(name.String(), "."), dates: map[string]time.Time{}}
	for _, line := range s.lines {
		word, rest, _ := strings.Cut(line, " ")
		if err := r.set(word, strings.TrimSpace(rest), name); err != nil {
			return err
		}
	}
	p.registrations[r.domain] = r
	return nil
}

// registerOthers adds registrations for delegated domains without a registration section. They are healthy and have
// the data of the parent zone.
func (p *plan) registerOthers() {
	given := slices.Collect(maps.Keys(p.registrations))
	for _, s := range p.servers {
		if !p.isParent(s.args) {
			continue
		}
		for _, line := range s.lines {
			words := strings.Fields(strings.ReplaceAll(line, ",", " "))
			switch {
			case len(words) > 3 && words[2] == "NS":
				if r := p.register(words[0], given); r != nil {
					r.ns = append(r.ns, words[3:]...)
				}
			case len(words) > 1 && words[0] == "ds":
				if r := p.register(words[1], given); r != nil {
					r.ds = simnet.Anchor(dnsname.MustParse(words[1]))
				}
			}
		}
	}
}

// isParent reports whether a section is for servers of a top-level domain.
func (p *plan) isParent(args []string) bool {
	groups := slices.Collect(maps.Values(parents))
	return slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(args, group) })
}

// register returns the registration of a domain and creates it if necessary. It returns nil if the domain has a
// registration section, or if the name is not a domain.
func (p *plan) register(owner string, given []string) *registration {
	name, err := dnsname.Parse(owner)
	domain := strings.TrimSuffix(owner, ".")
	if err != nil || name.NumLabels() != 2 || slices.Contains(given, domain) {
		return nil
	}
	r := p.registrations[domain]
	if r == nil {
		now := time.Now().UTC().Truncate(time.Second)
		r = &registration{domain: domain, registrar: registrar{name: "Example Registrar, LLC", id: 9999},
			status: []string{"clientTransferProhibited"},
			dates: map[string]time.Time{"created": now.AddDate(-8, 0, 0), "changed": now.AddDate(0, -3, 0),
				"expires": now.AddDate(1, 2, 0)}}
		p.registrations[domain] = r
	}
	return r
}

func (r *registration) set(word, rest string, name dnsname.Name) (err error) {
	switch word {
	case "registrar":
		r.registrar, err = parseRegistrar(rest)
	case "created", "changed", "expires", "closes":
		r.dates[word], err = parseTime(rest, time.Now())
	case "status":
		for s := range strings.SplitSeq(rest, ",") {
			r.status = append(r.status, strings.TrimSpace(s))
		}
	case "ns":
		r.ns = append(r.ns, strings.Fields(rest)...)
	case "ds":
		r.ds = simnet.Anchor(name)
	case "rdap":
		r.behavior = rest
	default:
		err = fmt.Errorf("%q is not a line of a registration section", word)
	}
	return err
}

func parseRegistrar(text string) (r registrar, err error) {
	parts := strings.Split(text, "|")
	if len(parts) < 2 {
		return r, fmt.Errorf("a registrar is NAME | IANA-ID")
	}
	r.name = strings.TrimSpace(parts[0])
	if r.id, err = strconv.Atoi(strings.TrimSpace(parts[1])); err != nil {
		return r, err
	}
	for i, to := range []*service{&r.rdap, &r.whois} {
		if words := strings.Fields(strings.Join(parts[min(2+i, len(parts)):min(3+i, len(parts))], "")); len(words) > 0 {
			if *to, err = parseService(words); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// parseTime parses a date, or a number of days from now.
func parseTime(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return now.UTC().Truncate(time.Second).AddDate(0, 0, n), err
	}
	return time.Parse(time.DateOnly, text)
}

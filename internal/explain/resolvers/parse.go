package resolvers

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// parser parses a list line by line.
type parser struct {
	list List
	line int
	open *Resolver      // the resolver that the lines belong to; nil before the first
	seen map[string]int // line numbers of IDs and addresses
}

// words are the settings of a resolver. Those that are alone take no value.
var words = map[string]struct {
	alone bool
	set   func(r *Resolver, value string) error
}{
	"operator":  {false, func(r *Resolver, v string) error { r.Operator = v; return nil }},
	"region":    {false, func(r *Resolver, v string) error { r.Region = v; return nil }},
	"country":   {false, setCountry},
	"dot":       {false, setDoT},
	"doh":       {false, func(r *Resolver, v string) (err error) { r.DoH, err = address(v); return err }},
	"flush":     {false, func(r *Resolver, v string) (err error) { r.Flush, err = address(v); return err }},
	"filters":   {true, func(r *Resolver, _ string) error { r.Filter, r.Vote = true, false; return nil }},
	"novote":    {false, func(r *Resolver, v string) error { r.Vote, r.Reason = false, v; return nil }},
	"ecs":       {true, func(r *Resolver, _ string) error { r.ECS = true; return nil }},
	"encrypted": {true, func(r *Resolver, _ string) error { r.Encrypted = true; return nil }},
	"max-ttl":   {false, func(r *Resolver, v string) (err error) { r.MaxTTL, err = seconds(v); return err }},
	"max-negative-ttl": {false, func(r *Resolver, v string) (err error) {
		r.MaxNegativeTTL, err = seconds(v)
		return err
	}},
	"checked": {false, func(r *Resolver, v string) error { r.Checked = v; return nil }},
}

func (p *parser) do(word, value string) error {
	switch word {
	case "date":
		if _, err := time.Parse(time.DateOnly, value); err != nil {
			return fmt.Errorf("%q is not a date; write it as 2026-11-15", value)
		}
		p.list.Date = value
		return nil
	case "resolver":
		return p.begin(value)
	}
	if p.open == nil {
		return fmt.Errorf("%q must come after a line \"resolver ID\"", word)
	}
	if word == "v4" || word == "v6" {
		return p.addresses(word == "v4", value)
	}
	w, ok := words[word]
	switch {
	case !ok:
		known := slices.Sorted(maps.Keys(words))
		return fmt.Errorf("%q is not a setting; use date, resolver, v4, v6, %s", word, strings.Join(known, ", "))
	case w.alone && value != "":
		return fmt.Errorf("%q takes no value, but has %q", word, value)
	case !w.alone && value == "":
		return fmt.Errorf("%q needs a value", word)
	}
	return w.set(p.open, value)
}

func (p *parser) begin(id string) error {
	if err := p.end(); err != nil {
		return err
	}
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("%q is not an ID; use lower-case letters, digits and hyphens", id)
	}
	if err := p.once(id); err != nil {
		return err
	}
	p.open = &Resolver{ID: id, Vote: true}
	return nil
}

// end completes the open resolver.
func (p *parser) end() error {
	r := p.open
	p.open = nil
	switch {
	case r == nil:
		return nil
	case len(r.V4)+len(r.V6) == 0 && r.DoH == "" && r.DoT == "":
		return fmt.Errorf("resolver %s has no address; give one with v4 or v6", r.ID)
	case r.Encrypted && r.DoT == "" && r.DoH == "":
		return fmt.Errorf("resolver %s is encrypted and has neither dot nor doh", r.ID)
	}
	p.list.Resolvers = append(p.list.Resolvers, *r)
	return nil
}

// once refuses a duplicate ID or address.
func (p *parser) once(what string) error {
	if line, twice := p.seen[what]; twice {
		return fmt.Errorf("%s is a duplicate of line %d", what, line)
	}
	p.seen[what] = p.line
	return nil
}

func (p *parser) addresses(v4 bool, value string) error {
	if value == "" {
		return errors.New("v4 and v6 need at least one address")
	}
	for _, text := range strings.Fields(value) {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return fmt.Errorf("%q is not an IP address", text)
		}
		if a.Is4() != v4 {
			return fmt.Errorf("%s has the wrong family: v4 is for IPv4, v6 for IPv6", a)
		}
		if err := p.once(a.String()); err != nil {
			return err
		}
		if v4 {
			p.open.V4 = append(p.open.V4, a)
		} else {
			p.open.V6 = append(p.open.V6, a)
		}
	}
	return nil
}

func setCountry(r *Resolver, v string) error {
	if len(v) != 2 || strings.Trim(v, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return fmt.Errorf("%q is not a country code; use two capital letters", v)
	}
	r.Country = v
	return nil
}

// setDoT sets the name in the certificate. It may be an address.
func setDoT(r *Resolver, v string) error {
	if _, err := dnsname.Parse(v); err != nil || strings.ContainsAny(v, " /:") {
		return fmt.Errorf("%q is not a server name", v)
	}
	r.DoT = v
	return nil
}

func address(v string) (string, error) {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is not a URL that begins with https://", v)
	}
	return v, nil
}

func seconds(v string) (uint32, error) {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of seconds", v)
	}
	return uint32(n), nil
}

package resolvers

import (
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

// parser reads a list line by line.
type parser struct {
	list List
	line int
	open *Resolver
	seen map[string]int // lines of ids and addresses
}

// words set what a line is about. Those that are alone take nothing behind them.
var words = map[string]struct {
	alone bool
	set   func(r *Resolver, value string) error
}{
	"operator":         {false, func(r *Resolver, v string) error { r.Operator = v; return nil }},
	"region":           {false, func(r *Resolver, v string) error { r.Region = v; return nil }},
	"country":          {false, setCountry},
	"dot":              {false, setDoT},
	"doh":              {false, func(r *Resolver, v string) (err error) { r.DoH, err = address(v); return err }},
	"flush":            {false, func(r *Resolver, v string) (err error) { r.Flush, err = address(v); return err }},
	"filters":          {true, func(r *Resolver, _ string) error { r.Filter, r.Vote = true, false; return nil }},
	"novote":           {false, func(r *Resolver, v string) error { r.Vote, r.Reason = false, v; return nil }},
	"ecs":              {true, func(r *Resolver, _ string) error { r.ECS = true; return nil }},
	"encrypted":        {true, func(r *Resolver, _ string) error { r.Encrypted = true; return nil }},
	"max-ttl":          {false, func(r *Resolver, v string) (err error) { r.MaxTTL, err = seconds(v); return err }},
	"max-negative-ttl": {false, func(r *Resolver, v string) (err error) { r.MaxNegativeTTL, err = seconds(v); return err }},
	"checked":          {false, func(r *Resolver, v string) error { r.Checked = v; return nil }},
}

func (p *parser) do(word, value string) error {
	switch word {
	case "date":
		if _, err := time.Parse(time.DateOnly, value); err != nil {
			return fmt.Errorf("%q is no date; write it as 2026-11-15", value)
		}
		p.list.Date = value
		return nil
	case "resolver":
		return p.begin(value)
	}
	if p.open == nil {
		return fmt.Errorf("%q belongs below a line \"resolver NAME\"", word)
	}
	if word == "v4" || word == "v6" {
		return p.addresses(word == "v4", value)
	}
	w, ok := words[word]
	switch {
	case !ok:
		known := slices.Sorted(maps.Keys(words))
		return fmt.Errorf("%q is not known; known are date, resolver, v4, v6, %s", word, strings.Join(known, ", "))
	case w.alone && value != "":
		return fmt.Errorf("%q stands alone, but %q follows it", word, value)
	case !w.alone && value == "":
		return fmt.Errorf("something must follow %q", word)
	}
	return w.set(p.open, value)
}

func (p *parser) begin(id string) error {
	if err := p.end(); err != nil {
		return err
	}
	if id == "" || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("%q is no id; use small letters, digits and hyphens", id)
	}
	if err := p.once(id); err != nil {
		return err
	}
	p.open = &Resolver{ID: id, Vote: true}
	return nil
}

// end completes the resolver that is open.
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

func (p *parser) once(what string) error {
	if line, twice := p.seen[what]; twice {
		return fmt.Errorf("%s is there already, in line %d", what, line)
	}
	p.seen[what] = p.line
	return nil
}

func (p *parser) addresses(v4 bool, value string) error {
	if value == "" {
		return fmt.Errorf("at least one address must follow")
	}
	for _, text := range strings.Fields(value) {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return fmt.Errorf("%q is no address", text)
		}
		if a.Is4() != v4 {
			return fmt.Errorf("%s is of the other family: v4 is for IPv4, v6 for IPv6", a)
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
		return fmt.Errorf("%q is no code of a country; they have two capital letters", v)
	}
	r.Country = v
	return nil
}

// setDoT takes the name in a certificate. It may be an address.
func setDoT(r *Resolver, v string) error {
	if _, err := dnsname.Parse(v); err != nil || strings.ContainsAny(v, " /:") {
		return fmt.Errorf("%q is no name of a server", v)
	}
	r.DoT = v
	return nil
}

func address(v string) (string, error) {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is no address of a page; it begins with https://", v)
	}
	return v, nil
}

func seconds(v string) (uint32, error) {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is no number of seconds", v)
	}
	return uint32(n), nil
}

// Package resolvers knows the recursive resolvers of the world that anybody may ask: a list with a date, since they come and
// go.
package resolvers

import (
	_ "embed"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

//go:embed list.txt
var builtIn string

// List is a list of resolvers.
type List struct {
	Date      string     `json:"date"` // when it was last looked through: 2026-01-31
	Resolvers []Resolver `json:"resolvers"`
}

// Resolver is a recursive resolver.
type Resolver struct {
	ID      string       `json:"id"`
	Name    string       `json:"name"` // of its operator, and which of its services it is
	Region  string       `json:"region,omitempty"`
	V4      []netip.Addr `json:"v4,omitempty"`
	V6      []netip.Addr `json:"v6,omitempty"`
	DoT     string       `json:"dot,omitempty"`
	DoH     string       `json:"doh,omitempty"`
	Filters bool         `json:"filters,omitempty"`
	NoVote  bool         `json:"noVote,omitempty"` // its answers may be altered on the way to us
	ECS     bool         `json:"ecs,omitempty"`
	Flush   string       `json:"flush,omitempty"`
	Source  string       `json:"source,omitempty"`
}

// BuiltIn is the list that comes with the program.
func BuiltIn() List {
	l, err := Read(strings.NewReader(builtIn), "list.txt")
	if err != nil {
		panic(err) // a test reads it
	}
	return l
}

// maxList is how long a list may be.
const maxList = 1 << 20

// Read reads a list in the format that the built-in one explains. Errors name the line of the file.
func Read(r io.Reader, file string) (List, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxList+1))
	if err != nil {
		return List{}, err
	}
	if len(text) > maxList {
		return List{}, fmt.Errorf("%s: is longer than a mebibyte", file)
	}
	var p parser
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) == "" {
			continue
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if err := p.line(word, strings.TrimSpace(rest)); err != nil {
			return List{}, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return p.end(file)
}

// parser reads a list line by line.
type parser struct {
	list List
	seen map[string]string // ids and addresses, by whose they are
}

func (p *parser) end(file string) (List, error) {
	if p.list.Date == "" {
		return List{}, fmt.Errorf("%s: has no date", file)
	}
	if len(p.list.Resolvers) == 0 {
		return List{}, fmt.Errorf("%s: has no resolver", file)
	}
	for _, r := range p.list.Resolvers {
		if len(r.V4)+len(r.V6) == 0 && r.DoT == "" && r.DoH == "" {
			return List{}, fmt.Errorf("%s: resolver %s has no address", file, r.ID)
		}
	}
	return p.list, nil
}

func (p *parser) line(word, rest string) (err error) {
	switch word {
	case "date":
		if _, err := time.Parse(time.DateOnly, rest); err != nil {
			return fmt.Errorf("%q is not a day like 2026-01-31", rest)
		}
		p.list.Date = rest
		return nil
	case "resolver":
		return p.begin(rest)
	}
	if len(p.list.Resolvers) == 0 {
		return fmt.Errorf("%q stands before the first resolver", word)
	}
	r := &p.list.Resolvers[len(p.list.Resolvers)-1]
	switch word {
	case "v4":
		r.V4, err = p.addresses(r.ID, rest, netip.Addr.Is4)
	case "v6":
		r.V6, err = p.addresses(r.ID, rest, netip.Addr.Is6)
	case "filters", "no-vote", "ecs":
		*map[string]*bool{"filters": &r.Filters, "no-vote": &r.NoVote, "ecs": &r.ECS}[word] = true
		if rest != "" {
			err = fmt.Errorf("%q follows %q, which stands alone", rest, word)
		}
	case "region", "source", "dot":
		*map[string]*string{"region": &r.Region, "source": &r.Source, "dot": &r.DoT}[word] = rest
	case "doh", "flush":
		*map[string]*string{"doh": &r.DoH, "flush": &r.Flush}[word] = rest
		if u, bad := url.Parse(rest); bad != nil || u.Scheme != "https" || u.Host == "" {
			err = fmt.Errorf("%q is not an https URL", rest)
		}
	default:
		err = fmt.Errorf("%q is not known here", word)
	}
	return err
}

func (p *parser) begin(rest string) error {
	id, name, ok := strings.Cut(rest, " ")
	if !ok {
		return fmt.Errorf("a resolver needs an id and a name")
	}
	if err := p.once("resolver "+id, id); err != nil {
		return err
	}
	p.list.Resolvers = append(p.list.Resolvers, Resolver{ID: id, Name: strings.TrimSpace(name)})
	return nil
}

func (p *parser) addresses(id, rest string, family func(netip.Addr) bool) (out []netip.Addr, err error) {
	for word := range strings.FieldsSeq(rest) {
		a, err := netip.ParseAddr(word)
		if err != nil || !family(a) || a.Zone() != "" {
			return nil, fmt.Errorf("%q is not an address of this family", word)
		}
		if err := p.once(a.String(), id); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// once refuses what is there already: a resolver that is asked twice would be counted twice.
func (p *parser) once(what, id string) error {
	if p.seen == nil {
		p.seen = map[string]string{}
	}
	if other, ok := p.seen[what]; ok {
		return fmt.Errorf("%s is in the list already, for %s", what, other)
	}
	p.seen[what] = id
	return nil
}

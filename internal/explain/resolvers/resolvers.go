// Package resolvers is the list of recursive resolvers that caches are looked at through: dated data, and whether it still
// holds.
//
// The list is text. Empty lines and those that begin with # say nothing; "date YYYY-MM-DD" says as of when it is; each
// resolver begins with its id, and lines below it say more:
//
//	date 2026-11-15
//	resolver office
//	  operator Example Ltd
//	  region europe
//	  country DE
//	  v4 192.0.2.53 192.0.2.54
//	  v6 2001:db8::53
//	  dot dns.example.org                     the name in the certificate of DNS over TLS
//	  doh https://dns.example.org/dns-query
//	  flush https://dns.example.org/flush     where people can make it forget a name
//	  filters                                 leaves out names on purpose; it does not vote, either
//	  novote REASON                           its answers are shown, and not counted
//	  ecs                                     sends client subnets, and so has many caches
//	  encrypted                               answers only over TLS and HTTPS
//	  max-ttl 86400                           keeps nothing longer
//	  max-negative-ttl 3600                   nor that something does not exist
//	  checked memory                          how the entry is known
//
// The id and one address, or a name for DoH or DoT, are enough.
package resolvers

import (
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/resolve"
)

// List is resolvers as of a date.
type List struct {
	Name      string     `json:"name"` // of the file it is from
	Date      string     `json:"date"` // 2006-01-02; empty if the file has none
	Resolvers []Resolver `json:"resolvers"`
}

// Resolver is one service. It may have many caches at many places.
type Resolver struct {
	ID       string       `json:"id"`
	Operator string       `json:"operator,omitempty"`
	Region   string       `json:"region,omitempty"`  // global, or a part of the world
	Country  string       `json:"country,omitempty"` // ISO 3166
	V4       []netip.Addr `json:"v4,omitempty"`
	V6       []netip.Addr `json:"v6,omitempty"`
	DoT      string       `json:"dot,omitempty"`
	DoH      string       `json:"doh,omitempty"`
	Flush    string       `json:"flush,omitempty"`

	Filter    bool   `json:"filter"`
	Vote      bool   `json:"vote"` // its answers count
	Reason    string `json:"reason,omitempty"`
	ECS       bool   `json:"ecs"`
	Encrypted bool   `json:"encrypted"`

	MaxTTL         uint32 `json:"maxTTL,omitempty"` // 0: not known
	MaxNegativeTTL uint32 `json:"maxNegativeTTL,omitempty"`
	Checked        string `json:"checked,omitempty"`
}

// Servers are where a resolver is asked, IPv4 first.
func (r Resolver) Servers() (out []resolve.Server) {
	for _, a := range slices.Concat(r.V4, r.V6) {
		s := resolve.Server{Addr: netip.AddrPortFrom(a, 53)}
		if r.Encrypted {
			s = resolve.Server{Transport: resolve.TLS, Addr: netip.AddrPortFrom(a, 853), Name: r.DoT}
		}
		out = append(out, s)
	}
	return out
}

// Find finds a resolver by its id, or by an address.
func (l *List) Find(what string) (Resolver, bool) {
	addr, _ := netip.ParseAddr(what)
	i := slices.IndexFunc(l.Resolvers, func(r Resolver) bool {
		return r.ID == what || addr.IsValid() && (slices.Contains(r.V4, addr) || slices.Contains(r.V6, addr))
	})
	if i < 0 {
		return Resolver{}, false
	}
	return l.Resolvers[i], true
}

// String tells the list and its date, as reports show it.
func (l *List) String() string {
	date := "of no date"
	if l.Date != "" {
		date = "of " + l.Date
	}
	return fmt.Sprintf("%d resolvers (%s, %s)", len(l.Resolvers), l.Name, date)
}

//go:embed public.txt
var public string

// Load is the list that comes with the program.
func Load() *List {
	l, err := Parse("public resolvers", public)
	if err != nil {
		panic(err) // a test reads it
	}
	return l
}

// LoadFile reads a list of one's own.
func LoadFile(path string) (*List, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("resolvers: %w", err)
	}
	return Parse(path, string(text))
}

// Parse reads a list. Errors begin with its name and the line.
func Parse(name, text string) (*List, error) {
	p := parser{list: List{Name: name}, seen: map[string]int{}}
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if err := p.do(word, strings.TrimSpace(rest)); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
	}
	if err := p.end(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
	}
	if len(p.list.Resolvers) == 0 {
		return nil, fmt.Errorf("%s: there is no resolver in it; a line \"resolver NAME\" begins one", name)
	}
	return &p.list, nil
}

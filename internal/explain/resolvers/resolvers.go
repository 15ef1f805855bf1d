// Package resolvers holds the dated list of recursive resolvers whose caches are compared, and checks that they
// answer.
//
// Start with List and Resolver in this file; Load returns the built-in list of public.txt, and Check in check.go
// queries every address.
//
// A list is text. Empty lines and lines that begin with # are ignored. "date YYYY-MM-DD" is the date of the list. A
// line "resolver ID" begins a resolver, and the lines below it describe it:
//
//	date 2026-11-15
//	resolver office
//	  operator Example Ltd
//	  region europe
//	  country DE
//	  v4 192.0.2.53 192.0.2.54
//	  v6 2001:db8::53
//	  dot dns.example.org                     name in the certificate of DNS over TLS
//	  doh https://dns.example.org/dns-query
//	  flush https://dns.example.org/flush     page on which users can flush a name from the cache
//	  filters                                 blocks some names; implies novote
//	  novote REASON                           its answers are shown, but not counted
//	  ecs                                     sends client subnets, and so has many caches
//	  encrypted                               answers only over TLS and HTTPS
//	  max-ttl 86400                           upper limit of TTLs, in seconds
//	  max-negative-ttl 3600                   upper limit of negative TTLs, in seconds
//	  checked memory                          how the entry was verified
//
// A resolver needs an ID and at least one address, DoH URL or DoT name.
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

// List is a list of resolvers as of a date.
type List struct {
	Name      string     `json:"name"` // name of the file
	Date      string     `json:"date"` // 2006-01-02; empty if the file has none
	Resolvers []Resolver `json:"resolvers"`
}

// Resolver is one service. It may have many caches in many locations.
type Resolver struct {
	ID       string       `json:"id"`
	Operator string       `json:"operator,omitempty"`
	Region   string       `json:"region,omitempty"`  // global, or a continent
	Country  string       `json:"country,omitempty"` // ISO 3166
	V4       []netip.Addr `json:"v4,omitempty"`
	V6       []netip.Addr `json:"v6,omitempty"`
	DoT      string       `json:"dot,omitempty"`
	DoH      string       `json:"doh,omitempty"`
	Flush    string       `json:"flush,omitempty"`

	Filter    bool   `json:"filter"`
	Vote      bool   `json:"vote"` // its answers are counted
	Reason    string `json:"reason,omitempty"`
	ECS       bool   `json:"ecs"`
	Encrypted bool   `json:"encrypted"`

	MaxTTL         uint32 `json:"maxTTL,omitempty"` // 0: unknown
	MaxNegativeTTL uint32 `json:"maxNegativeTTL,omitempty"`
	Checked        string `json:"checked,omitempty"`
}

// Servers returns the endpoints of a resolver, IPv4 first.
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

// Find finds a resolver by ID or by address.
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

// String returns the number of resolvers, the name and the date, for reports.
func (l *List) String() string {
	date := "undated"
	if l.Date != "" {
		date = "of " + l.Date
	}
	return fmt.Sprintf("%d resolvers (%s, %s)", len(l.Resolvers), l.Name, date)
}

//go:embed public.txt
var public string

// Load returns the built-in list.
func Load() *List {
	l, err := Parse("public resolvers", public)
	if err != nil {
		panic(err) // a test parses the list
	}
	return l
}

// LoadFile reads a list from a file.
func LoadFile(path string) (*List, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("resolvers: %w", err)
	}
	return Parse(path, string(text))
}

// Parse parses a list. Errors begin with the name and the line.
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
		return nil, fmt.Errorf("%s: the list has no resolver; add a line \"resolver ID\"", name)
	}
	return &p.list, nil
}

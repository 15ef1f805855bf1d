package lab

import (
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/simnet"
)

// section is a section of a text file: a line that is not indented, followed by indented lines. Lines that begin with
// # are comments. The sections are
//
//	group NAME ADDRESS...        names a group of servers; the group root has the root servers
//	server GROUP|ADDRESS...      lines are commands of simnet; further sections may add to a server
//	resolver NAME ADDRESS...     the same for a caching resolver; the line tls NAME adds TLS
//	hosted NAME                  a zone at the servers of dnshost.net, with its delegation; lines add to it
//	own NAME ADDRESS ADDRESS     the same with its own servers: ns1 and ns2
//	domain NAME                  a domain to try commands with: wrong TEXT, try COMMAND, finds ID...
//	tld NAME                     the servers of a registry: see tld in registration.go
//	registration NAME            the data of a registry about a domain: see registration.go
type section struct {
	file  string
	line  int
	kind  string
	args  []string
	lines []string
}

// plan is the parsed content of all text files.
type plan struct {
	groups        map[string][]string
	servers       []section
	domains       []Domain
	resolvers     []Resolver
	tlds          []*tld
	registrations map[string]*registration // by domain, without the final dot
}

// readPlan parses all text files.
func readPlan(files fs.FS) (*plan, error) {
	names, err := fs.Glob(files, "internet/*.txt")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []section
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		part, err := sections(name, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	p := &plan{groups: map[string][]string{}, registrations: map[string]*registration{}}
	for _, s := range all {
		if s.kind == "group" && len(s.args) > 1 {
			p.groups[s.args[0]] = s.args[1:]
		}
	}
	for _, s := range all {
		if err := p.add(s); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", s.file, s.line, err)
		}
	}
	return p, nil
}

// sections splits a file into sections.
func sections(file, text string) (out []section, err error) {
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case line[0] != ' ' && line[0] != '\t':
			words := strings.Fields(line)
			out = append(out, section{file: file, line: i + 1, kind: words[0], args: words[1:]})
		case len(out) == 0:
			return nil, fmt.Errorf("%s:%d: the line is not in a section", file, i+1)
		default:
			last := &out[len(out)-1]
			last.lines = append(last.lines, trimmed)
		}
	}
	return out, nil
}

// add adds one section to the plan.
func (p *plan) add(s section) (err error) {
	if len(s.args) == 0 {
		return fmt.Errorf("%s needs a name", s.kind)
	}
	switch s.kind {
	case "group":
	case "server":
		p.servers = append(p.servers, s)
	case "resolver":
		err = p.addResolver(s)
	case "hosted", "own":
		err = p.addZone(s)
	case "domain":
		err = p.addDomain(s)
	case "tld":
		err = p.addTLD(s)
	case "registration":
		err = p.addRegistration(s)
	default:
		return fmt.Errorf("%q is not a kind of section", s.kind)
	}
	return err
}

// addResolver adds a resolver. The lab handles its line "tls NAME"; the other lines are commands of simnet.
func (p *plan) addResolver(s section) error {
	r := Resolver{Name: s.args[0]}
	for _, a := range s.args[1:] {
		addr, err := netip.ParseAddr(a)
		if err != nil {
			return err
		}
		r.Addrs = append(r.Addrs, addr)
	}
	if len(r.Addrs) == 0 {
		return fmt.Errorf("%s has no address", r.Name)
	}
	lines := []string{"resolve " + strings.Join(p.groups["root"], " ")}
	for _, line := range s.lines {
		if name, ok := strings.CutPrefix(line, "tls "); ok {
			r.TLS = strings.TrimSpace(name)
			continue
		}
		lines = append(lines, line)
	}
	s.args, s.lines = s.args[1:], lines
	p.resolvers, p.servers = append(p.resolvers, r), append(p.servers, s)
	return nil
}

// parents are the server groups of the top-level domains.
var parents = map[string]string{"com.": "gtld", "net.": "gtld", "org.": "org", "test.": "nictest",
	"example.": "nicexample"}

// addZone adds a healthy zone. Its lines may add faults.
func (p *plan) addZone(s section) error {
	name, err := dnsname.Parse(s.args[0])
	if err != nil {
		return err
	}
	parent, ok := parents[name.Parent().String()]
	if !ok {
		return fmt.Errorf("%v has no parent zone in the lab", name)
	}
	hosts, addrs := []string{"ns1.dnshost.net.", "ns2.dnshost.net."}, []string{"dnshost"}
	var glue []string
	if s.kind == "own" {
		if len(s.args) != 3 {
			return fmt.Errorf("give the addresses of two servers")
		}
		hosts, addrs = []string{"ns1." + name.String(), "ns2." + name.String()}, s.args[1:]
		glue = []string{hosts[0] + " 86400 A " + addrs[0], hosts[1] + " 86400 A " + addrs[1]}
	}
	ns := name.String() + " 86400 NS " + strings.Join(hosts, ", ")
	up := section{file: s.file, line: s.line, args: []string{parent}, lines: append([]string{ns}, glue...)}
	s.args = addrs
	s.lines = append(append([]string{"zone " + name.String(),
		fmt.Sprintf("%s 3600 SOA %s hostmaster.%[1]s 2026111501 7200 3600 1209600 300", name, hosts[0]), ns}, glue...),
		s.lines...)
	p.servers = append(p.servers, up, s)
	return nil
}

func (p *plan) addDomain(s section) error {
	d := Domain{Name: s.args[0]}
	for _, line := range s.lines {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "wrong":
			d.Wrong = rest
		case "try":
			d.Try = rest
		case "finds":
			d.Finds = append(d.Finds, strings.Fields(rest)...)
		default:
			return fmt.Errorf("%q is not a line of a domain section", word)
		}
	}
	p.domains = append(p.domains, d)
	return nil
}

// build creates the servers of the lab.
func (p *plan) build() (*Lab, error) {
	l := &Lab{Net: simnet.New(1), Anchor: simnet.Anchor(dnsname.Root), Domains: p.domains, Resolvers: p.resolvers,
		table: table{local: map[string]string{}, hosts: map[string]netip.Addr{}, pipes: map[string]*pipes{}}}
	for _, s := range p.servers {
		for _, addr := range p.addresses(s.args) {
			if _, err := l.Net.Server(addr, strings.Join(s.lines, "\n")); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", s.file, s.line, err)
			}
		}
	}
	hints, err := p.hints()
	if err != nil {
		return nil, err
	}
	l.Hints = hints
	l.registry, err = p.buildRegistry()
	return l, err
}

// addresses resolves the names of groups to addresses.
func (p *plan) addresses(words []string) (out []string) {
	for _, w := range words {
		if g, ok := p.groups[w]; ok {
			out = append(out, p.addresses(g)...)
			continue
		}
		out = append(out, w)
	}
	return out
}

// hints returns the root servers with their names in the public DNS.
func (p *plan) hints() ([]iterate.Host, error) {
	var out []iterate.Host
	for _, h := range iterate.RootHints() {
		h.Glue = slices.DeleteFunc(h.Glue, func(a netip.Addr) bool {
			return !slices.Contains(p.groups["root"], a.String())
		})
		if len(h.Glue) > 0 {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the group root has no address of a public root server")
	}
	return out, nil
}

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

// unused is an address for documentation (RFC 5737), at which nobody has a server. Who replies from there stands on the way.
var unused = netip.MustParseAddr("192.0.2.53")

// labDir is the folder of the lab unless another one is given.
const labDir = "lab"

// sight is whom a look asks, and within which bounds.
type sight struct {
	lab        string
	hints      string
	anchors    string
	noRegistry bool
	four, six  bool
	timeout    time.Duration
	expect     []string
	planNS     []string
	change     bool
	ecs        string
	resolvers  string
	local      bool
	force      bool
}

func (s *sight) addFlags(c *cobra.Command) {
	f := c.Flags()
	addLabFlag(c, &s.lab)
	f.StringVar(&s.hints, "hints", "", "begin at the root servers of this `FILE`: one a line, a name and its addresses")
	f.StringVar(&s.anchors, "anchors", "", "trust the keys of this `FILE`, DS or DNSKEY records, in place of those of the public root")
	f.BoolVar(&s.noRegistry, "no-registry", false, "do not ask registries (RDAP and WHOIS)")
	f.BoolVarP(&s.four, "ipv4", "4", false, "ask over IPv4 only")
	f.BoolVarP(&s.six, "ipv6", "6", false, "ask over IPv6 only")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "end after this `TIME` with what is known by then")
	f.StringSliceVar(&s.planNS, "plan-ns", nil, "look at a move to these `NAMESERVERS`, too")
}

// addNameFlags are those for commands about a name.
func (s *sight) addNameFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&s.expect, "expect", nil, "what there should be, as `TYPE=DATA`; may be given several times")
	f.BoolVar(&s.change, "change", false, "the records are about to change, or have been changed")
	f.StringVar(&s.ecs, "ecs", "", "ask authorities on behalf of this `SUBNET`, too, to see answers that differ by place")
}

// addCacheFlags are those for commands that ask resolvers.
func (s *sight) addCacheFlags(c *cobra.Command) {
	f := c.Flags()
	addResolversFlag(c, &s.resolvers)
	f.BoolVar(&s.local, "local", false, "ask the resolvers of this machine (/etc/resolv.conf), too")
	f.BoolVar(&s.force, "force", false, "ask resolvers even for what the authority does not have; they remember that it does not exist")
}

func addLabFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "lab", "", "ask the lab that \"nameplane lab up\" has started in this `DIR`")
	c.Flags().Lookup("lab").NoOptDefVal = labDir
}

func addResolversFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "resolvers", "", "ask the resolvers of this `FILE`; docs/explain.md has the format")
}

// gatherer is what asks, and what to do when it has.
func (s *sight) gatherer(cmd *cobra.Command, show *steps) (g *gather.Gatherer, done func(), err error) {
	if s.four && s.six {
		return nil, nil, usage(cmd, "--ipv4 and --ipv6 exclude each other")
	}
	if s.lab != "" && (s.hints != "" || s.anchors != "") {
		return nil, nil, usage(cmd, "--hints and --anchors are not for --lab, which has a root and keys of its own")
	}
	if s.timeout <= 0 {
		return nil, nil, usage(cmd, "--timeout %s: must be more than nothing", s.timeout)
	}
	g = &gather.Gatherer{Progress: show.event}
	g.Options = gather.Options{MaxTime: s.timeout, IPv4Only: s.four, IPv6Only: s.six, Force: s.force, Change: s.change}
	if err := s.options(cmd, &g.Options); err != nil {
		return nil, nil, err
	}
	if s.lab != "" {
		err = s.inLab(g)
	} else {
		err = s.inWorld(g)
	}
	return g, show.end, err
}

// options reads the flags that are more than words.
func (s *sight) options(cmd *cobra.Command, o *gather.Options) (err error) {
	for _, text := range s.expect {
		set, err := explain.ParseExpect(text)
		if err != nil {
			return usage(cmd, "--expect %s: %s", text, err)
		}
		o.Expect = append(o.Expect, set)
	}
	for _, text := range s.planNS {
		n, err := dnsname.Parse(text)
		if err != nil {
			return usage(cmd, "--plan-ns %s: %s", text, err)
		}
		o.PlanNS = append(o.PlanNS, n)
	}
	if s.ecs != "" {
		if o.ECS, err = netip.ParsePrefix(s.ecs); err != nil {
			return usage(cmd, "--ecs %s: must be a subnet like 192.0.2.0/24", s.ecs)
		}
	}
	if s.local {
		o.Local = "/etc/resolv.conf"
	}
	return nil
}

// inWorld asks the public DNS.
func (s *sight) inWorld(g *gather.Gatherer) (err error) {
	g.Exchanger, g.Prober = &resolve.Client{AsIs: true}, &resolve.Prober{}
	g.Fetch = gather.OverHTTP((&net.Dialer{}).DialContext)
	g.Route, g.Options.Unused = gather.HasRoute, unused
	if !s.noRegistry {
		g.Registry = &registry.Client{}
	}
	if s.hints != "" {
		if g.Hints, err = readHints(s.hints); err != nil {
			return err
		}
	}
	if s.anchors != "" {
		if g.Anchors, err = readAnchors(s.anchors); err != nil {
			return err
		}
	}
	list, err := readResolvers(s.resolvers)
	if err != nil {
		return err
	}
	g.Resolvers = list.Resolvers
	return nil
}

// inLab asks the lab, from which there is no way out.
func (s *sight) inLab(g *gather.Gatherer) error {
	l, err := loadLab(s.lab)
	if err != nil {
		return err
	}
	anchor, err := secure.ParseAnchor(l.Anchor)
	if err != nil {
		return err
	}
	g.Exchanger, g.Prober = &resolve.Client{Dial: l.Dial, Roots: l.Roots, AsIs: true}, &resolve.Prober{Dial: l.Dial, Listen: l.Listen}
	g.Fetch = gather.OverHTTP(l.Dial)
	g.Route = nil // its IPv6 addresses are on IPv4
	g.Hints, g.Anchors, g.Options.Vantage = l.Hints, []secure.Anchor{anchor}, "lab"
	g.Options.Rate = 1000 // nobody there needs to be spared, and nobody is far away
	g.Options.Timeouts = []time.Duration{150 * time.Millisecond, 200 * time.Millisecond, 250 * time.Millisecond}
	g.Options.Recursion = time.Second // a resolver there tries all servers of a zone before it says what it once knew
	g.Options.Settle = 250 * time.Millisecond
	if !s.noRegistry {
		g.Registry = &registry.Client{Dial: l.Dial, Roots: l.Roots, Allow: func(netip.Addr) bool { return true }}
	}
	if g.Resolvers = labResolvers(l); s.resolvers != "" {
		list, err := readResolvers(s.resolvers)
		if err != nil {
			return err
		}
		g.Resolvers = list.Resolvers
	}
	return nil
}

// again are the flags by which another command looks at the same internet, with a space behind.
func (s *sight) again() string {
	switch s.lab {
	case "":
		return ""
	case labDir:
		return "--lab "
	}
	return "--lab=" + s.lab + " "
}

// loadLab finds the lab of a folder.
func loadLab(dir string) (*lab.Lab, error) {
	l, err := lab.Load(dir)
	if errors.Is(err, lab.ErrNoLab) {
		return nil, fail(fmt.Sprintf("start one in another terminal: nameplane lab up --dir %s", dir), "no lab is running in %s", dir)
	}
	return l, err
}

// readResolvers reads a list of resolvers, or the one that is built in.
func readResolvers(file string) (*resolvers.List, error) {
	if file == "" {
		return resolvers.Load(), nil
	}
	return resolvers.LoadFile(file)
}

// readAnchors reads trust anchors: a DS or DNSKEY record on each line.
func readAnchors(file string) (out []secure.Anchor, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line, _, _ = strings.Cut(line, ";"); strings.TrimSpace(line) == "" {
			continue
		}
		a, err := secure.ParseAnchor(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: has no trust anchor", file)
	}
	return out, nil
}

// readHints reads root servers: a name and its addresses on each line, or the records of a hints file (named.root).
func readHints(file string) (out []iterate.Host, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, ";")
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 || len(words) > 2 && strings.EqualFold(words[len(words)-2], "NS") {
			continue
		}
		name, err := dnsname.Parse(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if _, ok := at[name.String()]; !ok {
			at[name.String()] = len(out)
			out = append(out, iterate.Host{Name: name})
		}
		h := &out[at[name.String()]]
		before := len(h.Glue)
		for _, w := range words[1:] {
			if a, err := netip.ParseAddr(w); err == nil {
				h.Glue = append(h.Glue, a)
			}
		}
		if len(h.Glue) == before {
			return nil, fmt.Errorf("%s:%d: has no address", file, n)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: names no root server", file)
	}
	return out, nil
}

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/source"
	"github.com/nameplane/nameplane/internal/lab"
)

// labDir is the default directory of the lab.
const labDir = "lab"

// sourceFlags are the flags of scan, analyze, compare and watch: which servers to ask, and within which limits.
type sourceFlags struct {
	source.Config
	four, six bool
	timeout   time.Duration
	expect    []string
	planNS    []string
	change    bool
	ecs       string
	local     bool
	force     bool
}

func (s *sourceFlags) addFlags(c *cobra.Command) {
	f := c.Flags()
	addLabFlag(c, &s.Lab)
	f.StringVar(&s.Hints, "hints", "", "begin at the root servers of this `FILE`: one a line, a name and its addresses")
	f.StringVar(&s.Anchors, "anchors", "", "trust the keys of this `FILE`, DS or DNSKEY records, in place of those of the public root")
	f.BoolVar(&s.NoRegistry, "no-registry", false, "do not ask registries (RDAP and WHOIS)")
	f.BoolVarP(&s.four, "ipv4", "4", false, "ask over IPv4 only")
	f.BoolVarP(&s.six, "ipv6", "6", false, "ask over IPv6 only")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "end after this `TIME` with what is known by then")
	f.StringSliceVar(&s.planNS, "plan-ns", nil, "look at a move to these `NAMESERVERS`, too")
}

// addNameFlags adds the flags of commands about a name.
func (s *sourceFlags) addNameFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&s.expect, "expect", nil, "what there should be, as `TYPE=DATA`; may be given several times")
	f.BoolVar(&s.change, "change", false, "the records are about to change, or have been changed")
	f.StringVar(&s.ecs, "ecs", "", "ask authorities on behalf of this `SUBNET`, too, to see answers that differ by place")
}

// addCacheFlags adds the flags of commands that ask resolvers.
func (s *sourceFlags) addCacheFlags(c *cobra.Command) {
	f := c.Flags()
	addResolversFlag(c, &s.Resolvers)
	f.BoolVar(&s.local, "local", false, "ask the resolvers of this machine (/etc/resolv.conf), too")
	f.BoolVar(&s.force, "force", false,
		"ask resolvers even for what the authority does not have; they remember that it does not exist")
}

func addLabFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "lab", "", "ask the lab that \"nameplane lab up\" has started in this `DIR`")
	c.Flags().Lookup("lab").NoOptDefVal = labDir
}

func addResolversFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "resolvers", "", "ask the resolvers of this `FILE`; docs/explain.md has the format")
}

// gatherer returns the gatherer of these flags.
func (s *sourceFlags) gatherer(cmd *cobra.Command) (*gather.Gatherer, error) {
	if s.four && s.six {
		return nil, cli.Usage(cmd, "--ipv4 and --ipv6 exclude each other")
	}
	if s.Lab != "" && (s.Hints != "" || s.Anchors != "") {
		return nil, cli.Usage(cmd, "--hints and --anchors are not for --lab, which has a root and keys of its own")
	}
	if s.timeout <= 0 {
		return nil, cli.Usage(cmd, "--timeout %s: must be more than nothing", s.timeout)
	}
	g, _, err := source.Open(s.Config)
	if err != nil {
		return nil, labFailure(err)
	}
	return &g, s.options(cmd, &g.Options)
}

// options parses the flags into options.
func (s *sourceFlags) options(cmd *cobra.Command, o *gather.Options) (err error) {
	o.MaxTime, o.IPv4Only, o.IPv6Only, o.Force, o.Change = s.timeout, s.four, s.six, s.force, s.change
	for _, text := range s.expect {
		set, err := explain.ParseExpect(text)
		if err != nil {
			return cli.Usage(cmd, "--expect %s: %s", text, err)
		}
		o.Expect = append(o.Expect, set)
	}
	for _, text := range s.planNS {
		n, err := dnsname.Parse(text)
		if err != nil {
			return cli.Usage(cmd, "--plan-ns %s: %s", text, err)
		}
		o.PlanNS = append(o.PlanNS, n)
	}
	if s.ecs != "" {
		if o.ECS, err = netip.ParsePrefix(s.ecs); err != nil {
			return cli.Usage(cmd, "--ecs %s: must be a subnet like 192.0.2.0/24", s.ecs)
		}
	}
	if s.local {
		o.Local = "/etc/resolv.conf"
	}
	return nil
}

// again returns the flags by which another command asks the same internet, followed by a space.
func (s *sourceFlags) again() string {
	switch s.Lab {
	case "":
		return ""
	case labDir:
		return "--lab "
	}
	return "--lab=" + s.Lab + " "
}

// loadLab finds the lab that runs in a directory.
func loadLab(dir string) (*lab.Lab, error) {
	l, err := source.LoadLab(dir)
	return l, labFailure(err)
}

// labFailure adds a hint to the error about a lab that does not run.
func labFailure(err error) error {
	if e, ok := errors.AsType[*source.NoLabError](err); ok {
		return cli.Fail(fmt.Sprintf("start one in another terminal: nameplane lab up --dir %s", e.Dir), "%s", e)
	}
	return err
}

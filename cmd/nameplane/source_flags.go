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

// labDir is the default directory of a lab.
const labDir = "lab"

// sourceFlags are the flags of scan, analyze, compare and watch: which servers to query, and the limits for it.
type sourceFlags struct {
	source.Config
	ipv4Only, ipv6Only bool
	private            bool
	timeout            time.Duration
	expect             []string // TYPE=DATA
	planNS             []string
	dkim               []string
	change             bool
	ecs                string
	local              bool
	force              bool
}

// addFlags adds the flags that all four commands have.
func (s *sourceFlags) addFlags(c *cobra.Command) {
	f := c.Flags()
	addLabFlag(c, &s.Lab)
	f.StringVar(&s.Hints, "hints", "",
		"start at the root servers in this `FILE`: each line has a name and its addresses")
	f.StringVar(&s.Anchors, "anchors", "",
		"trust the DS or DNSKEY records in this `FILE` instead of the public keys; \"none\": the root is not signed")
	f.BoolVar(&s.NoRegistry, "no-registry", false, "do not query registries (RDAP and WHOIS)")
	f.BoolVar(&s.private, "private", false, "accept private addresses: the name is in an internal name space")
	f.BoolVarP(&s.ipv4Only, "ipv4", "4", false, "query over IPv4 only")
	f.BoolVarP(&s.ipv6Only, "ipv6", "6", false, "query over IPv6 only")
	f.DurationVar(&s.timeout, "timeout", 30*time.Second, "stop after this `TIME` and report what is known")
	f.StringSliceVar(&s.planNS, "plan-ns", nil, "also check and plan a move to these `NAMESERVERS`")
}

// addNameFlags adds the flags of commands for one name: analyze, compare and watch.
func (s *sourceFlags) addNameFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&s.expect, "expect", nil, "expect this record, as `TYPE=DATA`; may be repeated")
	f.BoolVar(&s.change, "change", false, "the records are about to change, or have just changed")
	f.StringVar(&s.ecs, "ecs", "",
		"also query the authoritative servers on behalf of this `SUBNET`, to see answers that depend on the location")
}

// addCacheFlags adds the flags of commands that query resolvers: compare and watch.
func (s *sourceFlags) addCacheFlags(c *cobra.Command) {
	f := c.Flags()
	addResolversFlag(c, &s.Resolvers)
	f.BoolVar(&s.local, "local", false, "also query the resolvers of this machine (/etc/resolv.conf)")
	f.BoolVar(&s.force, "force", false,
		"query resolvers even for a name that does not exist; they will cache that it does not exist")
}

func addLabFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "lab", "", "query the lab that \"nameplane lab up\" runs in this `DIR`")
	// With NoOptDefVal, --lab needs no value. A directory must then follow an equals sign: --lab=DIR.
	c.Flags().Lookup("lab").NoOptDefVal = labDir
}

// addResolversFlag adds --resolvers. The built-in list has public resolvers only; a provider wants to see its own.
func addResolversFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "resolvers", "",
		"query the resolvers in this `FILE`; docs/reference/explain.md describes the format")
}

// gatherer checks the flags and returns the gatherer for them.
func (s *sourceFlags) gatherer(cmd *cobra.Command) (*gather.Gatherer, error) {
	if s.ipv4Only && s.ipv6Only {
		return nil, cli.Usage(cmd, "--ipv4 and --ipv6 cannot be used together")
	}
	// Queries with --lab must never leave the machine. Other root servers could be on the internet.
	if s.Lab != "" && (s.Hints != "" || s.Anchors != "") {
		return nil, cli.Usage(cmd, "--hints and --anchors cannot be used with --lab, which has its own root and keys")
	}
	// No limit is not possible: a domain with many silent servers would keep the scan busy for minutes.
	if s.timeout <= 0 {
		return nil, cli.Usage(cmd, "--timeout %s: must be more than 0", s.timeout)
	}
	g, _, err := source.Open(s.Config)
	if err != nil {
		return nil, labFailure(err)
	}
	return &g, s.options(cmd, &g.Options)
}

// options parses the flags into o.
func (s *sourceFlags) options(cmd *cobra.Command, o *gather.Options) (err error) {
	o.MaxTime, o.IPv4Only, o.IPv6Only, o.Force, o.Change = s.timeout, s.ipv4Only, s.ipv6Only, s.force, s.change
	o.Private, o.DKIM = s.private, s.dkim
	if err := explain.CheckSelectors(s.dkim); err != nil {
		return cli.Usage(cmd, "--dkim: %s", err)
	}
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

// labFlag returns the --lab flag for a suggested command, followed by a space, or nothing without a lab.
func (s *sourceFlags) labFlag() string {
	switch s.Lab {
	case "":
		return ""
	case labDir:
		return "--lab "
	}
	return "--lab=" + s.Lab + " "
}

// loadLab returns the lab that runs in a directory.
func loadLab(dir string) (*lab.Lab, error) {
	l, err := source.LoadLab(dir)
	return l, labFailure(err)
}

// labFailure adds a hint to the error for a lab that is not running.
func labFailure(err error) error {
	if e, ok := errors.AsType[*source.NoLabError](err); ok {
		return cli.Fail(fmt.Sprintf("start one in another terminal: nameplane lab up --dir %s", e.Dir), "%s", e)
	}
	return err
}

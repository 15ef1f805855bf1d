package main

import (
	"fmt"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/service"
)

const serviceLong = `Check a service from its Kubernetes objects to its page, and name the first broken link.

The links are the class, the Gateway, the listener, the route, the proof of ownership,
DNS, the certificate and the backend. Links after the first broken one are not judged.
For DNS the report shows what to enter at the DNS host, and names the mistake if a record
was copied wrong.

-f FILE reads GatewayClass, Gateway, ListenerSet, HTTPRoute, GRPCRoute, TLSRoute,
ReferenceGrant, BackendTLSPolicy, Ingress, Service, EndpointSlice, Namespace, Certificate
and Challenge objects, as "kubectl get ... -o yaml" prints them. Other kinds are ignored,
and Secrets are never read. Without objects, give the hostname and --target.

A TXT record, a text at a URL, or the nameservers of the zone can prove the ownership of
the hostname. If several are given, one is enough. All servers of the zone must have the
record, and all of its nameservers must be the given ones.

Only the authoritative servers of the name are queried, no cache. Connections go to the
ports of the listeners, or to port 443, at the addresses that the hostname has. Private
addresses are refused without --private.` + reportLong

// serviceCommand is the command service. Unlike the other reports, one run can have many hostnames, each with a report
// of its own.
type serviceCommand struct {
	reportCommand
	file   string
	target string

	proof     string   // NAME=VALUE
	proofHTTP string   // URL=TEXT
	proofNS   []string // names of nameservers
}

func newServiceCommand() *cobra.Command {
	l := &serviceCommand{reportCommand: reportCommand{kind: explain.KindService}}
	c := &cobra.Command{
		Use:   "service {-f FILE | HOSTNAME --target TARGET}",
		Short: "Check a service from its objects to its page",
		Long:  serviceLong,
		Example: `  kubectl get gatewayclass,gateway,httproute,service,endpointslice -A -o yaml | nameplane service -f -
  nameplane service www.example.com --target edge.example.net
  nameplane service www.example.com --target 192.0.2.7 --proof _token.example.com=a1b2c3
  nameplane service www.example.com --target 192.0.2.7 --proof-http http://www.example.com/token=a1b2c3
  nameplane service -f gateway.yaml --record facts.json`,
		Args: cli.Args(0, 1),
		RunE: l.run,
	}
	l.addFlags(c)
	f := c.Flags()
	f.StringVarP(&l.file, "file", "f", "", "read the objects from this `FILE`; \"-\" for standard input")
	f.StringVar(&l.target, "target", "", "the host name or address that the hostname must point to (`TARGET`)")
	f.StringVar(&l.proof, "proof", "", "the TXT record that proves the ownership, as `NAME=VALUE`")
	f.StringVar(&l.proofHTTP, "proof-http", "",
		"the text at a URL of the hostname that proves the ownership, as `URL=TEXT`")
	f.StringSliceVar(&l.proofNS, "proof-ns", nil,
		"the `NAMESERVERS` that prove the ownership, if the zone is delegated to no others")
	f.BoolVar(&l.source.change, "change", false, "the records have just been entered")
	return c
}

// run prints a report for each hostname. The exit status is that of the worst one.
func (l *serviceCommand) run(cmd *cobra.Command, args []string) error {
	if err := l.check(cmd); err != nil {
		return err
	}
	all, err := l.all(cmd, args)
	if err != nil {
		return err
	}
	code := 0
	for i, facts := range all {
		r := report.Make(facts, check.Run(facts))
		if i > 0 && l.out == "text" && !l.short {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := l.show(cmd.OutOrStdout(), r); err != nil {
			return err
		}
		// All reports are printed, also after a broken one: one cause often breaks many hostnames, and the reports show
		// which.
		code = worse(code, r.Exit(explain.Severity(l.failOn)))
	}
	if code != 0 {
		return &cli.Failure{Code: code}
	}
	return nil
}

// worse returns the worse of two exit statuses: an error, no verdict, a warning, nothing.
func worse(a, b int) int {
	// The numbers are not in the order of severity: 3 says that nothing is known, which is not as bad as a failure.
	rank := map[int]int{0: 0, 1: 1, cli.ExitUnknown: 2, 2: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// all returns the facts of all hostnames, from queries or from a recording.
func (l *serviceCommand) all(cmd *cobra.Command, args []string) ([]*explain.Facts, error) {
	if l.replay != "" {
		return l.recorded()
	}
	inputs, err := l.inputs(cmd, args)
	if err != nil {
		return nil, err
	}
	g, err := l.source.gatherer(cmd)
	if err != nil {
		return nil, err
	}
	// The dialer of the gatherer refuses private addresses. A lab has a dialer of its own.
	if l.source.private && l.source.Lab == "" {
		g.Connect = new(net.Dialer).DialContext
	}
	progress := newProgressLine(cmd.ErrOrStderr(), l.quiet)
	defer progress.end()
	g.Progress = progress.show
	var out []*explain.Facts
	for _, in := range inputs {
		facts, err := g.Service(cmd.Context(), in)
		if err != nil {
			return nil, asUsage(cmd, err)
		}
		out = append(out, facts)
	}
	if l.record != "" {
		return out, writeAll(l.record, out)
	}
	return out, nil
}

// maxHosts limits the hostnames of one run, because each of them is resolved from the root.
const maxHosts = 100

// inputs returns the hostnames to check.
func (l *serviceCommand) inputs(cmd *cobra.Command, args []string) (out []gather.ServiceInput, err error) {
	var objects *service.Objects
	hosts := args
	if l.file == "" && len(args) == 0 {
		return nil, cli.Usage(cmd, "give the objects with -f FILE, or a hostname with --target")
	}
	if l.file != "" {
		if objects, err = l.objects(cmd.InOrStdin()); err != nil {
			return nil, err
		}
		// With an argument, only that hostname of the file is checked, so that a file of a whole cluster needs no
		// editing.
		if len(args) == 0 {
			hosts = objects.Hosts()
		}
		if len(hosts) == 0 {
			return nil, cli.Fail("add spec.hostnames to the route, or a hostname to the listener",
				"%s: no listener or route has a hostname", l.file)
		}
		if len(hosts) > maxHosts {
			return nil, cli.Fail("give one of them as an argument, or select objects with kubectl get --namespace",
				"%s has %d hostnames, and at most %d are checked at a time", l.file, len(hosts), maxHosts)
		}
	}
	for _, h := range hosts {
		if _, _, err := gather.ParseInput(h); err != nil { // before the servers of any hostname are asked
			return nil, cli.Usage(cmd, "%s", err)
		}
		in, err := gather.ParseService(h, l.target, l.proof, objects)
		if err == nil {
			err = in.ParseProofs(l.proofHTTP, l.proofNS)
		}
		if err != nil {
			return nil, cli.Usage(cmd, "%s", err)
		}
		out = append(out, in)
	}
	return out, nil
}

// objects reads the objects of the file.
func (l *serviceCommand) objects(stdin io.Reader) (*service.Objects, error) {
	in, name := stdin, "standard input"
	if l.file != "-" {
		f, err := os.Open(l.file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in, name = f, l.file
	}
	objects, err := service.Parse(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return objects, nil
}

// recorded reads the facts of a recording.
func (l *serviceCommand) recorded() ([]*explain.Facts, error) {
	f, err := os.Open(l.replay)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	all, err := gather.LoadAll(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.replay, err)
	}
	// A recording of another command has none of the facts that these checks need, so they would find nothing wrong.
	for _, facts := range all {
		if facts.Kind != explain.KindService {
			return nil, cli.Fail(fmt.Sprintf("nameplane %s --replay %s", facts.Kind, l.replay),
				"%s is a recording of %q, not of %q", l.replay, facts.Kind, l.kind)
		}
	}
	return all, nil
}

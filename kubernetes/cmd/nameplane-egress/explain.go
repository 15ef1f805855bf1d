package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/net/idna"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/agent"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/program"
)

const explainLong = `Explains whether pods of a namespace may connect to a destination, which rule of the
EgressFirewall decides, through which name, when that was learned, until when it is
valid, and in which zones (nodes, if each node is a zone) the rules are in force, as the
agents report in the status of the EgressFirewall.

DESTINATION is a name, or an address (IPv6 in brackets when a port follows). A name
is not looked up: the answers that pods received count. Internationalized names may
be given in Unicode.

With --agents it also asks the agents whether their switches have the address. The
agents must accept the certificate.

Exit status: 0 explained, 1 explained with a warning, 3 unknown, 4 invalid command line.`

// explainFlags are the flags of explain.
type explainFlags struct {
	cluster   program.Flags
	protocol  string
	output    cli.Format
	subnets   []string
	agents    []string
	stream    hold.Files
	agentName string
	timeout   time.Duration
}

func newExplainCommand() *cobra.Command {
	var f explainFlags
	var q agent.Question
	c := &cobra.Command{
		Use: "explain NAMESPACE DESTINATION[:PORT]", Short: "Explain which rule decides about a destination",
		Long: explainLong, Args: cli.Args(2, 2),
		Example: `  nameplane-egress explain shop api.example.com:443
  nameplane-egress explain shop 192.0.2.7 --protocol udp -o json
  nameplane-egress explain shop '[2001:db8::7]:443' --agents 192.0.2.10:9500 \
    --tls-cert me.pem --tls-key me.key --tls-ca ca.pem`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.question(c, &q, args); err != nil {
				return err
			}
			return f.explain(c, q)
		},
	}
	fl := c.Flags()
	// explain runs beside the agent, often on the same node: it must not open the ports for metrics and health.
	f.cluster.AddConfig(fl)
	fl.StringVar(&f.protocol, "protocol", "", "`PROTOCOL` tcp, udp or sctp (default: tcp with a port, any without)")
	f.output.AddFlag(c)
	fl.StringVar(&q.Resolvers, "dns-name-resolver-namespace", egress.DefaultNamespace,
		"`NAMESPACE` of the DNSNameResolvers")
	fl.StringSliceVar(&f.subnets, "cluster-subnets", nil,
		"`PREFIX`es of all pods, as given to the agents (default: those of all nodes)")
	fl.BoolVar(&q.Deep, "deep-wildcards", false,
		"names of rules may begin with \"**.\" (default: if a DNSNameResolver does)")
	fl.StringSliceVar(&f.agents, "agents", nil, "ask the agents at these `ADDR:PORT`s")
	addStreamFlags(fl, &f.stream)
	fl.StringVar(&f.agentName, "agent-name", hold.AgentName, "`NAME` in the certificates of agents")
	fl.DurationVar(&f.timeout, "timeout", 10*time.Second,
		"maximum duration; an agent that takes a quarter of it is not asked again")
	return c
}

// protocols are the values of --protocol. Without a value the report covers every protocol.
var protocols = map[string]enforce.Protocol{"": enforce.AnyProtocol, "tcp": enforce.TCP, "udp": enforce.UDP,
	"sctp": enforce.SCTP}

// question parses the command line.
func (f *explainFlags) question(c *cobra.Command, q *agent.Question, args []string) (err error) {
	// Check the name here: the API server would answer "not found", which reads as if the namespace were missing.
	q.Namespace = args[0]
	if wrong := validation.IsDNS1123Label(q.Namespace); len(wrong) > 0 {
		return cli.Usage(c, "%q is not the name of a namespace: %s", q.Namespace, wrong[0])
	}
	if err := needNamespace(c, "dns-name-resolver-namespace", q.Resolvers); err != nil {
		return err
	}
	if f.timeout <= 0 {
		return cli.Usage(c, "--timeout %s: must be longer than 0s", f.timeout)
	}
	if q.ClusterSubnets, err = parsePrefixes(f.subnets); err != nil {
		return cli.Usage(c, "--cluster-subnets %s", err)
	}
	host, port, err := splitDestination(args[1])
	if err != nil {
		return cli.Usage(c, "%s: %s", args[1], err)
	}
	q.Port = port
	if addr, err := netip.ParseAddr(host); err == nil {
		q.Addr = addr.Unmap().WithZone("") // rules and address sets have neither mapped addresses nor zones
	} else if q.Name, err = hostName(host); err != nil {
		return cli.Usage(c, "%q is neither an address nor a name: %s", host, err)
	}
	// Ports belong to a protocol, and TCP is meant in most cases.
	if f.protocol == "" && port != 0 {
		f.protocol = "tcp"
	}
	var ok bool
	if q.Protocol, ok = protocols[strings.ToLower(f.protocol)]; !ok {
		return cli.Usage(c, "--protocol %s: must be tcp, udp or sctp", f.protocol)
	}
	if len(f.agents) > 0 {
		if f.stream.Cert == "" || f.stream.Key == "" || f.stream.CA == "" {
			return cli.Usage(c, "--agents needs --tls-cert, --tls-key and --tls-ca")
		}
		// Without the name, any pod with a certificate of the same CA could answer instead of an agent.
		f.stream.Peers = []string{f.agentName}
		q.Ask = f.asker().all
	}
	return nil
}

// splitDestination separates a port, if there is one. An IPv6 address without brackets has none.
func splitDestination(s string) (host string, port uint16, err error) {
	if _, err := netip.ParseAddr(s); err == nil || !strings.Contains(s, ":") {
		return s, 0, nil
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		return s[1 : len(s)-1], 0, nil
	}
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, errors.New("must be NAME, NAME:PORT, ADDRESS, ADDRESS:PORT or [IPV6]:PORT")
	}
	// Numbers only: names of ports such as https differ between machines.
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%q is not a port", text)
	}
	return host, uint16(n), nil
}

// hostName parses a name that a pod could connect to, in any script. It rejects text that only resembles a name: no
// address is ever learned for it, and the answer that no rule has it would be misleading.
func hostName(s string) (dnsname.Name, error) {
	if _, err := netip.ParsePrefix(s); err == nil {
		return dnsname.Name{}, errors.New("it is a network; ask about one of its addresses")
	}
	// A pattern belongs to a rule. The answer for many names would be different for each of them.
	if strings.Contains(s, "*") {
		return dnsname.Name{}, errors.New("it matches many names; ask about one of them")
	}
	if !utf8.ValidString(s) {
		return dnsname.Name{}, errors.New("it is not UTF-8")
	}
	ascii := s
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		var err error
		// Lookup is the profile for names in queries (RFC 5891 §5). It maps upper case and full-width letters as
		// browsers do.
		if ascii, err = idna.Lookup.ToASCII(s); err != nil {
			return dnsname.Name{}, err
		}
	}
	for _, r := range ascii {
		if r != '.' && r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return dnsname.Name{}, fmt.Errorf("names must not contain %q", r)
		}
	}
	name, err := dnsname.Parse(ascii)
	if err != nil {
		return name, err
	}
	// RFC 1123 §2.1: the last label of a host name is not a number. Such a text is a mistyped address.
	last := strings.TrimSuffix(ascii, ".")
	if last = last[strings.LastIndexByte(last, '.')+1:]; strings.Trim(last, "0123456789") == "" {
		return name, errors.New("the last label of a name is not a number, and not empty")
	}
	return name, nil
}

// asker returns an asker whose limit leaves time for the other agents if some do not answer.
func (f *explainFlags) asker() *asker {
	return &asker{agents: f.agents, limit: f.timeout / 4, gone: map[string]string{}, ask: hold.Dial(f.stream.Dial).Explain}
}

// explain prints the report. The exit status is chosen after that, so that a script gets the report in every case.
func (f *explainFlags) explain(c *cobra.Command, q agent.Question) error {
	program.SetLogger(slog.DiscardHandler) // libraries would otherwise log that there is no logger
	config, err := f.cluster.Config(userAgent)
	if err != nil {
		return err
	}
	s, err := scheme()
	if err != nil {
		return err
	}
	cl, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return &cli.Failure{Code: cli.ExitUnknown, Text: err.Error(), Err: err,
			Hint: "is the cluster up, and is --kubeconfig the right one?"}
	}
	// One limit for the whole command: a person waits for it at a terminal.
	ctx, cancel := context.WithTimeout(c.Context(), f.timeout)
	defer cancel()
	r, err := agent.Explain(ctx, cl, q)
	if meta.IsNoMatchError(err) {
		return program.Undefined(err, c, cli.ExitUnknown)
	}
	if err != nil {
		return &cli.Failure{Code: cli.ExitUnknown, Text: err.Error(), Err: err,
			Hint: "explain reads EgressFirewalls, DNSNameResolvers, Nodes, Namespaces and ServiceCIDRs"}
	}
	if err := f.print(c.OutOrStdout(), r, time.Now()); err != nil {
		return err
	}
	switch {
	// Unknown comes before warnings: a script must not take an incomplete report for an explanation.
	case r.Unknown != "":
		return &cli.Failure{Code: cli.ExitUnknown, Text: r.Unknown}
	case len(r.Warnings) > 0:
		text := "explained, with a warning"
		if n := len(r.Warnings); n > 1 {
			text = fmt.Sprintf("explained, with %d warnings", n)
		}
		return &cli.Failure{Code: cli.ExitWarning, Text: text}
	}
	return nil
}

// print writes the report as JSON, or as text with one paragraph for each address of the destination.
func (f *explainFlags) print(w io.Writer, r agent.Report, now time.Time) error {
	if f.output.JSON() {
		return cli.PrintJSON(w, r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "pods of %s to %s\n", r.Namespace, r.Destination)
	if len(r.InForce) > 0 {
		fmt.Fprintf(&b, "rules in force on %s\n", strings.Join(r.InForce, ", "))
	}
	if len(r.Silent) > 0 {
		fmt.Fprintf(&b, "not said yet by %s\n", strings.Join(r.Silent, ", "))
	}
	for _, a := range r.Answers {
		fmt.Fprintf(&b, "\n%s: %s\n  decided by  %s\n", cmp.Or(a.Address, "any address"), a.Action, a.Text)
		for _, d := range a.Depends {
			fmt.Fprintf(&b, "  unless      %s\n", d)
		}
		if a.Name == "" {
			continue
		}
		fmt.Fprintf(&b, "  name        %s", a.Name)
		if a.Object != "" {
			fmt.Fprintf(&b, " (DNSNameResolver %s)", a.Object)
		}
		b.WriteString("\n")
		for _, l := range a.Learned {
			what := "learned     as %s at %s"
			if l.Failing != "" {
				what = "kept        as %s at %s, when its lookup failed"
			}
			fmt.Fprintf(&b, "  "+what+", valid until %s (%s)\n", l.Name, l.At.UTC().Format(time.RFC3339),
				l.Until.UTC().Format(time.RFC3339), left(l.Until, now))
		}
		// nil means that no agent was asked, and not that no switch has the address.
		if a.Nodes == nil {
			b.WriteString("  programmed  not asked; --agents asks\n")
		}
		for _, n := range a.Nodes {
			fmt.Fprintf(&b, "  programmed  %s\n", nodeText(n))
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "\nwarning: %s\n", warning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// left returns how long an address is still valid.
func left(until, now time.Time) string {
	if d := until.Sub(now).Round(time.Second); d > 0 {
		return d.String() + " from now"
	}
	return "over"
}

// nodeText describes in one line whether the switch of an agent has an address, and since when. A write that is not
// confirmed is not reported as programmed: packets may not pass yet.
func nodeText(n agent.NodeState) string {
	who := n.Agent
	if n.Node != "" {
		who = fmt.Sprintf("%s (%s)", n.Node, n.Agent)
	}
	switch {
	case n.Error != "":
		return who + ": " + n.Error
	case n.Written():
		return fmt.Sprintf("%s: written %s ago, not confirmed now", who, n.Age.Round(time.Second))
	case !n.Programmed:
		return who + ": no"
	case n.Lease > 0:
		return fmt.Sprintf("%s: for %s, leased for %s more", who, n.Age.Round(time.Second), n.Lease.Round(time.Second))
	}
	return fmt.Sprintf("%s: for %s", who, n.Age.Round(time.Second))
}

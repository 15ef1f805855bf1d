package dnsnameresolver

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"

	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// options are the settings of one directive in the Corefile.
type options struct {
	namespaces []string // namespaces of the custom resources; empty means all
	minTTL     time.Duration
	maxTTL     time.Duration
	threshold  int32
	kubeconfig string // empty means the cluster in which the process runs

	wait      waitFor
	timeout   time.Duration // maximum hold
	onTimeout action
	agents    []string
	service   service // the service whose endpoints are the agents
	tls       hold.Files

	lease              time.Duration
	deep               bool
	refuse, permit     []netip.Prefix
	nat64              []netip.Prefix // NAT64 prefixes of the operator's translators
	permitNodes        bool           // allow answers with addresses of nodes
	permitServices     bool
	maxNames, maxBytes int
}

// waitFor is the event that a reply with new addresses waits for.
type waitFor int

const (
	waitAgent  waitFor = iota // the agent of the client's node has programmed the addresses
	waitStatus                // the status has been written
	waitNone
)

// action is the action after the hold of a reply timed out.
type action int

const (
	answer action = iota
	servfail
	drop
)

// service is a Kubernetes service and one of its ports.
type service struct{ namespace, name, port string }

func defaults() options {
	return options{
		minTTL: 5 * time.Second, maxTTL: 24 * time.Hour, threshold: 5, timeout: 250 * time.Millisecond, lease: time.Minute,
		// The API server stores further data with the status. Using four fifths of 256 KiB allows for an error in the
		// estimate of that data.
		maxNames: 1000, maxBytes: 208 << 10,
		tls: hold.Files{Peers: []string{hold.AgentName}},
	}
}

// property is an option of the directive: the number of its arguments, and the function that parses them.
type property struct {
	minArgs, maxArgs int
	set              func(*caddy.Controller, *options, []string) error
}

var properties = map[string]property{
	"namespaces":       plain(1, math.MaxInt, func(o *options, args []string) { o.namespaces = args }),
	"minTTL":           number("minTTL", func(o *options, n int) { o.minTTL = time.Duration(n) * time.Second }),
	"failureThreshold": number("failureThreshold", func(o *options, n int) { o.threshold = int32(n) }),
	"maxTTL":           number("maxTTL", func(o *options, n int) { o.maxTTL = time.Duration(n) * time.Second }),
	"kubeconfig":       plain(1, 1, func(o *options, args []string) { o.kubeconfig = args[0] }),
	"hold":             {1, 2, setHold},
	"on_timeout":       {1, 1, setOnTimeout},
	"agents":           {1, math.MaxInt, setAgents},
	"tls":              plain(3, 4, setTLS),
	"lease":            {1, 1, setLease},
	"deep":             plain(0, 0, func(o *options, _ []string) { o.deep = true }),
	"refuse":           {1, math.MaxInt, setRefuse},
	"permit":           {1, math.MaxInt, setPermit},
	"nat64":            {1, math.MaxInt, setNAT64},
	"max_names":        number("max_names", func(o *options, n int) { o.maxNames = n }),
	"max_bytes":        number("max_bytes", func(o *options, n int) { o.maxBytes = n }),
}

// parse reads the directive. The first three properties and their error messages are those of the stock plugin.
func parse(c *caddy.Controller) (options, error) {
	o := defaults()
	for i := 0; c.Next(); i++ {
		if i > 0 {
			return o, plugin.ErrOnce
		}
		if len(c.RemainingArgs()) > 0 {
			return o, c.ArgErr()
		}
		for c.NextBlock() {
			p, ok := properties[c.Val()]
			if !ok {
				return o, c.Errf("unknown property %q", c.Val())
			}
			args := c.RemainingArgs()
			if len(args) < p.minArgs || len(args) > p.maxArgs {
				return o, c.ArgErr()
			}
			if err := p.set(c, &o, args); err != nil {
				return o, err
			}
		}
	}
	return o, o.check(c)
}

// check validates combinations of options.
func (o *options) check(c *caddy.Controller) error {
	if o.maxTTL < o.minTTL || o.maxTTL > learn.LongestTTL {
		return c.Errf("value of maxTTL should be from %d, which is minTTL, to %d: %d",
			o.minTTL/time.Second, learn.LongestTTL/time.Second, o.maxTTL/time.Second)
	}
	hasAgents := len(o.agents) > 0 || o.service.name != ""
	if hasAgents && o.tls.Cert == "" {
		return c.Err("agents need tls CERT KEY CA: they accept messages from authenticated plugins only")
	}
	if !hasAgents && o.tls.Cert != "" {
		return c.Err("tls is set, but there are no agents: add agents, or remove tls")
	}
	return nil
}

// plain returns a property whose arguments are used without validation.
func plain(minArgs, maxArgs int, set func(*options, []string)) property {
	return property{minArgs, maxArgs, func(_ *caddy.Controller, o *options, args []string) error {
		set(o, args)
		return nil
	}}
}

// number returns a property with one positive integer as its argument.
func number(name string, set func(*options, int)) property {
	return property{1, 1, func(c *caddy.Controller, o *options, args []string) error {
		n, err := strconv.Atoi(args[0])
		if err != nil || n > 1<<31-1 {
			return c.Errf("value of %s should be an integer: %s", name, args[0])
		}
		if n <= 0 {
			return c.Errf("value of %s should be greater than 0: %s", name, args[0])
		}
		set(o, n)
		return nil
	}}
}

// duration parses a duration that is not negative.
func duration(c *caddy.Controller, name, s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil && s == "0" {
		d, err = 0, nil
	}
	if err != nil || d < 0 {
		return 0, c.Errf("value of %s should be a duration such as 250ms: %s", name, s)
	}
	return d, nil
}

// setHold parses `hold DUR`, `hold off` and `hold status [DUR]`.
func setHold(c *caddy.Controller, o *options, args []string) (err error) {
	switch {
	case len(args) == 1 && args[0] == "off":
		o.wait = waitNone
		return nil
	case len(args) > 0 && args[0] == "status":
		o.wait = waitStatus
		args = args[1:]
		if len(args) == 0 {
			return nil
		}
	default:
		o.wait = waitAgent
	}
	if len(args) != 1 {
		return c.ArgErr()
	}
	if o.timeout, err = duration(c, "hold", args[0]); err == nil && o.timeout == 0 {
		return c.Err("value of hold should be greater than 0; to disable it, use `hold off`")
	}
	return err
}

func setOnTimeout(c *caddy.Controller, o *options, args []string) error {
	a, ok := map[string]action{"answer": answer, "servfail": servfail, "drop": drop}[args[0]]
	if !ok {
		return c.Errf("value of on_timeout should be answer, servfail or drop: %s", args[0])
	}
	o.onTimeout = a
	return nil
}

// setAgents parses `agents HOST:PORT...` and `agents service NAMESPACE/NAME:PORT`.
func setAgents(c *caddy.Controller, o *options, args []string) error {
	if args[0] == "service" {
		if len(args) != 2 {
			return c.ArgErr()
		}
		namespace, rest, ok := strings.Cut(args[1], "/")
		name, port, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || namespace == "" || name == "" || port == "" {
			return c.Errf("value of agents service should be NAMESPACE/NAME:PORT: %s", args[1])
		}
		o.service = service{namespace, name, port}
		return nil
	}
	for _, a := range args {
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
			return c.Errf("value of agents should be HOST:PORT: %s", a)
		}
	}
	o.agents = append(o.agents, args...)
	return nil
}

// setTLS parses `tls CERT KEY CA [AGENT-NAME]`.
func setTLS(o *options, args []string) {
	o.tls.Cert, o.tls.Key, o.tls.CA = args[0], args[1], args[2]
	if len(args) == 4 {
		o.tls.Peers = args[3:]
	}
}

func setLease(c *caddy.Controller, o *options, args []string) (err error) {
	o.lease, err = duration(c, "lease", args[0])
	return err
}

func setRefuse(c *caddy.Controller, o *options, args []string) (err error) {
	o.refuse, err = prefixes(c, o.refuse, args)
	return err
}

// setPermit parses `permit NET...`. The words `nodes` and `services` mean those of the cluster.
func setPermit(c *caddy.Controller, o *options, args []string) (err error) {
	nets := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "nodes" || a == "services" })
	o.permitNodes = o.permitNodes || slices.Contains(args, "nodes")
	o.permitServices = o.permitServices || slices.Contains(args, "services")
	o.permit, err = prefixes(c, o.permit, nets)
	return err
}

// setNAT64 parses `nat64 PREFIX...`.
func setNAT64(c *caddy.Controller, o *options, args []string) error {
	for _, a := range args {
		p, err := specialaddr.ParseNAT64(a)
		if err != nil {
			return c.Errf("value of nat64: %v", err)
		}
		o.nat64 = append(o.nat64, p)
	}
	return nil
}

// prefixes parses networks and single addresses.
func prefixes(c *caddy.Controller, out []netip.Prefix, args []string) ([]netip.Prefix, error) {
	for _, a := range args {
		p, err := netip.ParsePrefix(a)
		if addr, err2 := netip.ParseAddr(a); err != nil && err2 == nil {
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, c.Errf("not a network: %s", a)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// key returns a string that is equal for equal options, so that server blocks with the same options share one engine.
func (o options) key() string { return fmt.Sprintf("%+v", o) }

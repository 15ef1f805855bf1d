// Package source builds the gatherer of a scan from the flags of a command or the settings of a server.
//
// Start with Open in this file: Config selects the public internet or a lab, and the servers that may be queried. Ask
// runs a scan with the gatherer.
package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// unused is an address for documentation (RFC 5737) at which there is no server: a reply from it comes from a
// middlebox.
var unused = netip.MustParseAddr("192.0.2.53")

// Config selects the servers that a gatherer may query. The zero value selects the public DNS and its registries.
type Config struct {
	Lab   string // directory of a lab, which is then the whole internet
	Hints string // file of root servers; empty: the public ones. Not with Lab
	// Anchors is a file of trust anchors. Empty: those of the public root, or none if Hints are other root servers. Not
	// with Lab.
	Anchors    string
	Resolvers  string            // file of the resolvers to compare with; empty: the built-in list, or those of the lab
	NoRegistry bool              // do not query registries
	PublicOnly bool              // never send to addresses that are not public. Not with Lab
	Special    specialaddr.Table // which addresses are not public; the command line has no operator, and leaves it empty
	Log        *slog.Logger
}

// NoLabError reports that no lab runs in a directory.
type NoLabError struct{ Dir string }

func (e *NoLabError) Error() string { return "no lab is running in " + e.Dir }

// Open returns a gatherer and the resolvers that it compares with. It sends nothing.
func Open(c Config) (gather.Gatherer, *resolvers.List, error) {
	if c.Lab != "" {
		return openLab(c)
	}
	return openPublic(c, new(net.Dialer).DialContext, listen)
}

// openPublic returns a gatherer for the public DNS.
func openPublic(c Config, dial gather.Dial, listen gather.Listen) (g gather.Gatherer, list *resolvers.List, err error) {
	unusedDial := gather.Only(dial, netip.AddrPortFrom(unused, 53)) // the only address that is queried but not public
	if c.PublicOnly {
		dial, listen = gather.PublicOnly(dial, c.Special), gather.PublicOnlyListen(listen, c.Special)
	}
	g = gather.Gatherer{
		Exchanger:       &resolve.Client{Dial: dial, AsIs: true},
		UnusedExchanger: &resolve.Client{Dial: unusedDial, AsIs: true},
		Prober:          &probe.Prober{Dial: dial, Listen: listen},
		Hints:           iterate.RootHints(),
		Anchors:         secure.RootAnchors(),
		Route:           gather.HasRoute,
		Options:         gather.Options{Unused: unused, NAT64: c.Special.NAT64},
	}
	// Objects name any address: a person who checks a file of somebody else must not reach into the own network with it.
	g.Connect = gather.PublicOnly(dial, c.Special)
	if c.PublicOnly {
		g.Connect = webPorts(g.Connect)
	}
	if !c.NoRegistry {
		g.Registry = &registry.Client{Log: c.Log, Special: c.Special}
	}
	if c.Hints != "" {
		if g.Hints, err = readHints(c.Hints); err != nil {
			return g, nil, err
		}
		if !publicRoot(g.Hints) {
			g.Anchors = nil // a private root does not have the keys of the public one
		}
	}
	if c.Anchors != "" {
		if g.Anchors, err = readAnchors(c.Anchors); err != nil {
			return g, nil, err
		}
	}
	list, err = Resolvers(c.Resolvers)
	if err == nil {
		g.Resolvers = list.Resolvers
	}
	return g, list, err
}

// publicRoot reports whether one of the root servers is a public one.
func publicRoot(hints []iterate.Host) bool {
	var public []netip.Addr
	for _, h := range iterate.RootHints() {
		public = append(public, h.Glue...)
	}
	return slices.ContainsFunc(hints, func(h iterate.Host) bool {
		return slices.ContainsFunc(h.Glue, func(a netip.Addr) bool { return slices.Contains(public, a) })
	})
}

func listen(ctx context.Context, network string) (net.PacketConn, error) {
	return new(net.ListenConfig).ListenPacket(ctx, network, ":0")
}

// openLab returns a gatherer that reaches the servers of a lab and nothing else.
func openLab(c Config) (g gather.Gatherer, list *resolvers.List, err error) {
	l, err := LoadLab(c.Lab)
	if err != nil {
		return g, nil, err
	}
	anchor, err := secure.ParseAnchor(l.Anchor)
	if err != nil {
		return g, nil, err
	}
	g = gather.Gatherer{
		Exchanger: &resolve.Client{Dial: l.Dial, Roots: l.Roots, AsIs: true},
		Prober:    &probe.Prober{Dial: l.Dial, Listen: l.Listen},
		Connect:   onlyLab(l.Dial),
		Roots:     l.Roots,
		Hints:     l.Hints,
		Anchors:   []secure.Anchor{anchor},
		Options: gather.Options{
			Vantage: "lab",
			Rate:    1000, // the servers are on this machine and need no protection
			Timeouts: []time.Duration{
				150 * time.Millisecond, 200 * time.Millisecond, 250 * time.Millisecond},
			Recursion: time.Second, // a resolver of the lab tries all servers of a zone before it answers with stale data
			Settle:    250 * time.Millisecond,
		},
	}
	if !c.NoRegistry {
		g.Registry = &registry.Client{Dial: l.Dial, Roots: l.Roots, Allow: func(netip.Addr) bool { return true }}
	}
	list = &resolvers.List{Name: "lab", Resolvers: LabResolvers(l)}
	if c.Resolvers != "" {
		if list, err = Resolvers(c.Resolvers); err != nil {
			return g, nil, err
		}
	}
	g.Resolvers = list.Resolvers
	return g, list, nil
}

// webPorts returns a Dial for the usual ports of web servers. A server that checks services for others must not become
// a port scanner: a listener can have any port.
func webPorts(dial gather.Dial) gather.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		if !slices.Contains([]uint16{80, 443, 8080, 8443}, to.Port()) {
			return nil, fmt.Errorf("port %d: %w", to.Port(), gather.ErrNotAllowed)
		}
		return dial(ctx, network, address)
	}
}

// onlyLab marks the error for an address without a server in the lab: there is nothing to be said about it.
func onlyLab(dial gather.Dial) gather.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if errors.Is(err, lab.ErrElsewhere) {
			err = gather.ErrNotAllowed
		}
		return conn, err
	}
}

// LoadLab returns the lab that runs in a directory.
func LoadLab(dir string) (*lab.Lab, error) {
	l, err := lab.Load(dir)
	if errors.Is(err, lab.ErrNoLab) {
		return nil, &NoLabError{Dir: dir}
	}
	return l, err
}

// LabResolvers returns the resolvers of a lab. Those with the name of a public resolver have its operator and
// properties.
func LabResolvers(l *lab.Lab) (out []resolvers.Resolver) {
	famous := resolvers.Load()
	for _, r := range l.Resolvers {
		x, ok := famous.Find(r.Name)
		if !ok {
			x = resolvers.Resolver{Operator: r.Name, Vote: true}
		}
		x.ID, x.V4, x.V6 = r.Name, nil, nil
		for _, a := range r.Addrs {
			if a.Is4() {
				x.V4 = append(x.V4, a)
			} else {
				x.V6 = append(x.V6, a)
			}
		}
		out = append(out, x)
	}
	return out
}

// Resolvers reads a list of resolvers; without a file, the built-in one.
func Resolvers(file string) (*resolvers.List, error) {
	if file == "" {
		return resolvers.Load(), nil
	}
	return resolvers.LoadFile(file)
}

// Ask runs a scan of the given kind. explain.Scan ignores types.
func Ask(ctx context.Context, g *gather.Gatherer, kind explain.Kind, input string, types []rr.Type) (*explain.Facts,
	error) {
	switch kind {
	case explain.Scan:
		return g.Scan(ctx, input)
	case explain.Analyze:
		return g.Analyze(ctx, input, types)
	default:
		return g.Compare(ctx, input, types)
	}
}

var stageTexts = map[string]string{
	gather.StageWalk:         "from the root to the name",
	gather.StageServers:      "probing the servers",
	gather.StageAnswers:      "the answers of each server",
	gather.StageSettle:       "waiting for servers with an older version of the zone",
	gather.StageMail:         "the records of mail and CAA",
	gather.StageRegistration: "the registration of the domain",
	gather.StageResolvers:    "the caches of resolvers",
	gather.StageService:      "the certificates and pages",
}

// StageText returns a stage of a scan in words.
func StageText(stage string) string {
	return cmp.Or(stageTexts[stage], stage)
}

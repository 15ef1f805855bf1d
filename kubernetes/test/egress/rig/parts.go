package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Part is one of our programs in its own pod.
type Part struct {
	*cluster.Process
	Pod  *cluster.Pod
	API  *Link // its path to the API server
	Port int   // port of its metrics, on its loopback
}

// Log returns the end of its output.
func (p *Part) Log() string { return p.Pod.Name + ": " + p.Process.Log() }

// part starts a program. Its host name is that of its pod: replicas are identified by it. In arguments, DIR means the
// folder of its files and ADDR its address.
func (s *System) part(n *Node, name string, who account, port int, command ...string) (*Part, error) {
	s.parts++
	name = fmt.Sprintf("%s-%d", name, s.parts)
	p := &Part{Pod: s.Pod(n, DNSNamespace, name), Port: port}
	var err error
	if p.API, err = newLink(s.t, p.Pod.NetNS, s.apiAddr()); err != nil {
		return nil, err
	}
	dir := s.partDir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config, err := s.ConfigFor(who.namespace, who.name)
	if err != nil {
		return nil, err
	}
	if err := s.Kubeconfig(config, filepath.Join(dir, "kubeconfig")); err != nil {
		return nil, err
	}
	for i := range command {
		command[i] = strings.NewReplacer("DIR", dir, "ADDR", p.Pod.Addrs[0].String()).Replace(command[i])
	}
	command[0] = filepath.Join(s.Bin, command[0])
	// Each command execs the next one, so that the first one ends like the others.
	command = append([]string{"unshare", "--uts", "sh", "-c", `hostname "$0" && exec "$@"`, name}, command...)
	p.Process, err = p.Pod.Process(s.t, dir, nil, command...)
	return p, err
}

func (s *System) partDir(name string) string { return filepath.Join(s.dir, name) }

// account is a service account that the manifests in deploy create, with its rights.
type account struct{ namespace, name string }

var (
	managerAccount  = account{Namespace, "nameplane-egress-manager"}
	resolverAccount = account{Namespace, "nameplane-egress-resolver"}
	agentAccount    = account{Namespace, "nameplane-egress-agent"}
	pluginAccount   = account{DNSNamespace, "coredns"}
)

// applyManifests applies the manifests: definitions, accounts and rights. Nothing runs their Deployments.
func (s *System) applyManifests() error {
	dir, err := manifestDir()
	if err != nil {
		return err
	}
	return s.ApplyFS(os.DirFS(dir), "namespace.yaml", "crds.yaml", "manager.yaml", "resolver.yaml", "agent.yaml",
		"coredns.yaml")
}

// manifestDir returns the folder of the manifests in the repository of the working directory.
func manifestDir() (string, error) {
	manifests := filepath.Join("deploy", "kubernetes", "egress")
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, manifests)); err == nil {
			return filepath.Join(dir, manifests), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no folder above the working directory has %s", manifests)
		}
	}
	return "", err
}

// streamPort is the port of the agents.
const streamPort = 9500

func (s *System) startControl() (err error) {
	for _, n := range s.Nodes {
		if n.Agent, err = s.startAgent(n); err != nil {
			return err
		}
	}
	if s.Manager, err = s.part(s.Nodes[0], "manager", managerAccount, 9480, "nameplane-egress", "manager", "--kubeconfig",
		"DIR/kubeconfig",
		"--namespace", Namespace, "--leader-elect=false"); err != nil {
		return err
	}
	s.Resolver, err = s.part(s.Nodes[0], "resolver", resolverAccount, 9482, "nameplane-egress", "resolver", "--kubeconfig",
		"DIR/kubeconfig",
		"--dns-name-resolver-namespace", Namespace, "--coredns-namespace", DNSNamespace, "--coredns-service-name", "kube-dns",
		"--leader-elect=false")
	return err
}

func (s *System) startAgent(n *Node) (*Part, error) {
	subnets := cluster.ClusterSubnets()
	confirms := ""
	if s.opts.Switch {
		confirms = n.Switch
	}
	p, err := s.part(n, "agent", agentAccount, 9484, "nameplane-egress", "agent", "--kubeconfig", "DIR/kubeconfig",
		"--zone", n.Node, "--nb", n.NB, "--dns-name-resolver-namespace", Namespace, "--cluster-subnets",
		fmt.Sprintf("%s,%s", subnets[0], subnets[1]),
		"--listen", fmt.Sprintf("ADDR:%d", streamPort), "--tls-cert", s.agent.cert, "--tls-key", s.agent.key, "--tls-ca",
		s.agent.ca, "--switch", confirms)
	if err == nil {
		n.At = netip.AddrPortFrom(p.Pod.Addrs[0], streamPort)
	}
	return p, err
}

// Replica is a pod of CoreDNS.
type Replica struct {
	*Part
	At netip.AddrPort
}

func (s *System) startDNS() error {
	s.Authority.Say("ready.test", Answer{TTL: time.Second, Addrs: s.Authority.New()})
	for range s.opts.Replicas {
		r, err := s.Replica(s.opts.Plugin)
		if err != nil {
			return err
		}
		s.DNS = append(s.DNS, r)
	}
	if err := s.Publish(); err != nil {
		return err
	}
	for _, r := range s.DNS {
		if err := s.Answers(r); err != nil {
			return err
		}
	}
	return nil
}

// Hold is the default of the directive's hold lines: long enough for a machine that is busy with other work.
const Hold = "hold 5s\non_timeout servfail"

// Replica starts one more CoreDNS, which the resolver does not know. lines are added to the plugin's directive; empty
// means Hold.
func (s *System) Replica(lines string) (*Replica, error) {
	return s.Corefile(s.directive(lines), s.Authority.Addr)
}

// SlowReplica starts one whose upstream takes SlowBy.
func (s *System) SlowReplica() (*Replica, error) {
	return s.Corefile(s.directive(""), s.Authority.Slow)
}

func (s *System) directive(lines string) string {
	var agents []string
	for _, n := range s.Nodes {
		agents = append(agents, n.At.String())
	}
	if lines == "" {
		lines = Hold
	}
	return fmt.Sprintf(`
	ocp_dnsnameresolver {
		namespaces %s
		kubeconfig DIR/kubeconfig
		agents %s
		tls %s %s %s
		%s
	}`, Namespace, strings.Join(agents, " "), s.plugin.cert, s.plugin.key, s.plugin.ca,
		strings.ReplaceAll(lines, "\n", "\n\t\t"))
}

// Corefile starts one more CoreDNS, with these directives in addition to the common ones.
func (s *System) Corefile(directives string, upstream netip.AddrPort) (*Replica, error) {
	name := fmt.Sprintf("coredns-%d", s.parts+1)
	dir := s.partDir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// The last number accepts small TTLs; the default would raise them to five seconds.
	text := fmt.Sprintf(`.:53 {
	errors
	prometheus 127.0.0.1:9153
	%s
	cache 3600 {
		success 20000 3600 0
		denial 20000 5 0
	}
	forward . %s
}
`, strings.ReplaceAll(strings.TrimSpace(directives), "DIR", dir), upstream)
	if err := os.WriteFile(filepath.Join(dir, "Corefile"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := s.part(s.Nodes[0], "coredns", pluginAccount, 9153, "nameplane-coredns", "-conf", "DIR/Corefile")
	if err != nil {
		return nil, err
	}
	return &Replica{Part: p, At: netip.AddrPortFrom(p.Pod.Addrs[0], 53)}, nil
}

// Publish sets the endpoints of CoreDNS to those in DNS, by which the resolver finds them.
func (s *System) Publish() error {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: DNSNamespace, Name: "kube-dns-1",
		Labels: map[string]string{discoveryv1.LabelServiceName: "kube-dns"}}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, r := range s.DNS {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{r.At.Addr().String()}})
	}
	err := s.Admin.Create(ctx, slice)
	if apierrors.IsAlreadyExists(err) {
		err = s.Admin.Update(ctx, slice)
	}
	return err
}

// Answers waits until a replica answers and is connected to every agent.
func (s *System) Answers(r *Replica) error {
	if err := Within(Soon, func() error {
		m, _, err := Ask(r.Pod, r.At, "ready.test.", dns.TypeA, time.Second)
		if err == nil && m.Rcode != dns.RcodeSuccess {
			err = errors.New(dns.RcodeToString[m.Rcode])
		}
		return err
	}); err != nil {
		return fmt.Errorf("CoreDNS: %w", err)
	}
	return nil
}

// Holds reports whether a replica holds the answer to a new name, that is, whether it knows the rule for it. Then the
// address is in the set when the answer arrives. The number of held answers is no evidence: the resolver queries names
// all the time.
func (r *Replica) Holds(p *cluster.Pod, n *Node, pattern, name string) error {
	m, _, err := Ask(p, r.At, name, dns.TypeA, 10*time.Second)
	if err != nil {
		return err
	}
	learned, err := n.Learned(pattern)
	if err != nil {
		return err
	}
	if addrs := Addrs(m); len(addrs) == 0 || !slices.Contains(learned, addrs[0]) {
		return fmt.Errorf("%s answers with %v for %s, which is not in the address set", r.Pod.Name, addrs, name)
	}
	return nil
}

// Metrics returns the metrics of a part, by their names with labels.
func (p *Part) Metrics() (map[string]float64, error) {
	hc := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			d := p.Pod.Dial(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(p.Port)), 5*time.Second)
			if d.Err != nil {
				return nil, d.Err
			}
			return d.Conn, nil
		}}}
	resp, err := hc.Get("http://part/metrics")
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := cutLast(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && !strings.HasPrefix(line, "#") {
			out[name] = v
		}
	}
	return out, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

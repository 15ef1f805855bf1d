// Package rig runs the whole egress firewall by name on one machine: the API server and OVN of package cluster, a
// scripted DNS authority, CoreDNS replicas with our plugin in pods, and our controllers and agents as processes.
//
// Start with Start, which returns a System. Tests and benchmarks use it.
package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Namespace is the namespace of the DNSNameResolvers, as in OVN-Kubernetes.
const Namespace = "ovn-kubernetes"

// DNSNamespace is the namespace of the CoreDNS pods.
const DNSNamespace = "kube-system"

// Soon is the limit for events that must happen. Alone they take a second or two; other packages may be compiling at
// the same time.
const Soon = 60 * time.Second

// Options configure a System.
type Options struct {
	Nodes    int    // default 1
	Replicas int    // CoreDNS replicas on the first node; default 2
	Plugin   string // additional lines for the directive of the plugin
	Bin      string // folder with our programs; default: they are built
	Fsync    bool   // see cluster.Options
	Switch   bool   // the switch of a node confirms, not the northbound database
}

// System is a cluster with all its running parts.
type System struct {
	*cluster.Cluster
	Admin     client.Client // knows our types
	Nodes     []*Node
	DNS       []*Replica
	Manager   *Part
	Resolver  *Part
	Authority *Authority
	Bin       string

	t             cluster.T
	opts          Options
	agent, plugin pair // certificates and keys
	dir           string
	parts         int
}

// Node is a node with the agent of its zone.
type Node struct {
	*cluster.OVN
	Agent *Part
	At    netip.AddrPort // address of the agent's stream

	mu   sync.Mutex // guards the fields below
	db   *ovn.DB    // for reading the rows; nil if not connected
	stop func()     // disconnects db
}

// Start starts a system and returns when all its parts answer.
func Start(t cluster.T, opts Options) *System {
	t.Helper()
	begun := time.Now()
	opts.Nodes, opts.Replicas = max(opts.Nodes, 1), max(opts.Replicas, 2)
	s := &System{t: t, opts: opts, Bin: opts.Bin}
	for _, step := range []func() error{s.prepare, s.startCluster, s.startNodes, s.startControl, s.startDNS} {
		if err := step(); err != nil {
			t.Fatalf("start the system: %v\n%s", err, s.Logs())
		}
	}
	t.Logf("the system was ready after %v", time.Since(begun).Round(time.Millisecond))
	return s
}

func (s *System) prepare() (err error) {
	if s.dir, err = os.MkdirTemp("", "egress-"); err != nil {
		return err
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(s.dir) })
	if s.agent, s.plugin, err = writeKeys(s.dir); err != nil || s.Bin != "" {
		return err
	}
	s.Bin = filepath.Join(s.dir, "bin")
	return Build(s.Bin)
}

// Build builds our programs into a folder, with the flags of go test, so that most packages are already compiled.
func Build(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator),
		"github.com/nameplane/nameplane/kubernetes/cmd/nameplane-egress",
		"github.com/nameplane/nameplane/kubernetes/cmd/nameplane-coredns")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

func (s *System) startCluster() error {
	s.Cluster = cluster.Start(s.t, cluster.Options{Fsync: s.opts.Fsync})
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), apiv1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	var err error
	if s.Admin, err = client.New(s.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return errors.Join(s.CreateNamespace(DNSNamespace, nil), s.applyManifests())
}

func (s *System) startNodes() error {
	ext := cluster.StartExternal(s.t)
	ext.Echo(s.t, 80)
	ext.Echo(s.t, 443)
	s.Authority = StartAuthority(s.t, ext)
	for i := range s.opts.Nodes {
		n := &Node{OVN: cluster.StartOVN(s.t, cluster.OVNOptions{Number: i, External: ext})}
		s.t.Cleanup(n.Disconnect)
		s.Nodes = append(s.Nodes, n)
		if err := errors.Join(withoutZeroSNAT(n.OVN), s.announce(n)); err != nil {
			return err
		}
	}
	return nil
}

// database returns a copy of the northbound database that follows it.
func (n *Node) database() *ovn.DB {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.db == nil {
		n.db = ovn.NewDB(ovn.Options{Address: n.NB, ManageGroups: true, Keep: true, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		db := n.db
		running.Go(func() { _ = db.Run(ctx) })
		n.stop = func() {
			cancel()
			running.Wait()
		}
	}
	return n.db
}

// Disconnect disconnects the copy until it is needed again: it must not affect measurements.
func (n *Node) Disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.db != nil {
		n.stop()
		n.db = nil
	}
}

// withoutZeroSNAT prevents OVN from letting the switch choose another source port for a connection that resembles an
// older one. The userspace datapath of OVS 3.1 crashes after some thousand such connections: "conntrack.c:1063:
// assertion conn->conn_type == CT_CONN_TYPE_DEFAULT failed". The kernel datapath was not tried.
func withoutZeroSNAT(o *cluster.OVN) error {
	return Within(Soon, func() error {
		id, err := o.VSCtl("--bare", "--columns=_uuid", "list", "Datapath")
		if err == nil && id == "" {
			err = errors.New("there is no datapath yet")
		}
		if err != nil {
			return err
		}
		_, err = o.VSCtl("set", "Datapath", id, "capabilities:ct_zero_snat=false")
		return err
	})
}

// announce creates the Node object, with the annotations of OVN-Kubernetes.
func (s *System) announce(n *Node) error {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	return s.Admin.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Node, Annotations: map[string]string{
		"k8s.ovn.org/zone-name":    n.Node,
		"k8s.ovn.org/node-subnets": fmt.Sprintf(`{"default":[%q,%q]}`, n.Pods[0], n.Pods[1]),
	}}})
}

// Pod creates a pod, on the switch of a node and as an object.
func (s *System) Pod(n *Node, namespace, name string) *cluster.Pod {
	s.t.Helper()
	if err := s.CreateNamespace(namespace, nil); err != nil {
		s.t.Fatalf("%v", err)
	}
	p := n.Pod(s.t, namespace, name)
	s.podObject(n, p, namespace, name, false)
	return p
}

// HostPod creates a pod in the host network: it has no port on the switch, and sends as the node does.
func (s *System) HostPod(n *Node, namespace, name string) *cluster.Pod {
	s.t.Helper()
	p := n.Host(s.t)
	s.podObject(n, p, namespace, name, true)
	return p
}

func (s *System) podObject(n *Node, p *cluster.Pod, namespace, name string, host bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{HostNetwork: host, NodeName: n.Node,
			Containers: []corev1.Container{{Name: "main", Image: "example.org/main"}}}}
	if err := s.Admin.Create(ctx, obj); err != nil {
		s.t.Fatalf("%v", err)
	}
	obj.Status.PodIP = p.Addrs[0].String()
	for _, a := range p.Addrs {
		obj.Status.PodIPs = append(obj.Status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	if err := s.Admin.Status().Update(ctx, obj); err != nil {
		s.t.Fatalf("%v", err)
	}
}

// Logs returns the ends of the output of all parts.
func (s *System) Logs() string {
	var out string
	for _, p := range s.Parts() {
		out += p.Log() + "\n"
	}
	for _, n := range s.Nodes {
		for _, p := range []*cluster.Process{n.Vswitchd, n.Controller, n.Northd} {
			out += fmt.Sprintf("%s, ended %v: %s\n", n.Node, p.Ended(), p.Log())
		}
	}
	return out
}

// Parts returns all running parts.
func (s *System) Parts() []*Part {
	var out []*Part
	for _, n := range s.Nodes {
		if n.Agent != nil {
			out = append(out, n.Agent)
		}
	}
	for _, r := range s.DNS {
		out = append(out, r.Part)
	}
	for _, p := range []*Part{s.Manager, s.Resolver} {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (s *System) apiAddr() string {
	u, err := url.Parse(s.Config.Host)
	if err != nil {
		return s.Config.Host
	}
	return u.Host
}

// Within retries until there is no error, for a limited time, and returns the last one. The pauses leave most of the
// machine to the tested parts.
func Within(limit time.Duration, try func() error) error {
	for end := time.Now().Add(limit); ; {
		begun := time.Now()
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within %v: %w", limit, err)
		}
		time.Sleep(min(max(2*time.Since(begun), 10*time.Millisecond), 100*time.Millisecond))
	}
}

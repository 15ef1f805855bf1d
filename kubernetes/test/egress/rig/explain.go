package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/controller/agent"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// Tuple is a destination, and the verdicts of explain, ovn-trace and a packet about it.
type Tuple struct {
	To        netip.AddrPort
	Protocol  enforce.Protocol
	Explained bool // nameplane-egress explain says allowed
	Traced    bool // ovn-trace says allowed
	Passed    bool // a packet reached it, and a reply came back
}

func (t Tuple) String() string {
	return fmt.Sprintf("%s %s: explained %v, traced %v, passed %v", t.Protocol, t.To, t.Explained, t.Traced, t.Passed)
}

// passTime is the maximum time until the reply to a packet. A dropped packet takes all of it.
const passTime = 2 * time.Second

// Judge checks destinations chosen at random among these, on the ports where the internet answers.
func (s *System) Judge(n *Node, pod *cluster.Pod, dst []netip.Addr, r *rand.Rand, count int) ([]Tuple, error) {
	out := make([]Tuple, count)
	for i := range out {
		out[i].To = netip.AddrPortFrom(dst[r.IntN(len(dst))], []uint16{80, 443}[r.IntN(2)])
		out[i].Protocol = []enforce.Protocol{enforce.TCP, enforce.UDP}[r.IntN(2)]
	}
	if err := n.Sync(); err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	errs := make([]error, count)
	slots := make(chan struct{}, 32) // most of them wait for a packet that will not come
	for i := range out {
		t := &out[i]
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var e1, e2 error
			t.Explained, e1 = s.explained(pod.Namespace, *t)
			t.Traced, e2 = n.traced(pod, *t)
			t.Passed = passes(pod, *t)
			errs[i] = errors.Join(e1, e2)
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

func (s *System) explained(namespace string, t Tuple) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	r, err := agent.Explain(ctx, s.Admin,
		agent.Question{Namespace: namespace, Addr: t.To.Addr(), Port: t.To.Port(), Protocol: t.Protocol,
			Resolvers: Namespace, ClusterSubnets: cluster.ClusterSubnets()})
	return allows(r, err)
}

func allows(r agent.Report, err error) (bool, error) {
	if err == nil && len(r.Answers) != 1 {
		err = fmt.Errorf("explain %s: %d answers: %s", r.Destination, len(r.Answers), r.Unknown)
	}
	return err == nil && r.Answers[0].Action == enforce.Allow.String(), err
}

// Explain runs the command, which queries the agents too.
func (s *System) Explain(namespace, destination string) (agent.Report, error) {
	var r agent.Report
	config := filepath.Join(s.dir, "kubeconfig")
	if err := s.Kubeconfig(s.Config, config); err != nil {
		return r, err
	}
	var at []string
	for _, n := range s.Nodes {
		at = append(at, n.At.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), Soon)
	defer cancel()
	// Run it in a pod, from which both the API server and the agents can be reached.
	cmd := s.Manager.Pod.Command(ctx, filepath.Join(s.Bin, "nameplane-egress"), "explain", namespace, destination, "-o",
		"json", "--kubeconfig", config,
		"--agents", strings.Join(at, ","), "--tls-cert", s.plugin.cert, "--tls-key", s.plugin.key, "--tls-ca", s.plugin.ca)
	text, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != 1 { // 1 means explained, with a warning
		return r, fmt.Errorf("explain: %w\n%s", err, exit.Stderr)
	}
	return r, json.Unmarshal(text, &r)
}

// traced runs ovn-trace for the first packet of a connection.
func (n *Node) traced(pod *cluster.Pod, t Tuple) (bool, error) {
	ip, from := "ip4", pod.Addrs[0]
	if t.To.Addr().Is6() {
		ip, from = "ip6", pod.Addrs[1]
	}
	l4 := strings.ToLower(t.Protocol.String())
	gate := n.Pods[0].Addr().Next().As4()
	packet := fmt.Sprintf(`inport == "%s" && eth.src == %s && eth.dst == 0a:58:%02x:%02x:%02x:%02x && `+
		`ip.ttl == 64 && %s.src == %s && %s.dst == %s && %s && %s.src == 40000 && %s.dst == %d`,
		pod.Port, pod.MAC, gate[0], gate[1], gate[2], gate[3], ip, from, ip, t.To.Addr(), l4, l4, l4, t.To.Port())
	out, err := n.Trace(packet, "--minimal", "--ct=new", "--ct=new", "--ct=new", "--ct=new")
	return strings.Contains(out, `output("internet")`), err
}

func passes(pod *cluster.Pod, t Tuple) bool {
	if t.Protocol == enforce.TCP {
		return Connects(pod, t.To.Addr(), t.To.Port(), passTime)
	}
	c, err := pod.DialUDP(t.To)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(passTime)); err != nil {
		return false
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		return false
	}
	_, err = c.Read(make([]byte, 16))
	return err == nil
}

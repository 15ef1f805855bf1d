package cluster

import (
	"context"
	"fmt"
	"net/netip"
)

// Addresses between the router of a node and the internet.
const (
	transit4 = "100.64.%d.%d"
	transit6 = "fd00:100:64:%x::%d"
)

// connect creates the logical network: pods - switch - router - switch - internet.
func (o *OVN) connect(t T) error {
	n := o.number
	router4, router6 := fmt.Sprintf(transit4, n, 1), fmt.Sprintf(transit6, n, 1)
	outside4, outside6 := fmt.Sprintf(transit4, n, 2), fmt.Sprintf(transit6, n, 2)
	gate4, gate6 := o.Pods[0].Addr().Next(), o.Pods[1].Addr().Next()
	if _, err := o.NBCtl(
		"ls-add", o.Node, "--", "lr-add", "cluster_router", "--", "ls-add", "outside",
		"--", "lrp-add", "cluster_router", "rtos-"+o.Node, mac(gate4), gate4.String()+"/24", gate6.String()+"/64",
		"--", "lsp-add", o.Node, "stor-"+o.Node, "--", "lsp-set-type", "stor-"+o.Node, "router",
		"--", "lsp-set-addresses", "stor-"+o.Node, "router", "--", "lsp-set-options", "stor-"+o.Node, "router-port=rtos-"+
			o.Node,
		"--", "lrp-add", "cluster_router", "rtoo", mac(netip.MustParseAddr(router4)), router4+"/24", router6+"/64",
		"--", "lsp-add", "outside", "otor", "--", "lsp-set-type", "otor", "router",
		"--", "lsp-set-addresses", "otor", "router", "--", "lsp-set-options", "otor", "router-port=rtoo",
		"--", "lsp-add", "outside", "internet",
		"--", "lsp-set-addresses", "internet",
		fmt.Sprintf("%s %s %s", mac(netip.MustParseAddr(outside4)), outside4, outside6),
		"--", "lr-route-add", "cluster_router", "0.0.0.0/0", outside4, "--", "lr-route-add", "cluster_router", "::/0",
		outside6,
	); err != nil {
		return err
	}
	if err := waitFile(o.file("br-int.mgmt"), o.Controller); err != nil {
		return err
	}
	name := fmt.Sprintf("node%d", n)
	if err := o.plug(o.External.NetNS, name, "internet", "ext"); err != nil {
		return err
	}
	return o.External.ip(
		fmt.Sprintf("link set %s address %s up", name, mac(netip.MustParseAddr(outside4))),
		fmt.Sprintf("address add %s/24 dev %s", outside4, name),
		fmt.Sprintf("address add %s/64 dev %s nodad", outside6, name),
		fmt.Sprintf("route add %s via %s", o.Pods[0], router4), fmt.Sprintf("route add %s via %s", o.Pods[1], router6),
	)
}

// plug connects a namespace to the switch. The name of the port is that of its logical port.
func (o *OVN) plug(p *NetNS, inside, logical, outside string) error {
	if err := o.host.ip(
		fmt.Sprintf("link add name %s type veth peer name %s netns %s", outside, inside, p.Path()),
		fmt.Sprintf("link set %s up", outside),
	); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	// Otherwise packets leave without checksums, which a device would fill in that does not exist, and the switch drops
	// them.
	if out, err := p.Command(ctx, "ethtool", "-K", inside, "tx", "off").CombinedOutput(); err != nil {
		return fmt.Errorf("ethtool: %w\n%s", err, out)
	}
	_, err := o.VSCtl("add-port", "br-int", outside, "--", "set", "Interface", outside, "external_ids:iface-id="+logical)
	return err
}

// Pod is a network namespace on the switch.
type Pod struct {
	*NetNS
	Namespace, Name string
	Port            string       // logical switch port: NAMESPACE_NAME
	MAC             string       // MAC address of its interface
	Addrs           []netip.Addr // IPv4, IPv6
}

// Pod creates a pod and returns when the switch has it. Its logical port is like those of OVN-Kubernetes: named
// NAMESPACE_NAME, with external_ids pod=true and namespace. The caller creates the Pod object.
func (o *OVN) Pod(t T, namespace, name string) *Pod {
	t.Helper()
	p, err := o.pod(t, namespace, name)
	if err != nil {
		t.Fatalf("pod %s/%s: %v", namespace, name, err)
	}
	return p
}

// Host creates the node itself, as OVN-Kubernetes has it on the switch: with its own port k8s-NODE, which belongs to no
// pod. Pods in the host network use it.
func (o *OVN) Host(t T) *Pod {
	t.Helper()
	p, err := o.attach(t, "k8s-"+o.Node)
	if err != nil {
		t.Fatalf("host of %s: %v", o.Node, err)
	}
	return p
}

func (o *OVN) pod(t T, namespace, name string) (*Pod, error) {
	p, err := o.attach(t, namespace+"_"+name, "external_ids:pod=true", "external_ids:namespace="+namespace)
	if err == nil {
		p.Namespace, p.Name = namespace, name
	}
	return p, err
}

// attach creates a namespace on the switch, with a logical port that has these columns in addition to its addresses.
func (o *OVN) attach(t T, port string, columns ...string) (*Pod, error) {
	netns, err := newNetNS(t)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.last++
	n := o.last
	o.mu.Unlock()
	p := &Pod{NetNS: netns, Port: port, Addrs: []netip.Addr{host(o.Pods[0], n), host(o.Pods[1], n)}}
	p.MAC = mac(p.Addrs[0])
	if err := o.plug(netns, "eth0", p.Port, fmt.Sprintf("p%d", n)); err != nil {
		return nil, err
	}
	if err := netns.ip(
		"link set eth0 address "+p.MAC+" up",
		fmt.Sprintf("address add %s/24 dev eth0", p.Addrs[0]), fmt.Sprintf("address add %s/64 dev eth0 nodad", p.Addrs[1]),
		"route add default via "+o.Pods[0].Addr().Next().String(), "route add default via "+o.Pods[1].Addr().Next().String(),
	); err != nil {
		return nil, err
	}
	args := []string{"--wait=hv", "lsp-add", o.Node, p.Port, "--", "lsp-set-addresses", p.Port,
		fmt.Sprintf("%s %s %s", p.MAC, p.Addrs[0], p.Addrs[1])}
	if len(columns) > 0 {
		args = append(append(args, "--", "set", "Logical_Switch_Port", p.Port), columns...)
	}
	_, err = o.NBCtl(args...)
	return p, err
}

// Remove removes the pod's port from the logical switch, as when the pod is deleted. The namespace ends with the test.
func (o *OVN) Remove(p *Pod) error {
	_, err := o.NBCtl("--wait=hv", "lsp-del", p.Port)
	return err
}

// host returns the nth address of a prefix.
func host(p netip.Prefix, n int) netip.Addr {
	b := p.Addr().AsSlice()
	b[len(b)-1] = byte(n)
	a, _ := netip.AddrFromSlice(b)
	return a
}

// mac derives a MAC address from an IPv4 address like OVN-Kubernetes.
func mac(a netip.Addr) string {
	b := a.As4()
	return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

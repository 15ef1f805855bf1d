package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/nameplane/nameplane/kubernetes/api/crds"
	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// rig is an agent with a real API server and a real switch.
type rig struct {
	*testing.T
	agent  *agent
	client client.Client
	ovn    *cluster.OVN
	pod    *cluster.Pod
}

const port = 7

func startRig(t *testing.T, o cluster.OVNOptions) *rig {
	cluster.Need(t)
	c := cluster.Start(t, cluster.Options{})
	r := &rig{T: t, ovn: cluster.StartOVN(t, o)}
	r.ovn.External.Echo(t, port)
	r.must(c.ApplyYAML(crds.YAML()))
	r.must(c.CreateNamespace("shop", map[string]string{logAnnotation: `{"deny":"info"}`}))
	r.must(c.CreateNamespace(egress.DefaultNamespace, nil))
	r.pod = r.ovn.Pod(t, "shop", "web")
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, networkingv1.AddToScheme, apiv1.AddToScheme,
		v1alpha1.AddToScheme, dnsv1alpha1.AddToScheme} {
		r.must(add(s))
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	options := Options{Zone: r.ovn.Node, Namespace: egress.DefaultNamespace, ClusterSubnets: cluster.ClusterSubnets(),
		PodPrefixes: r.ovn.Pods, KeepFor: time.Hour, Log: log, DNSNames: true,
		NB: ovn.Options{Address: r.ovn.NB, ManageGroups: true, Switch: r.ovn.Switch}}
	mgr, err := ctrl.NewManager(c.Config,
		ctrl.Options{Scheme: s, Cache: Cache(options), Metrics: metricsserver.Options{BindAddress: "0"}})
	r.must(err)
	r.agent, err = setup(mgr, options)
	r.must(err)
	r.client, err = client.New(c.Config, client.Options{Scheme: s})
	r.must(err)
	r.node(r.ovn.Node)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		r.must(<-done)
	})
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// node creates a node of the zone.
func (r *rig) node(name string) {
	r.Helper()
	r.must(r.client.Create(r.Context(),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{node.ZoneAnnotation: r.ovn.Node}}}))
}

// soon polls until f returns true, and returns the elapsed time.
func (r *rig) soon(what string, f func() bool) time.Duration {
	r.Helper()
	begun := time.Now()
	for !f() {
		if time.Since(begun) > 20*time.Second {
			acls, _ := r.ovn.NBCtl("list", "ACL")
			r.Fatalf("not in time: %s\n%s", what, acls)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}

func (r *rig) nb(args ...string) string {
	r.Helper()
	out, err := r.ovn.NBCtl(args...)
	r.must(err)
	return out
}

// learn writes the status of a DNSNameResolver, as the plugin would.
func (r *rig) learn(name string, ips ...string) {
	r.Helper()
	obj := &v1alpha1.DNSNameResolver{}
	r.must(r.client.Get(r.Context(), client.ObjectKey{Namespace: egress.DefaultNamespace, Name: name}, obj))
	now := metav1.Now()
	entry := v1alpha1.DNSNameResolverResolvedName{DNSName: obj.Spec.Name,
		ResolvedAddresses: []v1alpha1.DNSNameResolverResolvedAddress{}}
	for _, ip := range ips {
		entry.ResolvedAddresses = append(entry.ResolvedAddresses,
			v1alpha1.DNSNameResolverResolvedAddress{IP: ip, TTLSeconds: 30, LastLookupTime: &now})
	}
	obj.Status.ResolvedNames = []v1alpha1.DNSNameResolverResolvedName{entry}
	r.must(r.client.Status().Update(r.Context(), obj))
}

func (r *rig) reaches(ip string) bool {
	d := r.pod.Dial(netip.AddrPortFrom(addr(ip), port), 300*time.Millisecond)
	if d.Conn != nil {
		_ = d.Conn.Close()
	}
	return d.Conn != nil
}

func alive(c net.Conn) bool {
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write([]byte("x")); err != nil {
		return false
	}
	_, err := c.Read(make([]byte, 1))
	return err == nil
}

// TestReal runs an agent through a typical day. A firewall is created. Addresses arrive by the stream and by the API,
// and are removed. Rows are edited by hand, the database restarts, and the firewall is deleted.
func TestReal(t *testing.T) { day(startRig(t, cluster.OVNOptions{})) }

// TestRealLater is the same with an OVN whose ACLs have tiers, which is closer to current clusters.
func TestRealLater(t *testing.T) { day(startRig(t, cluster.OVNOptions{From: cluster.Later(t)})) }

func day(r *rig) {
	t := r.T
	r.must(r.client.Create(t.Context(),
		&v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Namespace: egress.DefaultNamespace, Name: "dns-1"},
			Spec: v1alpha1.DNSNameResolverSpec{Name: "www.example.com."}}))
	deny4 := apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "0.0.0.0/0"}}
	deny6 := apiv1.EgressFirewallRule{Type: "Deny", To: apiv1.EgressFirewallDestination{CIDRSelector: "::/0"}}
	firewall := &apiv1.EgressFirewall{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "default"},
		Spec: apiv1.EgressFirewallSpec{Egress: []apiv1.EgressFirewallRule{allow("www.example.com"), deny4, deny6}}}
	if !r.reaches("192.0.2.1") {
		t.Fatal("the internet is not there")
	}
	r.must(r.client.Create(t.Context(), firewall))
	r.soon("the zone says applied", func() bool {
		r.must(r.client.Get(t.Context(), client.ObjectKeyFromObject(firewall), firewall))
		return slices.Equal(firewall.Status.Messages, []string{r.ovn.Node + ": EgressFirewall Rules applied"})
	})
	if r.reaches("192.0.2.1") || r.reaches("2001:db8::1") {
		t.Error("denied, and still reached")
	}
	r.tiers()
	local := r.agent.db.(*ovn.DB).LocalConfirms
	r.soon("the switch confirms by itself", local)
	if lost := r.stream("the switch confirms", 0); lost > 0 {
		t.Errorf("%d first SYNs were lost where the switch confirms by itself", lost)
	}
	r.neighbours("198.51.100.%d", "2001:db8:7::%x")
	r.node("another")
	r.soon("the switch no longer speaks for the zone", func() bool { return !local() })
	if lost := r.stream("the database confirms", 100); lost > 0 {
		t.Errorf("%d first SYNs were lost", lost)
	}
	r.neighbours("198.19.0.%d", "2001:db8:8::%x")
	r.established()
	r.nodes(firewall)
	r.logs()
	r.reports()
	r.repairs()
	r.restarts()
	r.must(r.client.Delete(t.Context(), firewall))
	r.soon("no row is left", func() bool {
		return r.nb("--bare", "--columns=_uuid", "list", "ACL")+r.nb("--bare", "--columns=_uuid", "list", "Address_Set")+
			r.nb("--bare", "--columns=_uuid", "list", "Port_Group") == ""
	})
	// the switch follows the database
	r.soon("reached without a firewall", func() bool { return r.reaches("192.0.2.77") })
}

// tiers checks the tier of each ACL, if ACLs have tiers.
func (r *rig) tiers() {
	has, err := r.ovn.HasColumn("ACL", "tier")
	r.must(err)
	if !has {
		return
	}
	for _, tier := range strings.Fields(r.nb("--bare", "--columns=tier", "list", "ACL")) {
		if tier != "2" {
			r.Errorf("an ACL is in tier %s", tier)
		}
	}
}

// stream programs new addresses, connects at once, and counts the lost SYNs.
func (r *rig) stream(how string, from int) (lost int) {
	var took []time.Duration
	for i := from; i < from+100; i++ {
		ip := fmt.Sprintf("198.18.0.%d", i)
		if i%2 == 1 {
			ip = fmt.Sprintf("2001:db8::%x", 256+i)
		}
		begun := time.Now()
		r.must(program(r.agent.engine, www, time.Minute, ip))
		took = append(took, time.Since(begun))
		d := r.pod.Dial(netip.AddrPortFrom(addr(ip), port), 3*time.Second)
		r.must(d.Err)
		_ = d.Conn.Close()
		lost += d.Lost
	}
	slices.Sort(took)
	r.Logf("%s: p50 %v, p90 %v, p99 %v; lost SYNs %d of %d", how, took[50], took[90], took[99], lost, len(took))
	return lost
}

// neighbours adds addresses next to others that the switch is denying at the same time. The switch must not cache the
// denial for both.
func (r *rig) neighbours(formats ...string) {
	for i := range 20 {
		for _, format := range formats {
			if d := r.pod.Dial(netip.AddrPortFrom(addr(fmt.Sprintf(format, 2*i+1)), port), 20*time.Millisecond); d.Conn != nil {
				r.Fatal("denied, and still reached")
			}
			ip := fmt.Sprintf(format, 2*i)
			r.must(program(r.agent.engine, www, time.Minute, ip))
			d := r.pod.Dial(netip.AddrPortFrom(addr(ip), port), 3*time.Second)
			r.must(d.Err)
			_ = d.Conn.Close()
			if d.Lost > 0 {
				r.Errorf("the first SYN to %s was lost, after one to its neighbour was refused", ip)
			}
		}
	}
}

// established checks that a connection outlives its address, and that a new one is refused.
func (r *rig) established() {
	r.learn("dns-1", "192.0.2.7", "2001:db8::7")
	for _, ip := range []string{"192.0.2.7", "2001:db8::7"} {
		r.soon(ip+" is reached", func() bool { return r.reaches(ip) })
	}
	old4 := r.pod.Dial(netip.AddrPortFrom(addr("192.0.2.7"), port), 3*time.Second)
	old6 := r.pod.Dial(netip.AddrPortFrom(addr("2001:db8::7"), port), 3*time.Second)
	r.must(old4.Err)
	r.must(old6.Err)
	defer func() { _ = old4.Conn.Close(); _ = old6.Conn.Close() }()
	if !alive(old4.Conn) || !alive(old6.Conn) {
		r.Fatal("connected, and dead")
	}
	r.learn("dns-1", "192.0.2.8")
	for _, ip := range []string{"192.0.2.7", "2001:db8::7"} {
		r.soon(ip+" is no longer reached", func() bool { return !r.reaches(ip) })
	}
	for range 3 {
		if !alive(old4.Conn) || !alive(old6.Conn) {
			r.Error("the connection died with its address")
		}
	}
	if r.reaches("192.0.2.7") || !r.reaches("192.0.2.8") {
		r.Error("new connections follow the addresses")
	}
}

// idle waits until the agent has checked its own writes. Otherwise that pass would find the next change whether or not
// it is detected.
func (r *rig) idle() {
	r.Helper()
	passes, since := -1, time.Now()
	r.soon("the agent is idle", func() bool {
		if n := r.agent.engine.begun(); n != passes {
			passes, since = n, time.Now()
		}
		return time.Since(since) > 3*repairDelay
	})
}

// nodes checks a rule that selects nodes by labels, while nodes and labels change.
func (r *rig) nodes(firewall *apiv1.EgressFirewall) {
	ingress := apiv1.EgressFirewallRule{Type: "Allow",
		To: apiv1.EgressFirewallDestination{NodeSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"ingress": "yes"}}},
		Ports: []apiv1.EgressFirewallPort{{Protocol: "TCP", Port: port}, {Protocol: "SCTP", Port: port}}}
	before := slices.Clone(firewall.Spec.Egress)
	change := func(rules []apiv1.EgressFirewallRule) {
		r.Helper()
		r.must(r.client.Get(r.Context(), client.ObjectKeyFromObject(firewall), firewall))
		firewall.Spec.Egress = rules
		r.must(r.client.Update(r.Context(), firewall))
	}
	change(slices.Insert(slices.Clone(before), 1, ingress))
	if r.reaches("203.0.113.9") {
		r.Error("no node is selected, and an address is reached")
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "edge", Labels: map[string]string{"ingress": "yes"},
		Annotations: map[string]string{node.HostsAnnotation: `["203.0.113.9/24","2001:db8:9::9/64"]`}}}
	r.must(r.client.Create(r.Context(), n))
	for _, ip := range []string{"203.0.113.9", "2001:db8:9::9"} {
		r.soon(ip+" of a node that came is reached", func() bool { return r.reaches(ip) })
	}
	n.Labels = nil
	r.idle()
	r.must(r.client.Update(r.Context(), n))
	r.soon("a node without the label is not", func() bool { return !r.reaches("203.0.113.9") })
	n.Labels = map[string]string{"ingress": "yes"}
	r.idle()
	r.must(r.client.Update(r.Context(), n))
	r.soon("one that has it again is", func() bool { return r.reaches("203.0.113.9") })
	r.idle()
	r.must(r.client.Delete(r.Context(), n))
	r.soon("one that is gone is not", func() bool { return !r.reaches("203.0.113.9") })
	change(before)
	r.soon("the rules are as they were",
		func() bool { return r.nb("--bare", "--columns=action", "find", "ACL", `name="EF:shop:1"`) == "drop" })
}

// logs checks the annotation of the namespace.
func (r *rig) logs() {
	row := func() string {
		return r.nb("--bare", "--columns=log,severity,meter", "find", "ACL", `name="EF:shop:1"`)
	}
	if got := row(); got != "true\ninfo\nacl-logging" {
		r.Errorf("the rule that denies logs %q", got)
	}
	space := &corev1.Namespace{}
	r.must(r.client.Get(r.Context(), client.ObjectKey{Name: "shop"}, space))
	space.Annotations[logAnnotation] = `{"allow":"notice"}`
	r.idle()
	r.must(r.client.Update(r.Context(), space))
	r.soon("it logs no longer", func() bool { return row() == "false\n\nacl-logging" })
	if got := r.nb("--bare", "--columns=severity", "find", "ACL", `name="EF:shop:0"`); got != "notice" {
		r.Errorf("the rule that allows logs %q", got)
	}
}

// reports checks that an EgressFirewallDNSName gets a report when the switch has the version that its manager waits
// for.
func (r *rig) reports() {
	names := &v1alpha1.DNSNameResolver{}
	r.must(r.client.Get(r.Context(), client.ObjectKey{Namespace: egress.DefaultNamespace, Name: "dns-1"}, names))
	old := &dnsv1alpha1.EgressFirewallDNSName{ObjectMeta: metav1.ObjectMeta{Namespace: egress.DefaultNamespace,
		Name: "dns-1"}, Spec: dnsv1alpha1.EgressFirewallDNSNameSpec{Name: "www.example.com."}}
	r.must(r.client.Create(r.Context(), old))
	old.Status.AddressesVersion = names.ResourceVersion
	r.must(r.client.Status().Update(r.Context(), old))
	r.soon("the zone says programmed", func() bool {
		r.must(r.client.Get(r.Context(), client.ObjectKeyFromObject(old), old))
		return len(old.Status.Programmed) == 1 && old.Status.Programmed[0].Zone == r.ovn.Node &&
			egress.Reaches(old.Status.Programmed[0].AddressesVersion, names.ResourceVersion)
	})
}

// repairs checks that rows that are deleted or edited by hand are restored.
func (r *rig) repairs() {
	edits := map[string][]string{
		"address sets deleted": {"--all", "destroy", "Address_Set"},
		"ACL edited":           {"set", "ACL", "EF:shop:1", "action=allow"},
		"group emptied":        {"clear", "Port_Group", ovnGroup(r), "ports", "acls"},
	}
	for what, edit := range edits {
		before := r.shape()
		r.nb(edit...)
		took := r.soon(what+" is repaired", func() bool { return r.shape() == before })
		r.Logf("%s: repaired after %v", what, took.Round(time.Millisecond))
		// The rows are back. The switch follows: its cached flows may outlive `--wait=hv sync` by a moment.
		enforced := func() bool { return !r.reaches("203.0.113.5") && r.reaches("192.0.2.8") }
		for begun := time.Now(); !enforced(); {
			if time.Since(begun) < 5*time.Second {
				continue
			}
			// The rows are right, and the switch does not follow, which was seen in one of twelve runs with a group that is
			// emptied and filled again within 50 ms. Rows are all that the agent can repair.
			out, err := r.ovn.AppCtl("controller", "inc-engine/recompute")
			r.Logf("%s: ovn-controller does not follow; it must compute all flows again: %s %v", what, out, err)
			break
		}
		r.soon(what+" is enforced as before", enforced)
	}
}

func ovnGroup(r *rig) string { return r.nb("--bare", "--columns=name", "list", "Port_Group") }

// shape returns the relevant columns of our rows, in a fixed order.
func (r *rig) shape() string {
	var out []string
	for _, args := range [][]string{{"--columns=name,action,match,priority", "list", "ACL"},
		{"--columns=name,addresses", "list", "Address_Set"}, {"--columns=name,ports", "list", "Port_Group"}} {
		rows := strings.Split(r.nb(append([]string{"--format=csv", "--no-headings"}, args...)...), "\n")
		slices.Sort(rows)
		out = append(out, rows...)
	}
	return strings.Join(out, "\n")
}

// restarts kills the northbound database; the agent reconnects.
func (r *rig) restarts() {
	r.ovn.NBServer.Kill()
	_ = os.Remove(strings.TrimPrefix(r.ovn.NB, "unix:"))
	r.must(r.ovn.NBServer.Start())
	begun := time.Now()
	r.soon("an address is programmed again",
		func() bool { return program(r.agent.engine, www, time.Minute, "192.0.2.77") == nil })
	r.Logf("database restarted: programmed again after %v", time.Since(begun).Round(time.Millisecond))
	if !r.reaches("192.0.2.77") {
		r.Error("acknowledged, and not reached")
	}
}

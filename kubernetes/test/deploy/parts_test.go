package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rig "github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/test/server"
)

// patience is the time after which anything counts as hanging. It is not a promise of speed.
const patience = 60 * time.Second

// stage is the environment in which the parts run.
type stage struct {
	*rig.Cluster
	dir      string // programs, certificates, logs
	upstream *upstream
	dns      string // address of CoreDNS
	nb       string // path of the northbound database's socket
	hold     string // address of the agent
}

// testParts runs the programs with the arguments in the manifests, each with the token of its account, through the life
// of a name. No request may be forbidden meanwhile, and rights that were not used in the end should not have been
// granted.
func testParts(t *testing.T, c *rig.Cluster) {
	s := &stage{Cluster: c, dir: shortDir(t), upstream: startUpstream(t)}
	s.build(t)
	s.startOVN(t)
	s.certificates(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
		Annotations: map[string]string{"k8s.ovn.org/zone-name": "n1"}}}
	if err := c.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	agent := s.startAgent(t, "--serve-egressfirewalldnsname")
	s.tryCorefiles(t)
	coredns := s.startCoreDNS(t)
	manager := s.startPart(t, "manager.yaml", "--serve-egressfirewalldnsname")
	// First as in the manifest: it finds no pods of CoreDNS, since an EndpointSlice cannot have addresses of loopback.
	resolver := s.startPart(t, "resolver.yaml")
	soon(t, "the resolver lists the pods of CoreDNS", func() error {
		if log := resolver.Log(); !strings.Contains(log, `"Starting workers","controller":"coredns-pods"`) {
			return errors.New(log)
		}
		return nil
	})
	resolver.Stop()
	resolver = s.startPart(t, "resolver.yaml", "--server="+s.dns)

	s.lifeOfAName(t)
	for _, p := range []*server.Process{resolver, manager, coredns, agent} {
		p.Stop()
		if log := p.Log(); strings.Contains(strings.ToLower(log), "forbidden") {
			t.Errorf("%s was refused something:\n%s", p.Name, log)
		}
	}
	s.checkRequests(t)
}

// startAgent runs the agent with the databases and the certificates of the stage.
func (s *stage) startAgent(t *testing.T, more ...string) *server.Process {
	t.Helper()
	s.hold = freePort(t)
	return s.startPart(t, "agent.yaml", append(more, "--nb=unix:"+s.nb, "--listen="+s.hold, "--manage-port-groups=true",
		"--tls-cert="+s.file("egress-tls/nameplane-egress-agent.crt"),
		"--tls-key="+s.file("egress-tls/nameplane-egress-agent.key"), "--tls-ca="+s.file("egress-tls/ca.crt"))...)
}

// lifeOfAName lets the name of the example's first rule be learned, be refused in part, change, and be removed.
func (s *stage) lifeOfAName(t *testing.T) {
	soon(t, "the address is learned", func() error { return s.learned("192.0.2.10") })
	soon(t, "it is in the address set", func() error { return s.inSet("192.0.2.10") })
	soon(t, "all say that the rules are applied", func() error {
		ef := s.object("k8s.ovn.org/v1", "EgressFirewall", "shop")
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(ef), ef); err != nil {
			return err
		}
		if status, _, _ := unstructured.NestedString(ef.Object, "status",
			"status"); status != "EgressFirewall Rules applied" {
			return fmt.Errorf("status %q", ef.Object["status"])
		}
		return nil
	})
	soon(t, "the name is available in the older form", s.available)
	s.explain(t)
	s.upstream.set("127.0.0.99")
	soon(t, "a loopback address is refused", func() error { return s.asked(pluginUser, "create", "events") })
	s.upstream.set("192.0.2.11")
	soon(t, "the next address is learned", func() error { return s.learned("192.0.2.11") })
	soon(t, "the resolver takes the first one out", func() error {
		if err := s.learned("192.0.2.10"); err == nil {
			return errors.New("it is still there")
		}
		return s.asked(resolverUser, "patch", "dnsnameresolvers")
	})
	if err := s.Client.Delete(t.Context(), s.object("k8s.ovn.org/v1", "EgressFirewall", "shop")); err != nil {
		t.Fatal(err)
	}
	soon(t, "the objects go with the firewall", func() error {
		return errors.Join(s.asked(managerUser, "delete", "dnsnameresolvers"),
			s.asked(managerUser, "delete", "egressfirewalldnsnames"))
	})
}

// available reports whether the agent and the manager have reported that the address of a name is programmed.
func (s *stage) available() error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("dns.openshift.io/v1alpha1")
	list.SetKind("EgressFirewallDNSNameList")
	if err := s.Client.List(context.Background(), list); err != nil {
		return err
	}
	for _, u := range list.Items {
		if status := fmt.Sprint(u.Object["status"]); strings.Contains(status, "status:True type:Available") &&
			strings.Contains(status, "ip:192.0.2.10 ") {
			return nil
		}
	}
	return fmt.Errorf("no name is available among %v", list.Items)
}

// explain runs the command as a user with only the ClusterRole for it.
func (s *stage) explain(t *testing.T) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "curious"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "nameplane-egress-explain"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: "curious"}}}
	if err := s.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	config := s.kubeconfig(t, "shop", "curious")
	soon(t, "it is explained", func() error {
		out, err := exec.Command(s.file("nameplane-egress"), "explain", "shop", "api.example.com:443", "--kubeconfig", config,
			"--agents", s.hold,
			"--tls-cert", s.file("egress-tls/nameplane-coredns.crt"), "--tls-key", s.file("egress-tls/nameplane-coredns.key"),
			"--tls-ca", s.file("egress-tls/ca.crt")).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for _, want := range []string{"\nrules in force on n1\n", "\n192.0.2.10: Allow\n",
			"rule 0: Allow dnsName api.example.com.", "programmed  n1 ("} {
			if !strings.Contains(string(out), want) {
				return fmt.Errorf("there is no %q in\n%s", want, out)
			}
		}
		return nil
	})
	for args, want := range map[[2]string]string{
		{"shpo", "192.0.2.10"}: "there is no namespace shpo",
		{"shop", "10.96.0.1"}:  "10.96.0.1 is a service address",
	} {
		out, err := exec.Command(s.file("nameplane-egress"), "explain", args[0], args[1], "--kubeconfig",
			config).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("explain %v: %v\n%s\nwant that %s", args, err, out, want)
		}
	}
}

func (s *stage) object(version, kind, namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName("default")
	return u
}

// learned reports whether an address is in the status of a DNSNameResolver.
func (s *stage) learned(ip string) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("network.openshift.io/v1alpha1")
	list.SetKind("DNSNameResolverList")
	if err := s.Client.List(context.Background(), list); err != nil {
		return err
	}
	var all []any
	for _, u := range list.Items {
		all = append(all, u.Object["spec"], u.Object["status"])
	}
	if !strings.Contains(fmt.Sprint(all), "ip:"+ip+" ") {
		return fmt.Errorf("%s is not in %v", ip, all)
	}
	return nil
}

func (s *stage) inSet(ip string) error {
	out, err := exec.Command("ovn-nbctl", "--db=unix:"+s.nb, "--timeout=10", "--bare", "--columns=addresses", "list",
		"Address_Set").CombinedOutput()
	if err != nil || !strings.Contains(string(out), ip) {
		return fmt.Errorf("sets %s (%v)", out, err)
	}
	return nil
}

// asked reports whether an account was granted a request.
func (s *stage) asked(user, verb, resource string) error {
	all, err := s.Requests()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(r rig.Request) bool {
		return r.User == user && r.Verb == verb && r.Resource == resource && r.Code < 300
	}) {
		return fmt.Errorf("no %s of %s by %s among %d requests", verb, resource, user, len(all))
	}
	return nil
}

// seldom lists rights that are not used here.
var seldom = map[string][]string{
	managerUser:  {"patch events"},
	resolverUser: {"patch events"},
	agentUser:    {"list services", "watch services"}, // if there are no ServiceCIDRs
	pluginUser:   {"patch events", "get dnsnameresolvers"},
}

// checkRequests checks in the audit log how the accounts used their rights.
func (s *stage) checkRequests(t *testing.T) {
	all, err := s.Requests()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]map[string]bool{}
	for _, r := range all {
		if granted[r.User] == nil {
			continue
		}
		if r.Code == http.StatusForbidden {
			t.Errorf("%s may not %s %s/%s %s/%s", r.User, r.Verb, r.Resource, r.Subresource, r.Namespace, r.Name)
		}
		if used[r.User] == nil {
			used[r.User] = map[string]bool{}
		}
		used[r.User][r.Verb+" "+r.Resource] = true
		if r.Verb == "watch" {
			// if the API server cannot start a watch with the initial state, the client lists first
			used[r.User]["list "+r.Resource] = true
		}
	}
	for user, rights := range granted {
		for key, verbs := range rights {
			_, resource, _ := strings.Cut(key, "/")
			resource, _, _ = strings.Cut(resource, "/")
			for verb := range strings.FieldsSeq(verbs) {
				if right := verb + " " + resource; !used[user][right] && !slices.Contains(seldom[user], right) {
					t.Errorf("%s never used its right to %s", user, right)
				}
			}
		}
	}
}

// Package deploy checks the manifests and the Dockerfile of the egress firewall against the programs that they start.
// Start with TestEgress, which applies all manifests to an API server.
package deploy

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/crds"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	rig "github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// root is the top of the repository.
const root = "../../.."

const egressDir = root + "/deploy/kubernetes/egress"

// Accounts of the parts, as the API server calls them.
const (
	managerUser  = "system:serviceaccount:ovn-kubernetes:nameplane-egress-manager"
	resolverUser = "system:serviceaccount:ovn-kubernetes:nameplane-egress-resolver"
	agentUser    = "system:serviceaccount:ovn-kubernetes:nameplane-egress-agent"
	pluginUser   = "system:serviceaccount:kube-system:coredns"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// egressFiles returns the manifests in kustomization.yaml, in its order. It must list every manifest in its folder.
func egressFiles(t *testing.T) []string {
	t.Helper()
	var k struct {
		APIVersion, Kind string
		Resources        []string
	}
	if err := yaml.UnmarshalStrict(read(t, egressDir+"/kustomization.yaml"), &k); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(egressDir + "/*.yaml")
	if err != nil || len(files) != len(k.Resources)+1 {
		t.Fatalf("kustomization.yaml names %d of the files %v (%v)", len(k.Resources), files, err)
	}
	return k.Resources
}

// TestEgress applies all manifests to a real API server, which rejects unknown fields, and runs the parts there with
// the rights from the manifests.
func TestEgress(t *testing.T) {
	c := rig.Start(t, rig.Options{})
	if err := c.CreateNamespace("shop", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.ApplyFS(os.DirFS(egressDir), append(egressFiles(t), "examples/egressfirewall.yaml")...); err != nil {
		t.Fatal(err)
	}
	t.Run("CoreDNS", func(t *testing.T) { testCoreDNSPatch(t, c) })
	t.Run("granted", func(t *testing.T) { testGranted(t, c) })
	t.Run("parts", func(t *testing.T) { testParts(t, c) })
}

// kubeadmCoreDNS is the part of kubeadm's Deployment that the patch changes.
const kubeadmCoreDNS = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      containers:
        - name: coredns
          image: registry.example.org/coredns:v1
          args: [-conf, /etc/coredns/Corefile]
          volumeMounts:
            - {name: config-volume, mountPath: /etc/coredns, readOnly: true}
      volumes:
        - name: config-volume
          configMap: {name: coredns, items: [{key: Corefile, path: Corefile}]}
`

// testCoreDNSPatch patches the API server like `kubectl patch`.
func testCoreDNSPatch(t *testing.T, c *rig.Cluster) {
	if err := c.ApplyYAML([]byte(kubeadmCoreDNS)); err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.ToJSON(read(t, egressDir+"/examples/coredns-patch.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}
	if err := c.Client.Patch(t.Context(), d, client.RawPatch(types.StrategicMergePatchType, patch),
		&client.PatchOptions{Raw: &metav1.PatchOptions{FieldValidation: "Strict"}}); err != nil {
		t.Fatal(err)
	}
	p := d.Spec.Template.Spec
	if len(p.Containers) != 1 || len(p.Containers[0].VolumeMounts) != 2 || len(p.Volumes) != 2 ||
		!slices.Equal(p.Containers[0].Args, []string{"-conf", "/etc/coredns/Corefile"}) {
		t.Fatalf("the patch does more than it should: %+v", p)
	}
	i := slices.IndexFunc(p.Volumes, func(v corev1.Volume) bool { return v.Secret != nil })
	j := slices.IndexFunc(p.Containers[0].VolumeMounts,
		func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/nameplane-tls" })
	if i < 0 || j < 0 || p.Volumes[i].Name != p.Containers[0].VolumeMounts[j].Name ||
		p.Volumes[i].Secret.SecretName != "nameplane-coredns-tls" {
		t.Errorf("the certificate is not at the path in the Corefile: %+v", p)
	}
	if !strings.HasPrefix(p.Containers[0].Image, "nameplane-coredns:") {
		t.Errorf("image %s", p.Containers[0].Image)
	}
}

// asked lists resources that the parts use, or that must be protected from them.
var asked = []string{
	"network.openshift.io/dnsnameresolvers", "network.openshift.io/dnsnameresolvers/status",
	"dns.openshift.io/egressfirewalldnsnames", "dns.openshift.io/egressfirewalldnsnames/status",
	"k8s.ovn.org/egressfirewalls", "k8s.ovn.org/egressfirewalls/status",
	"discovery.k8s.io/endpointslices", "coordination.k8s.io/leases", "events.k8s.io/events", "/events",
	"/nodes", "/nodes/status", "/namespaces", "/pods", "/pods/exec", "/secrets", "/configmaps", "/services",
	"/serviceaccounts", "/serviceaccounts/token",
	"apps/deployments", "apps/daemonsets", "rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/clusterroles",
	"apiextensions.k8s.io/customresourcedefinitions", "networking.k8s.io/networkpolicies",
	"networking.k8s.io/servicecidrs", "admissionregistration.k8s.io/validatingwebhookconfigurations",
}

// granted lists all rights of the parts. Namespace "*" means all.
var granted = map[string]map[string]string{
	managerUser: {
		"* k8s.ovn.org/egressfirewalls":                                      "list watch",
		"* k8s.ovn.org/egressfirewalls/status":                               "patch",
		"* /nodes":                                                           "list watch",
		"* events.k8s.io/events":                                             "create patch",
		"ovn-kubernetes /events":                                             "create patch",
		"ovn-kubernetes network.openshift.io/dnsnameresolvers":               "list watch create patch delete",
		"ovn-kubernetes dns.openshift.io/egressfirewalldnsnames":             "list watch create delete",
		"ovn-kubernetes dns.openshift.io/egressfirewalldnsnames/status":      "patch",
		"ovn-kubernetes coordination.k8s.io/leases":                          "create",
		"ovn-kubernetes coordination.k8s.io/leases/manager.egress.nameplane": "get update",
	},
	resolverUser: {
		"ovn-kubernetes network.openshift.io/dnsnameresolvers":                "list watch",
		"ovn-kubernetes network.openshift.io/dnsnameresolvers/status":         "patch",
		"ovn-kubernetes coordination.k8s.io/leases":                           "create",
		"ovn-kubernetes coordination.k8s.io/leases/resolver.egress.nameplane": "get update",
		"ovn-kubernetes /events":                                              "create patch",
		"kube-system discovery.k8s.io/endpointslices":                         "list watch",
	},
	agentUser: {
		"* k8s.ovn.org/egressfirewalls":        "list watch",
		"* k8s.ovn.org/egressfirewalls/status": "patch",
		"* /nodes":                             "list watch",
		"* /namespaces":                        "list watch",
		"* /services":                          "list watch",
		"* networking.k8s.io/servicecidrs":     "list watch",
		"ovn-kubernetes network.openshift.io/dnsnameresolvers":          "list watch",
		"ovn-kubernetes dns.openshift.io/egressfirewalldnsnames":        "list watch",
		"ovn-kubernetes dns.openshift.io/egressfirewalldnsnames/status": "patch",
	},
	pluginUser: {
		"* /nodes":                         "list watch",
		"* networking.k8s.io/servicecidrs": "list watch",
		"ovn-kubernetes network.openshift.io/dnsnameresolvers":        "get list watch",
		"ovn-kubernetes network.openshift.io/dnsnameresolvers/status": "patch",
		"ovn-kubernetes discovery.k8s.io/endpointslices":              "list watch",
		"ovn-kubernetes /events":                                      "create patch",
	},
}

// testGranted queries the API server about every verb on every resource in three namespaces, for each account.
func testGranted(t *testing.T, c *rig.Cluster) {
	names := map[string]string{managerUser: "manager.egress.nameplane", resolverUser: "resolver.egress.nameplane"}
	for user, want := range granted {
		got := map[string]string{}
		for _, resource := range append(slices.Clone(asked), "coordination.k8s.io/leases/"+names[user]) {
			for _, namespace := range []string{"ovn-kubernetes", "kube-system", "shop"} {
				for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
					"escalate", "bind", "impersonate"} {
					if allowed(t, c, user, namespace, resource, verb, names[user]) {
						key := namespace + " " + resource
						got[key] = strings.TrimSpace(got[key] + " " + verb)
					}
				}
			}
		}
		if diff := cmp.Diff(everywhere(want), got); diff != "" {
			t.Errorf("%s may (-want +got):\n%s", user, diff)
		}
	}
}

// everywhere expands rights in all namespaces, and rights for a kind to those for a name.
func everywhere(want map[string]string) map[string]string {
	out := map[string]string{}
	for key, verbs := range want {
		namespace, resource, _ := strings.Cut(key, " ")
		all := []string{namespace}
		if namespace == "*" {
			all = []string{"ovn-kubernetes", "kube-system", "shop"}
		}
		for _, ns := range all {
			out[ns+" "+resource] = verbs
		}
		if lease, named := strings.CutPrefix(resource, "coordination.k8s.io/leases/"); named && lease != "" {
			out[key] = "get create update" // an account that may create any lease may create this one
		}
	}
	return out
}

// allowed queries one right. A resource is GROUP/NAME, GROUP/NAME/SUBRESOURCE, or that of a single lease by its name.
func allowed(t *testing.T, c *rig.Cluster, user, namespace, resource, verb, lease string) bool {
	t.Helper()
	group, rest, _ := strings.Cut(resource, "/")
	kind, sub, _ := strings.Cut(rest, "/")
	a := &authzv1.ResourceAttributes{Namespace: namespace, Group: group, Resource: kind, Subresource: sub, Verb: verb}
	if kind == "leases" && sub == lease {
		a.Subresource, a.Name = "", lease
	}
	r := &authzv1.SubjectAccessReview{Spec: authzv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: a,
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}}
	if err := c.Client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return r.Status.Allowed
}

// TestEgressPods compares the pods of the parts with what they need of a node.
func TestEgressPods(t *testing.T) {
	for file, isRoot := range map[string]bool{"manager.yaml": false, "resolver.yaml": false, "agent.yaml": true} {
		p := podOf(t, file)
		k := p.Containers[0]
		s, ps := k.SecurityContext, p.SecurityContext
		if len(p.Containers) != 1 || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
			!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Privileged != nil {
			t.Errorf("%s: the container may %+v", file, s)
		}
		if (*ps.RunAsUser == 0) != isRoot || ps.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
			p.HostNetwork != isRoot || p.HostPID || p.HostIPC {
			t.Errorf("%s: the pod runs as %+v, in the host's network: %v", file, ps, p.HostNetwork)
		}
		for _, m := range k.VolumeMounts {
			if !m.ReadOnly {
				t.Errorf("%s: %s can be written", file, m.MountPath)
			}
		}
		if k.ReadinessProbe == nil || k.LivenessProbe == nil || k.ReadinessProbe.HTTPGet.Path != "/readyz" ||
			k.LivenessProbe.HTTPGet.Path != "/healthz" || k.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: probes and limits: %+v", file, k)
		}
		if p.ServiceAccountName != "nameplane-egress-"+k.Name || !strings.HasPrefix(k.Image, "nameplane-egress:") ||
			k.Args[0] != k.Name {
			t.Errorf("%s: %s runs %v of %s as %s", file, k.Name, k.Args, k.Image, p.ServiceAccountName)
		}
	}
}

// podOf returns the pod of the workload in a manifest.
func podOf(t *testing.T, file string) corev1.PodSpec {
	t.Helper()
	for _, text := range strings.Split(string(read(t, filepath.Join(egressDir, file))), "\n---\n") {
		var w struct {
			Kind string
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if w.Kind == "Deployment" || w.Kind == "DaemonSet" {
			return w.Spec.Template.Spec
		}
	}
	t.Fatalf("%s has no workload", file)
	return corev1.PodSpec{}
}

// TestEgressDefinitions checks that the manifest has exactly the definitions that the program prints.
func TestEgressDefinitions(t *testing.T) {
	if diff := cmp.Diff(string(crds.YAML()), string(read(t, egressDir+"/crds.yaml"))); diff != "" {
		t.Errorf("make generate (-program +manifest):\n%s", diff)
	}
}

// certificate has the fields of cert-manager's objects that the tests read.
type certificate struct {
	Kind     string
	Metadata struct{ Namespace, Name string }
	Spec     struct {
		CA         struct{ SecretName string }
		SecretName string
		DNSNames   []string
		IsCA       bool
		IssuerRef  struct{ Kind, Name string }
	}
}

func certificates(t *testing.T) (out []certificate) {
	t.Helper()
	for _, text := range strings.Split(string(read(t, egressDir+"/examples/cert-manager.yaml")), "\n---\n") {
		var c certificate
		if err := yaml.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// TestEgressCertificates compares the names in cert-manager's objects with those that the two sides require of each
// other.
func TestEgressCertificates(t *testing.T) {
	got := map[string]string{}
	for _, c := range certificates(t) {
		for _, name := range c.Spec.DNSNames {
			got[c.Metadata.Namespace+"/"+c.Spec.SecretName] = name
		}
	}
	want := map[string]string{"ovn-kubernetes/nameplane-egress-agent-tls": hold.AgentName,
		"kube-system/nameplane-coredns-tls": hold.PluginName}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	secret := ""
	for _, v := range podOf(t, "agent.yaml").Volumes {
		if v.Secret != nil {
			secret = v.Secret.SecretName
		}
	}
	if want["ovn-kubernetes/"+secret] != hold.AgentName {
		t.Errorf("agents have the secret %q", secret)
	}
}

// TestEgressIssuers checks that a tenant cannot get a certificate that opens the firewall. Issuers serve only their own
// namespace, and the CA's key is only in the two namespaces of the parts that need a certificate.
func TestEgressIssuers(t *testing.T) {
	namespaces := []string{"ovn-kubernetes", "kube-system"}
	issuers := map[string]bool{}
	for _, c := range certificates(t) {
		at := c.Metadata.Namespace + "/" + c.Metadata.Name
		switch {
		case !slices.Contains(namespaces, c.Metadata.Namespace):
			t.Errorf("%s %s is in another namespace than %v", c.Kind, at, namespaces)
		case c.Kind == "Issuer" && c.Spec.CA.SecretName == "nameplane-egress-ca":
			issuers[at] = true
		case c.Kind != "Certificate" || c.Spec.IsCA || c.Spec.IssuerRef.Kind != "Issuer" ||
			!issuers[c.Metadata.Namespace+"/"+c.Spec.IssuerRef.Name]:
			t.Errorf("%s %s is neither an Issuer with the CA, nor a Certificate of an earlier Issuer in its namespace: %+v",
				c.Kind, at, c.Spec)
		}
	}
	err := filepath.WalkDir(root+"/deploy/kubernetes", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if clusterIssuer.Match(read(t, path)) {
			t.Errorf("%s has a ClusterIssuer, which serves every namespace", path)
		}
		return nil
	})
	if err != nil || len(issuers) != 2 {
		t.Errorf("%d issuers, want 2 (%v)", len(issuers), err)
	}
}

var clusterIssuer = regexp.MustCompile(`kind: *ClusterIssuer`)

// TestEgressListens checks that agents listen on the internal address of their node, and not on all addresses, some of
// which may be public.
func TestEgressListens(t *testing.T) {
	k := podOf(t, "agent.yaml").Containers[0]
	i := slices.IndexFunc(k.Args, func(a string) bool { return strings.HasPrefix(a, "--listen=") })
	if i < 0 || k.Args[i] != "--listen=[$(NODE_ADDRESS)]:9500" {
		t.Fatalf("agents start with %v", k.Args)
	}
	j := slices.IndexFunc(k.Env, func(e corev1.EnvVar) bool { return e.Name == "NODE_ADDRESS" })
	if j < 0 || k.Env[j].ValueFrom == nil || k.Env[j].ValueFrom.FieldRef == nil ||
		k.Env[j].ValueFrom.FieldRef.FieldPath != "status.hostIP" {
		t.Errorf("NODE_ADDRESS is not that of the node: %+v", k.Env)
	}
	for _, address := range []string{"127.0.0.1", "::1"} {
		ln, err := net.Listen("tcp", strings.NewReplacer("--listen=", "", "$(NODE_ADDRESS)", address, ":9500",
			":0").Replace(k.Args[i]))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := ln.Addr().(*net.TCPAddr).IP.String(); got != address {
			t.Errorf("an agent of the node %s listens on %s", address, got)
		}
		_ = ln.Close()
	}
}

func TestEgressDockerfile(t *testing.T) {
	text, mod := string(read(t, egressDir+"/Dockerfile")), string(read(t, "../../go.mod"))
	_, rest, _ := strings.Cut(mod, "\ngo ")
	version, _, _ := strings.Cut(rest, "\n")
	parts := strings.Split(version, ".")
	for _, want := range []string{"FROM golang:" + parts[0] + "." + parts[1] + " AS build",
		"FROM scratch AS nameplane-egress", "FROM scratch AS nameplane-coredns",
		`ENTRYPOINT ["/nameplane-egress"]`, `ENTRYPOINT ["/coredns"]`, "./cmd/nameplane-egress ./cmd/nameplane-coredns"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}
}

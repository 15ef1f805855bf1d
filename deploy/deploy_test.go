// Package deploy checks that the systemd unit, the manifests and the Dockerfile match the program that they start.
// Start with TestConfigMap, which reads the manifests as the other tests do.
package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/nameplane/nameplane/internal/config"
)

// cluster holds all objects of the manifests.
type cluster struct {
	namespace  namespace
	config     configMap
	claim      claim
	deployment deployment
	services   map[string]service
	policies   map[string]policy
}

func strict(t *testing.T, file string, text []byte, into any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// manifests reads every file of kustomization.yaml, and checks that it lists all files.
func manifests(t *testing.T) cluster {
	t.Helper()
	var k kustomization
	strict(t, "kustomization.yaml", read(t, "kubernetes/kustomization.yaml"), &k)
	files, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil || len(files) != len(k.Resources)+1 {
		t.Fatalf("kustomization.yaml names %d of the files %v (%v)", len(k.Resources), files, err)
	}
	c := cluster{services: map[string]service{}, policies: map[string]policy{}}
	for _, name := range k.Resources {
		docs := yaml.NewDecoder(bytes.NewReader(read(t, filepath.Join("kubernetes", name))))
		for {
			var n yaml.Node
			if err := docs.Decode(&n); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, err := yaml.Marshal(&n)
			if err != nil {
				t.Fatal(err)
			}
			c.add(t, name, text)
		}
	}
	return c
}

func (c *cluster) add(t *testing.T, file string, text []byte) {
	t.Helper()
	var h head
	if err := yaml.Unmarshal(text, &h); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{"Deployment": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1", "Namespace": "v1",
		"ConfigMap": "v1", "PersistentVolumeClaim": "v1", "Service": "v1"}
	if versions[h.Kind] != h.APIVersion {
		t.Errorf("%s: %s is not of %s", file, h.Kind, h.APIVersion)
	}
	if h.Kind != "Namespace" && h.Metadata.Namespace != "nameplane" {
		t.Errorf("%s: %s %s is in namespace %q", file, h.Kind, h.Metadata.Name, h.Metadata.Namespace)
	}
	switch h.Kind {
	case "Namespace":
		strict(t, file, text, &c.namespace)
	case "ConfigMap":
		strict(t, file, text, &c.config)
	case "PersistentVolumeClaim":
		strict(t, file, text, &c.claim)
	case "Deployment":
		strict(t, file, text, &c.deployment)
	case "Service":
		var s service
		strict(t, file, text, &s)
		c.services[s.Metadata.Name] = s
	case "NetworkPolicy":
		var p policy
		strict(t, file, text, &p)
		c.policies[p.Metadata.Name] = p
	}
}

func (c cluster) container(t *testing.T) container {
	t.Helper()
	if n := len(c.deployment.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%d containers", n)
	}
	return c.deployment.Spec.Template.Spec.Containers[0]
}

func port(t *testing.T, addr string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1024 {
		t.Errorf("address %s: its port needs a capability that the container does not have (%v)", addr, err)
	}
	return n
}

// TestConfigMap checks that the program accepts the configuration, and that the container has the ports of it.
func TestConfigMap(t *testing.T) {
	c := manifests(t)
	cfg, err := config.Parse("nameplane.yaml", []byte(c.config.Data["nameplane.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]string{}
	for _, p := range c.container(t).Ports {
		ports[p.Name] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
	}
	want := map[string]string{
		"dns-udp": fmt.Sprintf("%d/UDP", port(t, cfg.DNS.Listen[0])),
		"dns-tcp": fmt.Sprintf("%d/TCP", port(t, cfg.DNS.Listen[0])),
		"http":    fmt.Sprintf("%d/TCP", port(t, cfg.HTTP.Listen)), "apps": fmt.Sprintf("%d/TCP", port(t, cfg.Apps.Listen)),
		"mep": fmt.Sprintf("%d/TCP", port(t, cfg.MEP.Listen)),
	}
	if diff := cmp.Diff(want, ports); diff != "" {
		t.Errorf("ports of the container (-configuration +manifest):\n%s", diff)
	}
	if cfg.MEP.Authentication != config.AuthCertificate || cfg.Apps.Authentication != config.AuthToken {
		t.Errorf("authentication of platforms is %s, of applications %s", cfg.MEP.Authentication, cfg.Apps.Authentication)
	}
}

// TestFiles checks that every file of the configuration is in a volume, and that the volume of the store is persistent.
func TestFiles(t *testing.T) {
	c := manifests(t)
	cfg, err := config.Parse("nameplane.yaml", []byte(c.config.Data["nameplane.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	volumes := map[string]volume{}
	for _, v := range c.deployment.Spec.Template.Spec.Volumes {
		volumes[v.Name] = v
	}
	at := map[string]volume{}
	for _, m := range c.container(t).Mounts {
		v, ok := volumes[m.Name]
		if !ok {
			t.Errorf("there is no volume %s", m.Name)
		}
		if lasting := v.Claim.Name != ""; lasting == m.ReadOnly {
			t.Errorf("volume %s is read-only: %v", m.Name, m.ReadOnly)
		}
		at[m.Path] = v
	}
	if name := at[cfg.Data].Claim.Name; name != c.claim.Metadata.Name || name == "" {
		t.Errorf("%s is in claim %q, want %q", cfg.Data, name, c.claim.Metadata.Name)
	}
	for _, f := range []string{cfg.HTTP.TLS.Cert, cfg.HTTP.TLS.Key, cfg.MEP.ClientCA} {
		if at[filepath.Dir(f)].Secret.Name != "nameplane-tls" {
			t.Errorf("%q is in no Secret", f)
		}
	}
	args := c.container(t).Args
	if i := slices.Index(args, "--config"); i < 0 || i+1 == len(args) ||
		at[filepath.Dir(args[i+1])].ConfigMap.Name != c.config.Metadata.Name ||
		c.config.Data[filepath.Base(args[i+1])] == "" {
		t.Errorf("arguments %v do not name the ConfigMap", args)
	}
	if !slices.Equal(c.claim.Spec.AccessModes, []string{"ReadWriteOnce"}) ||
		c.claim.Spec.Resources.Requests["storage"] == "" {
		t.Errorf("claim %+v", c.claim.Spec)
	}
	if s := c.deployment.Spec; s.Replicas != 1 || s.Strategy.Type != "Recreate" {
		t.Errorf("%d replicas, strategy %s: two would open one store", s.Replicas, s.Strategy.Type)
	}
}

func TestPodIsHarmless(t *testing.T) {
	c := manifests(t)
	p, k := c.deployment.Spec.Template.Spec, c.container(t)
	s := p.SecurityContext
	if !s.RunAsNonRoot || s.RunAsUser == 0 || s.RunAsGroup == 0 || s.FSGroup == 0 ||
		s.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("security context of the pod: %+v", s)
	}
	if x := k.SecurityContext; x.Escalation || !x.ReadOnlyRoot || !slices.Equal(x.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("security context of the container: %+v", x)
	}
	if p.AutomountToken || p.ServiceLinks {
		t.Error("the pod gets information about the cluster that it does not need")
	}
	if c.namespace.Metadata.Labels["pod-security.kubernetes.io/enforce"] != "restricted" ||
		c.namespace.Metadata.Name != "nameplane" {
		t.Errorf("namespace %+v", c.namespace)
	}
	if k.Resources.Limits["memory"] == "" || k.Resources.Requests["cpu"] == "" || p.Grace < 20 {
		t.Errorf("resources %+v, %ds to stop", k.Resources, p.Grace)
	}
	for name, pr := range map[string]probe{"startup": k.StartupProbe, "readiness": k.ReadinessProbe,
		"liveness": k.LivenessProbe} {
		path := "/readyz"
		if name == "liveness" {
			path = "/healthz" // a restart does not repair a store that cannot be read
		}
		if g := pr.HTTPGet; g.Path != path || g.Port != "http" || g.Scheme != "HTTPS" || pr.PeriodSeconds == 0 {
			t.Errorf("%s probe %+v", name, pr)
		}
	}
	if diff := cmp.Diff(c.deployment.Spec.Selector.MatchLabels, c.deployment.Spec.Template.Metadata.Labels); diff != "" {
		t.Errorf("the deployment does not select its pods:\n%s", diff)
	}
}

func TestServices(t *testing.T) {
	c := manifests(t)
	got := map[string][]string{}
	for name, s := range c.services {
		if diff := cmp.Diff(c.deployment.Spec.Selector.MatchLabels, s.Spec.Selector); diff != "" {
			t.Errorf("%s selects other pods:\n%s", name, diff)
		}
		for _, p := range s.Spec.Ports {
			if !slices.ContainsFunc(c.container(t).Ports,
				func(k containerPort) bool { return k.Name == p.Target && k.Protocol == p.Protocol }) {
				t.Errorf("%s targets port %s/%s, which the container does not have", name, p.Target, p.Protocol)
			}
			got[name+" "+s.Spec.Type] = append(got[name+" "+s.Spec.Type], fmt.Sprintf("%d/%s %s", p.Port, p.Protocol, p.Target))
		}
	}
	want := map[string][]string{
		"nameplane-dns LoadBalancer": {"53/UDP dns-udp", "53/TCP dns-tcp"},
		"nameplane-apps ClusterIP":   {"8054/TCP apps"},
		"nameplane-mep ClusterIP":    {"8055/TCP mep"},
		"nameplane ClusterIP":        {"8053/TCP http"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	if c.services["nameplane-dns"].Spec.Traffic != "Local" {
		t.Error("the addresses of devices are not preserved")
	}
}

// TestPolicies checks which clients may reach each port.
func TestPolicies(t *testing.T) {
	c := manifests(t)
	if p := c.policies["nothing"].Spec; len(p.PodSelector.MatchLabels) != 0 || p.Ingress != nil || p.Egress != nil ||
		!slices.Equal(p.Types, []string{"Ingress", "Egress"}) {
		t.Errorf("the policy that closes everything: %+v", p)
	}
	in, out := map[string]string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(c.policies)) {
		p := c.policies[name]
		if name == "nothing" {
			continue
		}
		if diff := cmp.Diff(c.deployment.Spec.Selector.MatchLabels, p.Spec.PodSelector.MatchLabels); diff != "" ||
			len(p.Spec.Types) != 1 {
			t.Errorf("%s is for other pods, or for %v:\n%s", name, p.Spec.Types, diff)
		}
		for _, rule := range p.Spec.Ingress {
			from := "all"
			for _, f := range rule.From {
				from = fmt.Sprint(f.Namespaces.MatchLabels)
				if len(f.Namespaces.MatchLabels) == 0 {
					from = "every namespace"
				}
			}
			if len(rule.Ports) == 0 {
				t.Errorf("%s opens every port", name)
			}
			for _, port := range rule.Ports {
				in[port.Port+"/"+port.Protocol] += from
			}
		}
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				out = append(out, port.Port+"/"+port.Protocol)
			}
		}
	}
	want := map[string]string{"dns-udp/UDP": "all", "dns-tcp/TCP": "all", "apps/TCP": "map[nameplane/applications:true]",
		"http/TCP": "map[nameplane/metrics:true]map[nameplane/platform:true]", "mep/TCP": "map[nameplane/platform:true]"}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("allowed clients (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"53/UDP", "53/TCP", "853/TCP"}, out); diff != "" {
		t.Errorf("allowed destinations of the server (-want +got):\n%s", diff)
	}
}

func TestDockerfile(t *testing.T) {
	text := string(read(t, "Dockerfile"))
	c := manifests(t)
	security := c.deployment.Spec.Template.Spec.SecurityContext
	for _, want := range []string{"FROM scratch\n", `ENTRYPOINT ["/nameplane"]`,
		`HEALTHCHECK CMD ["/nameplane", "health"]`,
		fmt.Sprintf("USER %d:%d", security.RunAsUser, security.RunAsGroup),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile has no %q", want)
		}
	}
	for _, p := range c.container(t).Ports {
		if exposed := fmt.Sprintf("%d/%s", p.Port, strings.ToLower(p.Protocol)); !strings.Contains(text, exposed) {
			t.Errorf("the Dockerfile does not expose %s", exposed)
		}
	}
}

package deploy

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/api/crds"
	rig "github.com/nameplane/nameplane/kubernetes/test/cluster"
)

const (
	serviceDir  = root + "/deploy/kubernetes/service"
	serviceUser = "system:serviceaccount:nameplane-service:nameplane-service"
)

// serviceRights are all rights of nameplane-service. Secrets are not among them.
var serviceRights = map[string]string{
	"* gateway.networking.k8s.io/gatewayclasses":     "list watch",
	"* gateway.networking.k8s.io/gateways":           "list watch",
	"* gateway.networking.k8s.io/listenersets":       "list watch",
	"* gateway.networking.k8s.io/httproutes":         "list watch",
	"* gateway.networking.k8s.io/grpcroutes":         "list watch",
	"* gateway.networking.k8s.io/tlsroutes":          "list watch",
	"* gateway.networking.k8s.io/referencegrants":    "list watch",
	"* gateway.networking.k8s.io/backendtlspolicies": "list watch",
	"* networking.k8s.io/ingresses":                  "list watch",
	"* cert-manager.io/certificates":                 "list watch",
	"* discovery.k8s.io/endpointslices":              "list watch",
	"* /services":                                    "list watch",
	"* /namespaces":                                  "list watch",
	"* networking.datumapis.com/domains":             "list watch",
	"* networking.datumapis.com/domains/status":      "update",
	"* dns.networking.miloapis.com/dnszones":         "list",
	"* nameplane.io/hostnamereports":                 "list watch create update delete",
	"* nameplane.io/hostnamereports/status":          "update",
	"* events.k8s.io/events":                         "create patch",
}

// TestServiceManifests applies the manifests of nameplane-service to a real API server, which rejects unknown fields,
// and asks it about every right of the account.
func TestServiceManifests(t *testing.T) {
	c := rig.Start(t, rig.Options{})
	var k struct {
		APIVersion, Kind string
		Resources        []string
	}
	if err := yaml.UnmarshalStrict(read(t, serviceDir+"/kustomization.yaml"), &k); err != nil {
		t.Fatal(err)
	}
	files := append(k.Resources, "domains/crds.yaml", "domains/domains.yaml")
	if err := c.ApplyFS(os.DirFS(serviceDir), files...); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	resources := append(slices.Clone(asked), "gateway.networking.k8s.io/gateways/status", "nameplane.io/hostnamereports",
		"nameplane.io/hostnamereports/status", "networking.k8s.io/ingresses", "networking.k8s.io/ingresses/status",
		"cert-manager.io/certificates",
		"networking.datumapis.com/domains", "networking.datumapis.com/domains/status",
		"dns.networking.miloapis.com/dnszones", "gateway.networking.k8s.io/gatewayclasses",
		"gateway.networking.k8s.io/gateways",
		"gateway.networking.k8s.io/listenersets", "gateway.networking.k8s.io/httproutes",
		"gateway.networking.k8s.io/grpcroutes", "gateway.networking.k8s.io/tlsroutes",
		"gateway.networking.k8s.io/referencegrants", "gateway.networking.k8s.io/backendtlspolicies")
	for _, resource := range resources {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
			"escalate", "bind", "impersonate"} {
			if allowed(t, c, serviceUser, "shop", resource, verb, "") {
				got["* "+resource] = strings.TrimSpace(got["* "+resource] + " " + verb)
			}
		}
	}
	if diff := cmp.Diff(serviceRights, got); diff != "" {
		t.Errorf("the account may (-want +got):\n%s", diff)
	}
	var d appsv1.Deployment
	at := client.ObjectKey{Namespace: "nameplane-service", Name: "nameplane-service"}
	if err := c.Client.Get(t.Context(), at, &d); err != nil {
		t.Fatal(err)
	}
	checkServicePod(t, d.Spec.Template.Spec)
	for file, want := range map[string][]byte{"crds.yaml": crds.Service(), "domains/crds.yaml": crds.Domains()} {
		if diff := cmp.Diff(string(want), string(read(t, serviceDir+"/"+file))); diff != "" {
			t.Errorf("make generate (-program +manifest):\n%s", diff)
		}
	}
}

// checkServicePod checks that the pod has no rights on its node.
func checkServicePod(t *testing.T, p corev1.PodSpec) {
	t.Helper()
	k := p.Containers[0]
	s := k.SecurityContext
	if len(p.Containers) != 1 || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Privileged != nil ||
		!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || *p.SecurityContext.RunAsUser == 0 ||
		p.HostNetwork || p.HostPID || p.HostIPC || len(p.Volumes) != 0 {
		t.Errorf("the pod may %+v %+v", s, p)
	}
	if k.ReadinessProbe.HTTPGet.Path != "/readyz" || k.LivenessProbe.HTTPGet.Path != "/healthz" ||
		k.Resources.Limits.Memory().IsZero() || !strings.HasPrefix(k.Image, "nameplane-service:") || k.Args[0] != "run" {
		t.Errorf("the container is %+v", k)
	}
}

package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rig "github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// TestHowTo runs the shell blocks of docs/how-to/kubernetes.md. The cluster has no kubelet, so the page shows the
// commands that need a pod in console blocks.
func TestHowTo(t *testing.T) {
	s, out := runHowTo(t, "kubernetes.md", "tls.crt", "tls.key", "ca.crt") // no server reads them here
	s.checkServer(t, out)
}

// TestWatchHostnames runs the shell blocks of docs/how-to/watch-hostnames.md.
func TestWatchHostnames(t *testing.T) {
	s, out := runHowTo(t, "watch-hostnames.md")
	var d appsv1.Deployment
	at := client.ObjectKey{Namespace: "nameplane-service", Name: "nameplane-service"}
	if err := s.Client.Get(t.Context(), at, &d); err != nil ||
		d.Spec.Template.Spec.Containers[0].Image != "registry.example.org/nameplane-service:1" {
		t.Errorf("the Deployment has %+v (%v)\n%s", d.Spec.Template.Spec.Containers, err, out)
	}
}

// runHowTo runs the shell blocks of a page in one shell, with kubectl and a real API server, in a folder with these
// files.
func runHowTo(t *testing.T, page string, files ...string) (*stage, string) {
	t.Helper()
	s := &stage{Cluster: rig.Start(t, rig.Options{}), dir: shortDir(t)}
	kubectl, err := rig.Tool("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kubectl, s.file("kubectl")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(s.dir, "deploy"), os.DirFS(root+"/deploy")); err != nil {
		t.Fatal(err)
	}
	if err := s.Kubeconfig(s.Config, s.file("admin.conf")); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		write(t, s.file(name), name, 0o600)
	}
	script := "set -x -o pipefail\n"
	for _, m := range shellBlock.FindAllStringSubmatch(string(read(t, root+"/docs/how-to/"+page)), -1) {
		script += m[1]
	}
	out, err := s.shell(script)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return s, out
}

// checkServer checks the objects that the commands of the page created.
func (s *stage) checkServer(t *testing.T, out string) {
	t.Helper()
	ctx, key := t.Context(), client.ObjectKey{Namespace: "nameplane", Name: "nameplane"}
	var d appsv1.Deployment
	if err := s.Client.Get(ctx, key, &d); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example.org/dns/nameplane:1" {
		t.Errorf("the Deployment has the image %s", image)
	}
	var secret corev1.Secret
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: "nameplane", Name: "nameplane-tls"}, &secret); err != nil ||
		len(secret.Data) != 3 {
		t.Errorf("the Secret has %d files: %v", len(secret.Data), err)
	}
	if !strings.Contains(out, "nameplane-dns") {
		t.Errorf("the output does not show the Service:\n%s", out)
	}
}

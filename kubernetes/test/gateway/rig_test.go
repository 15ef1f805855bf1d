package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/test/server"
)

// rig is an API server with Traefik, a backend and DNS.
type rig struct {
	*cluster.Cluster
	dir     string
	objects string // a healthy service
	issuer  *issuer
	traefik *server.Process
	kubectl string
}

// start starts all parts, with a healthy service.
func start(t *testing.T) *rig {
	t.Helper()
	ready(t)
	startDNS(t)
	text, err := os.ReadFile("testdata/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Cluster: cluster.Start(t, cluster.Options{}), dir: t.TempDir(),
		objects: strings.NewReplacer("PORT", startBackend(t), "ADDRESS", backend).Replace(string(text))}
	if r.kubectl, err = cluster.Tool("kubectl"); err != nil {
		t.Fatal(err)
	}
	var ca pair
	r.issuer, ca = newIssuer(t)
	r.write(t, "ca.crt", ca.cert)
	r.write(t, "api.crt", r.Config.CAData)
	r.write(t, "hints", []byte("a.root "+root4+" "+root6+"\n"))
	if err := r.Kubeconfig(r.Config, r.file("admin.conf")); err != nil {
		t.Fatal(err)
	}
	if err := r.ApplyFS(os.DirFS(os.Getenv(definitions)), "config/crd/standard/gateway*.yaml"); err != nil {
		t.Fatal(err)
	}
	r.apply(t)
	r.certify(t, "*.example.com")
	r.startTraefik(t, "")
	t.Cleanup(func() { r.traefik.Stop() })
	return r
}

func (r *rig) file(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(r.file(name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// apply applies the healthy objects with some texts replaced: pairs of a text that must be there, and its replacement.
func (r *rig) apply(t *testing.T, pairs ...string) {
	t.Helper()
	text := r.objects
	for i := 0; i+1 < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the objects have no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	if err := r.ApplyYAML([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// certify gives the listener a certificate for host names.
func (r *rig) certify(t *testing.T, names ...string) {
	t.Helper()
	p := r.issuer.forNames(t, names...)
	if err := r.ApplyYAML(fmt.Appendf(nil, `apiVersion: v1
kind: Secret
metadata: {name: cert, namespace: infra}
type: kubernetes.io/tls
data: {tls.crt: %s, tls.key: %s}
`, base64.StdEncoding.EncodeToString(p.cert), base64.StdEncoding.EncodeToString(p.key))); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object.
func (r *rig) remove(t *testing.T, version, kind, namespace, name string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	if err := r.Client.Delete(t.Context(), u); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// startTraefik starts Traefik, or starts it again with other options. It listens on ports 80 and 443 of an address; of
// all addresses, if it is empty.
func (r *rig) startTraefik(t *testing.T, address string, more ...string) {
	t.Helper()
	if r.traefik != nil {
		r.traefik.Stop()
	}
	program, err := cluster.Tool("traefik")
	if err != nil {
		t.Fatal(err)
	}
	provider := "--providers.kubernetesgateway"
	r.traefik = &server.Process{Name: "Traefik", LogFile: r.file("traefik.log"), Command: append([]string{program,
		"--entrypoints.web.address=" + net.JoinHostPort(address, "80"),
		"--entrypoints.websecure.address=" + net.JoinHostPort(address, "443"),
		provider + "=true", provider + ".endpoint=" + r.Config.Host, provider + ".token=" + r.Config.BearerToken,
		provider + ".certauthfilepath=" + r.file("api.crt"), provider + ".statusaddress.hostname=edge.example.net",
		"--log.nocolor=true", "--global.checknewversion=false", "--global.sendanonymoususage=false"}, more...)}
	if err := r.traefik.Start(); err != nil {
		t.Fatal(err)
	}
}

// kinds are the objects that docs/how-to/check-service.md reads.
const kinds = "gatewayclass,gateway,httproute,service,endpointslice,namespace"

// check returns the report of nameplane service for the objects that the API server has now.
func (r *rig) check(t *testing.T, args ...string) *report.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	get := exec.CommandContext(ctx, r.kubectl, "--kubeconfig", r.file("admin.conf"), "get", kinds, "-A", "-o", "yaml")
	objects, err := get.Output()
	if err != nil {
		t.Fatalf("kubectl: %v\n%s", err, stderr(err))
	}
	args = append(append([]string{"service"}, args...), "--hints", r.file("hints"), "--anchors", "none", "--no-registry",
		"-o", "json")
	cmd := exec.CommandContext(ctx, server.Binary(t), args...)
	// The CA of the tests is the only one that the program trusts.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "SSL_CERT_FILE=" + r.file("ca.crt"),
		"SSL_CERT_DIR=" + r.file("none")}
	cmd.Stdin = bytes.NewReader(objects)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() > 3 || len(out) == 0) {
		t.Fatalf("nameplane %v: %v\n%s\n%s", args, err, out, stderr(err))
	}
	found := new(report.Report)
	if err := json.Unmarshal(out, found); err != nil {
		t.Fatalf("nameplane %v: %v\n%s", args, err, out)
	}
	return found
}

func stderr(err error) []byte {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.Stderr
	}
	return nil
}

package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

// manifests are a resource with a CEL rule, and an account that may read it and change its status.
const manifests = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cables.rig.example.org}
spec:
  group: rig.example.org
  scope: Namespaced
  names: {kind: Cable, listKind: CableList, plural: cables, singular: cable}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              colour: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: colour is immutable}]}
          status: {type: object, properties: {length: {type: integer}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: electrician}
rules:
- {apiGroups: [rig.example.org], resources: [cables], verbs: [get, list, watch]}
- {apiGroups: [rig.example.org], resources: [cables/status], verbs: [patch, update]}
---
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: electrician}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: electrician}
subjects:
- {kind: ServiceAccount, namespace: works, name: electrician}
`

const oneCable = `{apiVersion: rig.example.org/v1, kind: Cable, metadata: {namespace: works, name: one},
  spec: {colour: COLOUR}}`

func TestCluster(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	if err := c.ApplyFS(fstest.MapFS{"a.yaml": {Data: []byte(manifests)}}, "*.yaml"); err != nil {
		t.Fatal(err)
	}
	cfg, err := c.ConfigFor("works", "electrician")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("version", func(t *testing.T) { testVersion(t, c) })
	t.Run("CEL", func(t *testing.T) { testCEL(t, c) })
	t.Run("account", func(t *testing.T) { testAccount(t, c, cfg) })
	t.Run("files", func(t *testing.T) { testFiles(t, c, cfg) })
	t.Run("namespace", func(t *testing.T) { testNamespace(t, c) })
	t.Run("down", func(t *testing.T) { testDown(t, c) })
}

// testVersion checks the version that was passed to the linker: without it there are other features.
func testVersion(t *testing.T, c *cluster.Cluster) {
	hc, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := hc.Get(c.Config.Host + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got struct{ Major, Minor, GitVersion string }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got.GitVersion, "v"+got.Major+"."+got.Minor+".") || got.Minor == "" {
		t.Errorf("/version says %+v", got)
	}
}

func testCEL(t *testing.T, c *cluster.Cluster) {
	if err := c.ApplyYAML([]byte(strings.Replace(oneCable, "COLOUR", "red", 1))); err != nil {
		t.Fatal(err)
	}
	err := c.ApplyYAML([]byte(strings.Replace(oneCable, "COLOUR", "blue", 1)))
	if err == nil || !strings.Contains(err.Error(), "colour is immutable") {
		t.Errorf("another colour: %v, want the rule's message", err)
	}
}

func cable(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("rig.example.org/v1")
	u.SetKind("Cable")
	u.SetNamespace("works")
	u.SetName(name)
	return u
}

// testAccount performs allowed and forbidden requests of the account, and finds both in the audit log.
func testAccount(t *testing.T, c *cluster.Cluster, cfg *rest.Config) {
	const user = "system:serviceaccount:works:electrician"
	ctx, since := t.Context(), time.Now()
	cl, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := c.Revision()
	if err != nil {
		t.Fatal(err)
	}
	one := cable("one")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"length":3}}`))
	if err := cl.Status().Patch(ctx, one, patch); err != nil {
		t.Fatal(err)
	}
	one.SetResourceVersion("1")
	if err := cl.Status().Update(ctx, one); !apierrors.IsConflict(err) {
		t.Errorf("an update of something old: %v, want a conflict", err)
	}
	if err := cl.Create(ctx, cable("two")); !apierrors.IsForbidden(err) {
		t.Errorf("create: %v, want it forbidden", err)
	}
	after, err := c.Revision()
	if err != nil {
		t.Fatal(err)
	}
	if after <= before {
		t.Errorf("revision %d after a change, %d before", after, before)
	}
	want := []cluster.Request{
		{Verb: "patch", Subresource: "status", Name: "one", Code: 200},
		{Verb: "update", Subresource: "status", Name: "one", Code: 409},
		{Verb: "create", Code: 403}, // the name is in the body, which was not read
	}
	for i := range want {
		want[i].User, want[i].Namespace, want[i].Resource = user, "works", "cables"
	}
	// The entry is written a moment after the reply.
	var diff string
	for end := time.Now().Add(soon); time.Now().Before(end); {
		got, err := c.Writes("cables", since)
		if err != nil {
			t.Fatal(err)
		}
		got = slices.DeleteFunc(got, func(r cluster.Request) bool { return r.User != user })
		for i := range got {
			got[i].At = time.Time{}
		}
		if diff = cmp.Diff(want, got); diff == "" {
			return
		}
	}
	t.Errorf("writes (-want +got):\n%s", diff)
}

func testFiles(t *testing.T, c *cluster.Cluster, cfg *rest.Config) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := c.Kubeconfig(cfg, path); err != nil {
		t.Fatal(err)
	}
	read, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(read, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(cable("one")), cable("one")); err != nil {
		t.Errorf("with the file: %v", err)
	}
	dir := t.TempDir()
	if err := c.InCluster(cfg, dir, "works"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "token")); err != nil || string(got) != cfg.BearerToken {
		t.Errorf("token in the folder: %q, %v", got, err)
	}
}

// testNamespace has a pod in a namespace, which needs no service account here, and deletes the namespace.
func testNamespace(t *testing.T, c *cluster.Cluster) {
	ctx := t.Context()
	if err := c.CreateNamespace("gone", map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gone", Name: "web"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web"}}}}
	if err := c.Client.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
	if err := errors.Join(c.Client.Delete(ctx, pod), c.Client.Delete(ctx, ns), c.FinalizeNamespace("gone")); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
		t.Errorf("get the namespace: %v, want that it is not there", err)
	}
}

// testDown stops the API server and starts it again, with all its data.
func testDown(t *testing.T, c *cluster.Cluster) {
	one := cable("one")
	c.API.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(one), one); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while it is down: %v, want a refusal", err)
	}
	begun := time.Now()
	if err := errors.Join(c.API.Start(), c.Ready()); err != nil {
		t.Fatal(err)
	}
	t.Logf("it was back after %v", time.Since(begun).Round(time.Millisecond))
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(one), one); err != nil {
		t.Errorf("when it is back: %v", err)
	}
}

// TestRun uses the rig in a program that is not a test.
func TestRun(t *testing.T) {
	var order []string
	err := cluster.Run(func(line string) { order = append(order, line) }, func(r cluster.T) {
		r.Cleanup(func() { order = append(order, "first made, last cleaned") })
		r.Cleanup(func() { order = append(order, "last made, first cleaned") })
		r.Logf("said %d", 1)
		r.Fatalf("no %s", "luck")
		order = append(order, "not ended")
	})
	if err == nil || err.Error() != "no luck" {
		t.Errorf("Run returns %v, want no luck", err)
	}
	if diff := cmp.Diff([]string{"said 1", "last made, first cleaned", "first made, last cleaned"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// callFor limits the duration of one request of this package.
const callFor = 30 * time.Second

func (c *Cluster) config(host, token string) *rest.Config {
	return &rest.Config{Host: host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}}
}

// ConfigFor returns the configuration of a service account, which has only the rights that RBAC grants. It creates the
// namespace and the account if needed. Rate limits are those of the client.
func (c *Cluster) ConfigFor(namespace, account string) (*rest.Config, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	if err := c.CreateNamespace(namespace, nil); err != nil {
		return nil, err
	}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.Client.Create(ctx, sa); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	token := &authv1.TokenRequest{}
	if err := c.Client.SubResource("token").Create(ctx, sa, token); err != nil {
		return nil, fmt.Errorf("token for %s/%s: %w", namespace, account, err)
	}
	return c.config(c.Config.Host, token.Status.Token), nil
}

// Kubeconfig writes a configuration to a file, for programs.
func (c *Cluster) Kubeconfig(cfg *rest.Config, path string) error {
	return clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"rig": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*api.AuthInfo{"rig": {Token: cfg.BearerToken}},
		Contexts:       map[string]*api.Context{"rig": {Cluster: "rig", AuthInfo: "rig"}},
		CurrentContext: "rig",
	}, path)
}

// InCluster writes the files of a pod's /var/run/secrets/kubernetes.io/serviceaccount to dir: token, ca.crt and
// namespace.
func (c *Cluster) InCluster(cfg *rest.Config, dir, namespace string) error {
	for name, data := range map[string][]byte{"token": []byte(cfg.BearerToken), "ca.crt": cfg.CAData,
		"namespace": []byte(namespace)} {
		if err := os.WriteFile(path.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// CreateNamespace creates a namespace unless it exists.
func (c *Cluster) CreateNamespace(name string, annotations map[string]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	err := c.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}})
	return client.IgnoreAlreadyExists(err)
}

// FinalizeNamespace completes the deletion of a namespace, which is otherwise the task of a controller that is not
// here. The objects in it must be deleted before.
func (c *Cluster) FinalizeNamespace(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	ns := &corev1.Namespace{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return client.IgnoreNotFound(err)
	}
	ns.Spec.Finalizers = nil
	return client.IgnoreNotFound(c.Client.SubResource("finalize").Update(ctx, ns))
}

// ApplyFS applies the files of a folder whose names match the patterns, in the order of the patterns.
func (c *Cluster) ApplyFS(files fs.FS, patterns ...string) error {
	for _, p := range patterns {
		names, err := fs.Glob(files, p)
		if err != nil {
			return err
		}
		if names == nil {
			return fmt.Errorf("no file matches %s", p)
		}
		for _, name := range names {
			data, err := fs.ReadFile(files, name)
			if err != nil {
				return err
			}
			if err := c.ApplyYAML(data); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// ApplyYAML applies manifests like kubectl apply --server-side. It returns when the resources of a
// CustomResourceDefinition are served.
func (c *Cluster) ApplyYAML(manifests []byte) error {
	in := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := in.Decode(&u.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(u.Object) == 0 {
			continue // nothing between two separators
		}
		if err := c.apply(u); err != nil {
			return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
}

func (c *Cluster) apply(u *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	if err := c.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("rig"),
		client.ForceOwnership); err != nil {
		return err
	}
	if u.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	return wait(callFor, func(ctx context.Context) error {
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if !established(u) {
			return errors.New("not established")
		}
		return c.served(ctx, u)
	})
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, one := range conditions {
		if m, ok := one.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			return true
		}
	}
	return false
}

// served requests the resources themselves: they are available a moment after the condition is set.
func (c *Cluster) served(ctx context.Context, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		m, ok := v.(map[string]any)
		if !ok || m["served"] != true {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(fmt.Sprintf("%s/%s", group, m["name"]))
		list.SetKind(kind + "List")
		if err := c.Client.List(ctx, list, client.Limit(1)); err != nil {
			return err
		}
	}
	return nil
}

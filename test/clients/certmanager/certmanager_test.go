// Package certmanager runs cert-manager's suite for DNS-01 solvers with its rfc2136 solver against a running server.
// Start with TestSuite.
//
// The suite starts a Kubernetes API server, with programs that test/setup.sh builds. The Makefile sets the variables
// with their paths: TEST_ASSET_ETCD, TEST_ASSET_KUBE_APISERVER and TEST_ASSET_KUBECTL.
package certmanager

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/cert-manager/cert-manager/pkg/acme/webhook/apis/acme/v1alpha1"
	acme "github.com/cert-manager/cert-manager/pkg/apis/acme/v1"
	"github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/rfc2136"
	suite "github.com/cert-manager/cert-manager/test/acme"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/nameplane/nameplane/test/pages"
	"github.com/nameplane/nameplane/test/server"
)

// TestSuite runs both tests of the suite in strict mode: present and clean up; two values at one name, of which one is
// removed. The configuration of the solver is the Issuer of the how-to page, with the address of the server.
func TestSuite(t *testing.T) {
	s := server.Start(t, server.Options{})
	zone := s.CreateZone("example.org.")
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	text := base64.StdEncoding.EncodeToString(secret)
	config := solverOfPage(t)
	s.Must("POST", "/v2/tsigkeys", map[string]any{"name": config.TSIGKeyName, "algorithm": "hmac-sha256", "secret": text,
		"scope": "ZONE", "resource_id": filepath.Base(zone)}, nil)
	config.Nameserver = s.DNS[0]
	fixture := suite.NewFixture(&solver{Solver: rfc2136.New(), name: config.TSIGSecret.Name,
		data: map[string][]byte{config.TSIGSecret.Key: []byte(text)}},
		suite.SetResolvedZone("example.org."), suite.SetConfig(config), suite.SetDNSServer(s.DNS[0]),
		suite.SetUseAuthoritative(false), suite.SetStrict(true), suite.SetPollInterval(100*time.Millisecond))
	fixture.RunConformance(t)
}

// solverOfPage returns the configuration of the solver in the Issuer of the how-to page.
func solverOfPage(t *testing.T) *acme.ACMEIssuerDNS01ProviderRFC2136 {
	t.Helper()
	for _, b := range pages.Blocks(t, "../../..", "docs/how-to/certificates-cert-manager.md") {
		var issuer struct {
			Kind string
			Spec struct{ ACME *acme.ACMEIssuer }
		}
		if b.Lang != "yaml" {
			continue
		}
		if err := yaml.Unmarshal([]byte(b.Text), &issuer); err != nil {
			t.Fatal(err)
		}
		if issuer.Kind == "Issuer" {
			return issuer.Spec.ACME.Solvers[0].DNS01.RFC2136
		}
	}
	t.Fatal("the page has no Issuer")
	return nil
}

// solver is the rfc2136 solver of cert-manager. Before its first use in a namespace it creates the Secret of the key
// there, as an administrator would: the suite creates namespaces of its own.
type solver struct {
	*rfc2136.Solver
	name   string
	data   map[string][]byte
	client kubernetes.Interface
}

func (s *solver) Initialize(config *rest.Config, stop <-chan struct{}) (err error) {
	if s.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	s.Solver = rfc2136.New() // it has a cache of the Secrets of one API server, and the suite may start several
	return s.Solver.Initialize(config, stop)
}

func (s *solver) Present(ch *v1alpha1.ChallengeRequest) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Data: s.data}
	_, err := s.client.CoreV1().Secrets(ch.ResourceNamespace).Create(context.Background(), secret, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the secret: %w", err)
	}
	for deadline := time.Now().Add(server.Patience); ; time.Sleep(10 * time.Millisecond) {
		// The cache of the solver learns about the new Secret a moment later.
		err := s.Solver.Present(ch)
		if !apierrors.IsNotFound(err) || time.Now().After(deadline) {
			return err
		}
	}
}

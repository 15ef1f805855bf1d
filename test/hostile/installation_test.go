package hostile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/nameplane/nameplane/test/server"
)

// installation is the server as the files in deploy install it.
type installation struct {
	limits
	config string
	local  map[string]string // replacements in config: addresses and files of this machine
}

// tlsFiles is the directory of certificates in the manifest's configuration.
const tlsFiles = "/etc/nameplane-tls"

// manifest returns the installation of the Kubernetes manifests.
func manifest(t *testing.T) installation {
	t.Helper()
	var object struct{ Data map[string]string }
	if err := yaml.Unmarshal(readFile(t, "../../deploy/kubernetes/config.yaml"), &object); err != nil {
		t.Fatal(err)
	}
	memory := find(t, "../../deploy/kubernetes/server.yaml", `limits: \{memory: (\d+)Gi\}`) << 30
	return installation{limits{memory: memory}, object.Data["nameplane.yaml"], map[string]string{
		`":5300"`: "127.0.0.1:0", `":8053"`: "127.0.0.1:0", `":8054"`: "127.0.0.1:0", `":8055"`: "127.0.0.1:0",
		"192.0.2.1:53": "127.0.0.1:1", tlsFiles: t.TempDir()}}
}

// unit returns the installation of the systemd unit.
func unit(t *testing.T) installation {
	t.Helper()
	const file = "../../deploy/systemd/nameplane.service"
	l := limits{find(t, file, `(?m)^MemoryMax=(\d+)G$`) << 30, find(t, file, `(?m)^TasksMax=(\d+)$`)}
	return installation{l, string(readFile(t, "../../deploy/systemd/nameplane.yaml")), map[string]string{
		`":53"`: "127.0.0.1:0", "127.0.0.1:8053": "127.0.0.1:0", "127.0.0.1:8055": "127.0.0.1:0",
		"192.0.2.1:53": "127.0.0.1:1"}}
}

// everyListener returns the installation of the systemd unit with all listeners, and with a certificate for them.
func everyListener(t *testing.T) installation {
	t.Helper()
	in := unit(t)
	dir := t.TempDir()
	delete(in.local, `":53"`)
	in.local[tlsFiles], in.local[`listen: [":53"]`] = dir, fmt.Sprintf(`{listen: ['127.0.0.1:0'], tls: ['127.0.0.1:0'],
  https: ['127.0.0.1:0'], quic: ['127.0.0.1:0'], cert: %[1]s/tls.crt, key: %[1]s/tls.key}`, dir)
	in.config += "externaldns: {listen: '127.0.0.1:0'}\n# " + tlsFiles + "\n"
	return in
}

// start starts the server in a control group with the shipped limits.
func (in installation) start(t *testing.T) (*server.Server, group) {
	t.Helper()
	config := in.config
	for from, to := range in.local {
		if !strings.Contains(config, from) {
			t.Fatalf("the shipped configuration does not contain %s:\n%s", from, config)
		}
		config = strings.ReplaceAll(config, from, to)
	}
	var roots *x509.CertPool
	if dir := in.local[tlsFiles]; dir != "" {
		roots = writeCertificates(t, dir)
	}
	g := newGroup(t, in.limits)
	s := server.Start(t, server.Options{Runner: g.runner(), Config: config})
	s.Client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	return s, g
}

// writeCertificates writes the files of the Secret nameplane-tls, with the certificate of httptest. It returns the CA
// of the server.
func writeCertificates(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	https := httptest.NewTLSServer(nil)
	https.Close()
	key, err := x509.MarshalPKCS8PrivateKey(https.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: https.Certificate().Raw})
	for name, text := range map[string][]byte{"tls.crt": certificate, "ca.crt": certificate,
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(https.Certificate())
	return roots
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

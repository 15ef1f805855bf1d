package crash

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHangup swaps certificate and configuration under a running server.
func TestHangup(t *testing.T) {
	dir := newDir(t)
	file := func(name, text string) {
		t.Helper()
		// Readable for all: the server that reads them again is not root any more.
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settings := func(level string) string {
		return "dns: {listen: ['127.0.0.1:0']}\nhttp: {listen: '127.0.0.1:0', tls: {cert: c.pem, key: k.pem}}\nlog: {level: " + level + "}\n"
	}
	swap := func(serial int64) {
		t.Helper()
		cert, key := selfSigned(t, serial)
		file("c.pem", cert)
		file("k.pem", key)
	}
	swap(1)
	file("np.yaml", settings("info"))
	s := start(t, filepath.Join(dir, "data"), "--config", filepath.Join(dir, "np.yaml"))
	s.trustAnybody()
	hangup := func(said string) {
		t.Helper()
		n := strings.Count(s.output.String(), said)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return strings.Count(s.output.String(), said) > n })
	}
	expect := func(serial int64, debug bool) {
		t.Helper()
		if got := s.certificate(t); got != serial {
			t.Errorf("certificate %d, want %d", got, serial)
		}
		lines := strings.Count(s.output.String(), "level=DEBUG msg=request")
		s.must(t, http.MethodGet, "/v2/zones", nil, nil)
		s.must(t, http.MethodGet, "/v2/zones", nil, nil) // the line of the first is written by now
		if now := strings.Count(s.output.String(), "level=DEBUG msg=request"); now > lines != debug {
			t.Errorf("%d debug lines before the request, %d after; want them: %v\n%s", lines, now, debug, s.output)
		}
	}
	if !strings.HasPrefix(s.url, "https://") {
		t.Fatalf("address %s", s.url)
	}
	expect(1, false)

	swap(2)
	file("np.yaml", settings("debug"))
	hangup("reloaded configuration and certificates")
	expect(2, true)

	swap(3)
	file("np.yaml", settings("loud"))
	hangup("configuration not reloaded, the old one stays")
	expect(2, true)

	file("np.yaml", settings("info"))
	file("c.pem", "not a certificate\n")
	hangup("certificates not reloaded, the old ones stay")
	expect(2, true)

	swap(4)
	hangup("reloaded configuration and certificates")
	expect(4, false)
	if status := s.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d:\n%s", status, s.output)
	}
}

// trustAnybody lets requests go to a certificate that nobody has signed, with a new connection for each.
func (s *server) trustAnybody() {
	s.client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// certificate is the serial number of the certificate that a new connection gets.
func (s *server) certificate(t *testing.T) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func selfSigned(t *testing.T, serial int64) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

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

	"github.com/nameplane/nameplane/test/server"
)

// TestHangup replaces certificate and configuration of a running server.
func TestHangup(t *testing.T) {
	dir := server.Dir(t)
	file := func(name, text string) {
		t.Helper()
		// Readable for all users: the server has dropped root when it reads them again.
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settings := func(level string) string {
		return "dns: {listen: ['127.0.0.1:0']}\nhttp: {listen: '127.0.0.1:0', tls: {cert: c.pem, key: k.pem}}\n" +
			"log: {level: " + level + "}\n"
	}
	swap := func(serial int64) {
		t.Helper()
		cert, key := selfSigned(t, serial)
		file("c.pem", cert)
		file("k.pem", key)
	}
	swap(1)
	s := &node{server.Start(t, server.Options{Dir: dir, Config: settings("info")})}
	s.trustAnybody()
	expect := func(serial int64, debug bool) {
		t.Helper()
		if got := s.certificate(t); got != serial {
			t.Errorf("certificate %d, want %d", got, serial)
		}
		lines := strings.Count(s.Log(), "level=DEBUG msg=request")
		s.Must(http.MethodGet, "/v2/zones", nil, nil)
		s.Must(http.MethodGet, "/v2/zones", nil, nil) // after this request, the log line of the first one is written
		if now := strings.Count(s.Log(), "level=DEBUG msg=request"); now > lines != debug {
			t.Errorf("%d debug lines before the request, %d after; want them: %v\n%s", lines, now, debug, s.Log())
		}
	}
	if !strings.HasPrefix(s.HTTP, "https://") {
		t.Fatalf("address %s", s.HTTP)
	}
	expect(1, false)

	swap(2)
	s.Configure(settings("debug"))
	s.Hangup("reloaded configuration and certificates")
	expect(2, true)

	swap(3)
	s.Configure(settings("loud"))
	s.Hangup("configuration not reloaded, the old one stays")
	expect(2, true)

	s.Configure(settings("info"))
	file("c.pem", "not a certificate\n")
	s.Hangup("certificates not reloaded, the old ones stay")
	expect(2, true)

	swap(4)
	s.Hangup("reloaded configuration and certificates")
	expect(4, false)
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d:\n%s", status, s.Log())
	}
}

// trustAnybody makes requests accept any certificate, with a new connection for each.
func (s *node) trustAnybody() {
	s.Client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}

// certificate returns the serial number of the certificate of a new connection.
func (s *node) certificate(t *testing.T) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", strings.TrimPrefix(s.HTTP, "https://"), &tls.Config{InsecureSkipVerify: true})
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
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
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

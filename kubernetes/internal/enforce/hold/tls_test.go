package hold

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/nameplane/nameplane/kubernetes/test/authority"
)

// files returns the files of a side with a certificate for name, which expects a certificate for peer.
func files(a *authority.Authority, name, peer string) Files {
	cert, key := a.Issue(name, pkix.Name{CommonName: name}, name)
	return Files{Cert: cert, Key: key, CA: a.CA(), Peers: []string{peer}}
}

// TestTLS checks which clients may connect to an agent, and to which agents a plugin connects.
func TestTLS(t *testing.T) {
	ours, others := authority.New(t), authority.New(t)
	server := files(ours, AgentName, PluginName)
	conf, err := server.Server()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := Serve(ctx, ln, conf, newFakeAgent("10.1.0.0/24")); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })

	changed := func(change func(*tls.Config)) Dial {
		cert, pool, err := files(ours, PluginName, AgentName).load()
		if err != nil {
			t.Fatal(err)
		}
		c := &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool, ServerName: AgentName}
		change(c)
		return func(ctx context.Context, endpoint string) (net.Conn, error) {
			return (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", endpoint)
		}
	}
	mixed := files(ours, PluginName, AgentName)
	mixed.CA = others.CA()
	twoNames := files(ours, PluginName, AgentName)
	twoNames.Cert, twoNames.Key = ours.Issue("two-names", pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{
		{Type: commonName, Value: "shop"}, {Type: commonName, Value: PluginName}}}, PluginName)
	tests := []struct {
		name string
		dial Dial
		ok   bool
	}{
		{"plugin", files(ours, PluginName, AgentName).Dial, true},
		{"certificate of another name", files(ours, "kubelet", AgentName).Dial, false},
		{"certificate of another authority", files(others, PluginName, AgentName).Dial, false},
		{"certificate with two common names", twoNames.Dial, false},
		{"agent of another authority", mixed.Dial, false},
		{"agent of another name", files(ours, PluginName, "other").Dial, false},
		{"plugin of the test", changed(func(*tls.Config) {}), true},
		{"no certificate", changed(func(c *tls.Config) { c.Certificates = nil }), false},
		{"TLS 1.2", changed(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), false},
		{"no files", Files{Cert: "no", Key: "no", CA: "no", Peers: []string{AgentName}}.Dial, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := tt.dial.Explain(ctx, ln.Addr().String(), "*.example.com.", netip.MustParseAddr("192.0.2.1"))
			if (err == nil) != tt.ok {
				t.Errorf("Explain = %v", err)
			}
		})
	}
}

// TestRenewedFiles checks that replaced certificates are used without a restart.
func TestRenewedFiles(t *testing.T) {
	a := authority.New(t)
	conf, err := files(a, AgentName, PluginName).Server()
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		c, err := conf.GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.String()
	}
	was := serial()
	files(a, AgentName, PluginName)
	if serial() == was {
		t.Error("the old certificate is still in use")
	}
}

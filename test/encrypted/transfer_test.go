package encrypted

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

// onlyWithCertificate lets the secondary transfer zones, if it has its certificate. Its address is not enough.
const onlyWithCertificate = "transfer:\n  tls_ca: CA\n" +
	"  secondaries: [{address: 127.0.0.1:9, certificate: " + secondaryName + "}]\n"

// program returns the configuration of a secondary of test/peers.
func program(t *testing.T, name string) peers.Program {
	t.Helper()
	for _, p := range peers.Secondaries() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no secondary %s", name)
	return peers.Program{}
}

// secondary returns the options of a secondary that transfers over TLS.
func (n *node) secondary(own pair) peers.Options {
	return peers.Options{Primary: n.TLS[0],
		TLS: peers.TLS{CA: n.ca.file, Name: primaryName, Cert: own.cert, Key: own.key}}
}

// TestSecondariesOverTLS has BIND and NSD transfer a zone over TLS with their certificates, and follow a change. NSD
// 4.6.1 shows no certificate on its first connection, so it has the zone only after the NOTIFY.
func TestSecondariesOverTLS(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"BIND", "NSD"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port, err := server.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			n := start(t, "", fmt.Sprintf("transfer:\n  tls_ca: CA\n"+
				"  secondaries: [{address: '127.0.0.1:%d', certificate: %s}]\n", port, secondaryName))
			n.fill()
			opts := n.secondary(n.ca.issue(secondaryName))
			opts.Port = port
			s := peers.Start(t, program(t, name), []peers.Zone{{Name: apex}}, opts)
			n.put("www", "A", "192.0.2.2")
			server.Eventually(t, name+" has the change", func() bool { return serial(s.Addr) == serial(n.DNS[0]) })
			r, err := server.Ask(s.Addr, www, dns.TypeA)
			if err != nil || len(r.Answer) != 1 || r.Answer[0].(*dns.A).A.String() != "192.0.2.2" {
				t.Errorf("%s has %v %v", name, r, err)
			}
			expect(t, n.Log(), "over TLS 1.3 with the certificate of "+secondaryName)
		})
	}
}

// TestTransferNeedsTLS13 checks that a secondary that offers only TLS 1.2 is refused.
func TestTransferNeedsTLS13(t *testing.T) {
	t.Parallel()
	n := start(t, "", onlyWithCertificate)
	opts := n.secondary(n.ca.issue(secondaryName))
	opts.TLS.Protocols = "TLSv1.2"
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		s, err := program(t, "BIND").Start(ctx, []peers.Zone{{Name: apex}}, opts)
		if err == nil {
			s.Stop()
		}
		ended <- err
	}()
	server.Eventually(t, "a refused transfer", func() bool {
		return n.Metric(`nameplane_transfers_total{kind="axfr",result="refused"}`) > 0 ||
			n.Metric(`nameplane_transfers_total{kind="ixfr",result="refused"}`) > 0
	})
	cancel()
	if err := <-ended; err == nil {
		t.Error("BIND has the zone over TLS 1.2")
	}
}

// axfr transfers the zone over a connection and returns the number of records.
func axfr(addr string, c *tls.Config) (int, error) {
	tr := &dns.Transfer{DialTimeout: server.Patience, ReadTimeout: server.Patience}
	if c != nil {
		conn, err := tls.Dial("tcp", addr, c)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		tr.Conn = &dns.Conn{Conn: conn}
	}
	parts, err := tr.In(new(dns.Msg).SetAxfr(apex), addr)
	if err != nil {
		return 0, err
	}
	records := 0
	for p := range parts {
		if p.Error != nil {
			return 0, p.Error
		}
		records += len(p.RR)
	}
	return records, nil
}

// TestTransferPermissions transfers the zone with and without the certificate that the rule wants.
func TestTransferPermissions(t *testing.T) {
	t.Parallel()
	n := start(t, "", onlyWithCertificate)
	right, wrong := n.ca.client(n.ca.issue(secondaryName), "dot"), n.ca.client(n.ca.issue("ns3.example.org"), "dot")
	old := right.Clone()
	old.MaxVersion = tls.VersionTLS12
	tests := []struct {
		name string
		addr string
		tls  *tls.Config
		want bool
	}{
		{"the certificate of the secondary", n.TLS[0], right, true},
		{"another certificate of the same CA", n.TLS[0], wrong, false},
		{"no certificate", n.TLS[0], n.ca.client(pair{}, "dot"), false},
		{"the certificate with TLS 1.2", n.TLS[0], old, false},
		{"the same address over plain TCP", n.DNS[0], nil, false},
	}
	for _, tt := range tests {
		records, err := axfr(tt.addr, tt.tls)
		if (err == nil) != tt.want || tt.want && records < 4 {
			t.Errorf("%s: %d records, %v", tt.name, records, err)
		}
	}
}

// TestKeyNeedsItsCertificate checks that a key that a rule combines with a certificate is not enough over plain TCP.
func TestKeyNeedsItsCertificate(t *testing.T) {
	t.Parallel()
	n := start(t, "", "transfer:\n  tls_ca: CA\n  secondaries: [{address: 127.0.0.1:9, key: "+key.Name+
		", certificate: "+secondaryName+"}]\n")
	n.createKey(key)
	own := n.ca.issue(secondaryName)
	signed := []string{"-y", "hmac-sha256:" + key.Name + ":" + key.Secret, apex, "AXFR"}
	certificate := []string{"+tls", "+tls-certfile=" + own.cert, "+tls-keyfile=" + own.key}
	expect(t, run("kdig", n.TLS[0], append(certificate, signed...)...), "192.0.2.1")
	expect(t, run("kdig", n.TLS[0], append([]string{"+tls"}, signed...)...), "REFUSED", "!192.0.2.1")
	expect(t, run("kdig", n.TLS[0], append(certificate, apex, "AXFR")...), "REFUSED", "!192.0.2.1")
	expect(t, run("kdig", n.DNS[0], signed...), "REFUSED", "!192.0.2.1")
}

// TestTransfersShareAConnection requests two transfers and a SOA at once on one connection. Both transfers are whole.
func TestTransfersShareAConnection(t *testing.T) {
	t.Parallel()
	n := start(t, "", onlyWithCertificate)
	n.fill()
	conn, err := n.dial("127.0.0.1", n.ca.client(n.ca.issue(secondaryName), "dot"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &dns.Conn{Conn: conn}
	const soaID, first, second = 1, 2, 3
	for id, typ := range map[uint16]uint16{soaID: dns.TypeSOA, first: dns.TypeAXFR, second: dns.TypeAXFR} {
		q := new(dns.Msg).SetQuestion(apex, typ)
		q.Id = id
		if err := c.WriteMsg(q); err != nil {
			t.Fatal(err)
		}
	}
	records, soas := map[uint16]int{}, map[uint16]int{}
	for soas[soaID] < 1 || soas[first] < 2 || soas[second] < 2 {
		r, err := c.ReadMsg()
		if err != nil || r.Rcode != dns.RcodeSuccess {
			t.Fatalf("%v %v", r, err)
		}
		records[r.Id] += len(r.Answer)
		for _, rec := range r.Answer {
			if rec.Header().Rrtype == dns.TypeSOA {
				soas[r.Id]++
			}
		}
	}
	if records[first] != records[second] || records[first] < 103 {
		t.Errorf("transfers of %d and %d records", records[first], records[second])
	}
}

// bindPrimary starts a BIND that gives its zone to clients with a certificate of the CA, over TLS only. protocols are
// the versions of TLS that it offers; empty: all.
func (n *node) bindPrimary(protocols string) *peers.Server {
	n.t.Helper()
	file := filepath.Join(n.ca.dir, "zone")
	text := "$TTL 60\n@ SOA ns host 1 3600 5 600 60\n@ NS ns\nns A 192.0.2.53\ncopied A 192.0.2.7\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
	own := n.ca.issue("bind.example.org")
	return peers.Start(n.t, peers.BIND(), []peers.Zone{{Name: "copy.test.", File: file}},
		peers.Options{Update: true, Notify: n.DNS[0], TLS: peers.TLS{CA: n.ca.file, Cert: own.cert, Key: own.key,
			Protocols: protocols}})
}

// TestCopyNeedsTLS13 checks that a zone is not copied from a master that offers only TLS 1.2 (RFC 9103 §7.2).
func TestCopyNeedsTLS13(t *testing.T) {
	t.Parallel()
	n := start(t, "", "transfer: {tls_ca: CA}\n")
	named := n.bindPrimary("TLSv1.2")
	old := n.ca.client(n.own)
	old.ServerName, old.MaxVersion = "bind.example.org", tls.VersionTLS12
	if conn, err := tls.Dial("tcp", named.TLS, old); err != nil {
		t.Fatalf("BIND does not offer TLS 1.2: %v", err)
	} else {
		conn.Close()
	}
	var z struct{ ID string }
	n.Must(http.MethodPost, "/v2/zones", map[string]any{"name": "copy.test.", "type": "SECONDARY",
		"masters": []string{"tls://" + named.TLS + "#bind.example.org"}}, &z)
	server.Eventually(t, "a refused master", func() bool {
		return n.Metric("nameplane_secondary_refresh_failed_total") > 0
	})
	expect(t, string(n.Must(http.MethodGet, "/v2/zones/"+z.ID, nil, nil).Body), `"problem":"`, `"status":"PENDING"`)
	if r, err := server.Ask(n.DNS[0], "copied.copy.test.", dns.TypeA); err != nil || len(r.Answer) > 0 {
		t.Errorf("the zone was copied: %v %v", r, err)
	}
}

// TestCopyFromBINDOverTLS copies a zone of BIND over TLS, with our certificate. A master with another name in its
// certificate, or with a certificate of another CA, is refused.
func TestCopyFromBINDOverTLS(t *testing.T) {
	t.Parallel()
	n := start(t, "", "transfer: {tls_ca: CA}\n")
	named := n.bindPrimary("")
	var z struct{ ID string }
	n.Must(http.MethodPost, "/v2/zones", map[string]any{"name": "copy.test.", "type": "SECONDARY",
		"masters": []string{"tls://" + named.TLS + "#ns9.example.org"}}, &z)
	path := "/v2/zones/" + z.ID
	problem := func() string { return string(n.Must(http.MethodGet, path, nil, nil).Body) }
	server.Eventually(t, "the wrong name is noticed", func() bool {
		text := problem()
		return len(text) > 0 && n.Metric("nameplane_secondary_refresh_failed_total") > 0
	})
	expect(t, problem(), "ns9.example.org")
	masters := func(m string) {
		t.Helper()
		n.Must(http.MethodPatch, path, map[string]any{"masters": []string{m}}, nil)
		n.Must(http.MethodPost, path+"/tasks/xfr", nil, nil)
	}
	masters(named.Addr) // BIND does not give it over plain TCP
	failed := n.Metric("nameplane_secondary_refresh_failed_total")
	server.Eventually(t, "plain TCP is refused", func() bool {
		return n.Metric("nameplane_secondary_refresh_failed_total") > failed
	})
	masters("tls://" + named.TLS + "#bind.example.org")
	server.Eventually(t, "the zone is copied", func() bool {
		r, err := server.Ask(n.DNS[0], "copied.copy.test.", dns.TypeA)
		return err == nil && len(r.Answer) == 1
	})
	expect(t, n.Log(), "master=tls://"+named.TLS+"#bind.example.org")
	other := newAuthority(t)
	if err := os.Rename(other.file, n.ca.file); err != nil {
		t.Fatal(err)
	}
	n.Hangup("reloaded configuration")
	failed = n.Metric("nameplane_secondary_refresh_failed_total")
	n.Must(http.MethodPost, path+"/tasks/xfr", nil, nil)
	server.Eventually(t, "another CA is noticed", func() bool {
		return n.Metric("nameplane_secondary_refresh_failed_total") > failed
	})
	expect(t, n.Log(), "certificate signed by unknown authority")
}

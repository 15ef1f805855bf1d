package real_test

import (
	"errors"
	"net"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/test/server"
)

// TestIntercepted runs an interceptor that replies from the unused address. The command and the server, which queries
// only public addresses, must both notice it, and must not report one without it.
func TestIntercepted(t *testing.T) {
	internet(t)
	s := server.Start(t, server.Options{Config: server.Listen + "explain: {registry: false}\n"})
	see := func(domain string, want explain.Status) {
		t.Helper()
		for who, r := range map[string]*report.Report{"command": scanReport(t, "scan", domain),
			"server": scan(t, s, domain)} {
			i := slices.IndexFunc(r.Findings, func(f explain.Finding) bool { return f.ID == "VAN01" })
			if i < 0 || r.Findings[i].Status != want {
				t.Errorf("%s: VAN01 is not %s: %s", who, want, texts(r))
			}
		}
	}
	see("good.com", explain.Pass)
	end := intercept(t)
	see("live.com", explain.Fail) // another domain, since equal requests within ten seconds share a scan
	end()
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// intercept answers queries to 192.0.2.53, inside the namespace.
func intercept(t *testing.T) (end func()) {
	t.Helper()
	if out, err := exec.Command("ip", "address", "replace", "192.0.2.53/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("ip: %v\n%s", err, out)
	}
	conn, err := net.ListenPacket("udp4", "192.0.2.53:53")
	if err != nil {
		t.Fatal(err)
	}
	answer := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) { _ = w.WriteMsg(new(dns.Msg).SetReply(q)) })
	server := &dns.Server{PacketConn: conn, Handler: answer}
	done := make(chan error, 1)
	go func() { done <- server.ActivateAndServe() }()
	return func() {
		if err := errors.Join(server.Shutdown(), <-done,
			exec.Command("ip", "address", "del", "192.0.2.53/32", "dev", "lo").Run()); err != nil {
			t.Error(err)
		}
	}
}

// scan returns the report of a scan by a server.
func scan(t *testing.T, s *server.Server, target string) *report.Report {
	t.Helper()
	var x struct{ ID, State string }
	s.Must("POST", "/explain/v1/scans", map[string]string{"kind": "scan", "target": target}, &x)
	server.Eventually(t, "a scan that is done", func() bool {
		s.Must("GET", "/explain/v1/scans/"+x.ID, nil, &x)
		return x.State == "done"
	})
	r := new(report.Report)
	s.Must("GET", "/explain/v1/scans/"+x.ID+"/report", nil, r)
	return r
}

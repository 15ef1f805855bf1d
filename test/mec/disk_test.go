package mec

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiskFull limits the size of the server's files, which has the effect of a full disk. Every API must answer 503,
// no change may be half done, and queries are answered as before. With free space again all changes work.
func TestDiskFull(t *testing.T) {
	// Only the user of a process can change its limits, except with a capability that root in a container does not have.
	var args []string
	if os.Geteuid() == 0 {
		args = []string{"--user", "root"}
	}
	s := start(t, "", settings, args...)
	limit := func(size uint64) {
		t.Helper()
		var old unix.Rlimit
		if err := unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, nil, &old); err != nil {
			t.Fatal(err)
		}
		if err := unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: old.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	all, token := s.MEP+"/mep/config/app1/dns_rules", s.appToken("app1")
	s.want(201, "POST "+all, rule("r", "www.example.com", "192.0.2.1", ""))
	limit(256 << 10)
	acked := -1
	for i := range 5000 {
		var list []string
		for j := range 32 {
			list = append(list, rule(fmt.Sprint("r", j), fmt.Sprintf("n%d-%d.example.com", i, j), "192.0.2.1", ""))
		}
		r, err := s.call("PUT "+s.MEP+"/mep/config/fill"+fmt.Sprint(i)+"/dns_rules", "["+strings.Join(list, ",")+"]")
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Log())
		}
		if r.Status != 200 {
			break
		}
		acked = i
	}
	if acked < 0 || acked == 4999 {
		t.Fatalf("%d lists fitted", acked+1)
	}
	limit(8 << 10) // the meta pages of bbolt: a small change would fit into free pages behind them
	refused := fmt.Sprint("fill", acked+1)
	off := rule("r", "www.example.com", "192.0.2.1", `,"state":"INACTIVE"`)
	for _, c := range []struct{ call, body string }{
		{"PUT " + s.MEP + "/mep/config/" + refused + "/dns_rules",
			"[" + rule("r", "more.example.com", "192.0.2.1", "") + "]"},
		{"DELETE " + all + "/r", ""},
		{"PUT " + s.Apps + "/applications/app1/dns_rules/r", off},
		{"POST " + s.MEP + "/mepcfg/mec_app_config/v1/rules/app2/dns_rules",
			rule("", "x.example.com", "192.0.2.1", `,"state":"ACTIVE"`)},
		{"POST " + s.MEP + "/mepcfg/app_lcm/v1/applications/app3/appd_configuration", `{"appName":"x"}`},
		{"PUT " + s.MEP + "/mep/dns_server_mgmt/v1/rrecord",
			`[{"zone":".","rr":[{"name":"y.example.com.","type":"A","class":"IN","ttl":30,"rData":["192.0.2.1"]}]}]`},
	} {
		r := s.want(503, c.call, c.body, token)
		if r.Header.Get("Retry-After") == "" || !strings.Contains(string(r.Body), "Nothing was changed") {
			t.Errorf("%s: %v %s", c.call, r.Header, r.Body)
		}
	}
	check := func() {
		t.Helper()
		s.says("www.example.com A", "192.0.2.1/30")
		s.says(fmt.Sprintf("n%d-31.example.com A", acked), "192.0.2.1/30")
		for _, name := range []string{"more", "x", "y", fmt.Sprintf("n%d-0", acked+1)} {
			s.says(name+".example.com A", "REFUSED")
		}
		if got := string(s.want(200, "GET "+s.MEP+"/mep/config/"+refused+"/dns_rules", "").Body); got != "[]\n" {
			t.Errorf("rules of a refused list: %s", got)
		}
	}
	check()
	limit(unix.RLIM_INFINITY)
	s.want(200, "PUT "+s.Apps+"/applications/app1/dns_rules/r", off, token)
	s.says("www.example.com A", "REFUSED")
}

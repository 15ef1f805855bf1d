package service

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/test/server"
)

// hosts is the number of hostnames in TestLoad, and maxMemory is how much memory the program may use for them.
const (
	hosts     = 1000
	perRoute  = 10
	maxMemory = 200 << 20
)

// TestLoad runs the program with the rights of the manifests in a cluster with a thousand hostnames. It asks the
// servers of the lab, until every hostname has a report.
func TestLoad(t *testing.T) {
	r := start(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "nameplane-service")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/nameplane-service").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, err := lab.Start(ctx, lab.Options{Dir: filepath.Join(dir, "lab")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Wait()
	defer cancel()
	r.manyRoutes(t)
	cfg, err := r.ConfigFor(namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Kubeconfig(cfg, filepath.Join(dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	p := &cluster.Process{Process: server.Process{Name: "nameplane-service", LogFile: filepath.Join(dir, "log"),
		Command: []string{program, "run", "--kubeconfig", filepath.Join(dir, "kubeconfig"),
			"--lab", filepath.Join(dir, "lab"), "--rate", "1000", "--metrics-addr", "0", "--health-addr", "0"}}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p.Stop(); t.Failed() {
			t.Logf("the log of the program:\n%s", p.Log())
		}
	}()
	reports := 0
	for begun := time.Now(); reports < hosts && time.Since(begun) < 8*time.Minute && !p.Ended(); time.Sleep(time.Second) {
		if reports = r.broken(t); reports == hosts {
			t.Logf("all reports are there after %v", time.Since(begun).Round(time.Second))
		}
	}
	if reports != hosts {
		t.Fatalf("%d of %d reports", reports, hosts)
	}
	used := highWater(t, p.PID())
	t.Logf("%d hostnames, %d queries, %d MiB of memory", reports, len(l.Net.History()), used>>20)
	if used > maxMemory {
		t.Errorf("%d MiB of memory for %d hostnames", used>>20, hosts)
	}
}

// broken returns the number of reports whose first broken link is DNS.
func (r *rig) broken(t *testing.T) (n int) {
	t.Helper()
	var list v1alpha1.HostnameReportList
	if err := r.admin.List(t.Context(), &list, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for _, x := range list.Items {
		if x.Status.FirstBroken == "DNS" {
			n++
		}
	}
	return n
}

// manyRoutes creates a Gateway and the routes of a thousand hostnames that have no records.
func (r *rig) manyRoutes(t *testing.T) {
	t.Helper()
	for _, ns := range []string{"infra", "shop"} {
		if err := r.CreateNamespace(ns, nil); err != nil {
			t.Fatal(err)
		}
	}
	edge := strings.ReplaceAll(gateway("edge"), "hostname: edge.example.test", `hostname: "*.example.com"`)
	r.apply(t, backend+"---"+edge)
	r.set(t, "edge", working())
	r.remove(t, "gateway.networking.k8s.io/v1", "HTTPRoute", "shop", "edge")
	for i := range hosts / perRoute {
		var names []string
		for j := range perRoute {
			names = append(names, fmt.Sprintf("h%d-%d.example.com", i, j))
		}
		name := fmt.Sprintf("many%d", i)
		text := gateway(name)
		_, route, _ := strings.Cut(text, "kind: HTTPRoute")
		route = strings.ReplaceAll(route, "parentRefs: [{name: "+name, "parentRefs: [{name: edge")
		route = strings.ReplaceAll(route, "hostnames: ["+name+".example.test]", "hostnames: ["+strings.Join(names, ",")+"]")
		r.apply(t, "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute"+route)
		r.setStatus(t, "HTTPRoute", "shop", name, fmt.Sprintf(`{"parents":[{"parentRef":{"name":"edge","namespace":"infra"},`+
			`"controllerName":"example.org/edge","conditions":[%s]}]}`, strings.Join(working().route, ",")))
	}
}

// highWater returns the largest size of the memory that a process had.
func highWater(t *testing.T, pid int) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "VmHWM:" {
			kib, err := strconv.Atoi(words[1])
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the system does not say how much memory the program used")
	return 0
}

// Package cluster runs the environment of egress firewall tests: a real Kubernetes API server, and a real OVN with pods
// and a simulated internet, in temporary folders and on loopback or in network namespaces.
//
// Start with Start in cluster.go for the API server, and StartOVN in ovn.go for a node. Everything ends with the test,
// even if the test is killed.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/test/server"
)

// T is the part of testing.T that this package needs. Run provides one for a program that is not a test.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

var _ T = testing.TB(nil)

// readyIn is the maximum time until a part answers for the first time. Alone it takes at most three seconds; other
// packages may be compiling at the same time.
const readyIn = 90 * time.Second

// Options configure a Cluster.
type Options struct {
	Fsync bool // let etcd wait for the disk, as in production; a test need not
}

// Cluster is an API server and its etcd. There are no controllers: namespaces get no default service account, deleted
// namespaces remain until FinalizeNamespace, and there is no garbage collection by owner.
type Cluster struct {
	Config *rest.Config  // configuration of an administrator, without a rate limit
	Client client.Client // client for Config; knows the built-in types, and others as unstructured
	API    *Process      // to stop, kill, pause and start again
	Etcd   *Process
	Dir    string // temporary folder with the logs

	ca    []byte
	audit string
}

// Start starts a cluster and returns when it is ready.
func Start(t T, opts Options) *Cluster {
	t.Helper()
	begun := time.Now()
	c := &Cluster{Dir: tempDir(t)}
	if err := c.start(t, opts); err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	t.Logf("the API server was ready after %v", time.Since(begun).Round(time.Millisecond))
	return c
}

func (c *Cluster) start(t T, opts Options) error {
	keys, err := makeKeys()
	if err != nil {
		return err
	}
	if err := c.writeFiles(keys); err != nil {
		return err
	}
	var ports [3]int
	for i := range ports {
		if ports[i], err = reservePort(t); err != nil {
			return err
		}
	}
	c.ca, c.audit = keys.caCert, c.file("audit.log")
	c.Config = c.config(fmt.Sprintf("https://127.0.0.1:%d", ports[0]), keys.token)
	c.Config.QPS = -1
	store := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	if c.Etcd, err = c.process(t, "etcd", etcdArgs(c.file("etcd"), store, ports[2], opts)); err != nil {
		return err
	}
	if c.API, err = c.process(t, "kube-apiserver", c.apiArgs(store, ports[0])); err != nil {
		return err
	}
	if err := c.Ready(); err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, c.Etcd.Log(), c.API.Log())
	}
	c.Client, err = client.New(c.Config, client.Options{})
	return err
}

func (c *Cluster) file(name string) string { return filepath.Join(c.Dir, name) }

// auditPolicy records the user and the result of each request for a resource, once.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  users: ["system:apiserver"]
- level: None
  nonResourceURLs: ["*"]
- level: Metadata
`

func (c *Cluster) writeFiles(k keys) error {
	for name, data := range map[string][]byte{
		"audit.yaml": []byte(auditPolicy),
		"tokens.csv": []byte(k.token + ",admin,admin,system:masters\n"),
		"server.crt": k.serverCert,
		"server.key": k.serverKey,
		"sa.key":     k.accounts,
		"audit.log":  nil,
	} {
		if err := os.WriteFile(c.file(name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) process(t T, name string, args []string) (*Process, error) {
	path, err := Tool(name)
	if err != nil {
		return nil, err
	}
	p := &Process{server.Process{Name: name, LogFile: c.file(name + ".log"), Command: append([]string{path}, args...)}}
	t.Cleanup(p.Kill)
	return p, p.Start()
}

func etcdArgs(dir, url string, peer int, opts Options) []string {
	other := fmt.Sprintf("http://127.0.0.1:%d", peer)
	args := []string{
		"--data-dir=" + dir, "--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		"--listen-peer-urls=" + other, "--initial-advertise-peer-urls=" + other, "--initial-cluster=default=" + other,
		"--socket-reuse-port=true", "--log-level=warn",
	}
	if !opts.Fsync {
		args = append(args, "--unsafe-no-fsync=true")
	}
	return args
}

func (c *Cluster) apiArgs(store string, port int) []string {
	return []string{
		"--etcd-servers=" + store,
		fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1", "--permit-port-sharing=true",
		"--cert-dir=" + c.Dir, "--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + c.file("sa.key"),
		"--service-account-signing-key-file=" + c.file("sa.key"),
		"--authorization-mode=RBAC", "--token-auth-file=" + c.file("tokens.csv"),
		"--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112",
		// No controller creates the service account that a pod would need.
		"--disable-admission-plugins=ServiceAccount",
		// Without this option the API server searches for an address of the machine to advertise.
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--audit-policy-file=" + c.file("audit.yaml"), "--audit-log-path=" + c.audit, "--audit-log-mode=blocking",
		"--audit-log-maxsize=8192", // MB; the reader does not follow a log that is rotated
	}
}

// Ready waits until the API server serves, for example after API.Start.
func (c *Cluster) Ready() error {
	hc, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return err
	}
	defer hc.CloseIdleConnections()
	return wait(readyIn, func(ctx context.Context) error {
		if c.API.Ended() || c.Etcd.Ended() {
			return fatal{errors.New("a process ended")}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Config.Host+"/readyz", nil)
		if err != nil {
			return fatal{err}
		}
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz says %s", resp.Status)
		}
		return nil
	})
}

// fatal is an error for which waiting does not help.
type fatal struct{ error }

// wait retries until there is no error, and returns the last one after the time limit.
func wait(limit time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if f := (fatal{}); errors.As(err, &f) {
			return f.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", limit, err)
		case <-tick.C:
		}
	}
}

// tempDir creates a folder with a short path: socket paths must not exceed 107 bytes, which a test's own folder can.
func tempDir(t T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rig-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// reservePort reserves a free TCP port of loopback for the test, also while its server is down. It binds a socket with
// SO_REUSEPORT and does not listen. Only the servers of the tests, which set that option too, can use the port.
func reservePort(t T) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return addr.(*unix.SockaddrInet4).Port, nil
}

// Run provides a T to a program that is not a test, for the duration of f. Fatalf ends f, and Run returns it as an
// error.
func Run(log func(string), f func(T)) error {
	r := &run{log: log}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.end()
		f(r)
	}()
	<-done
	return r.err
}

type run struct {
	log     func(string)
	err     error
	cleanup []func()
}

func (r *run) Helper() {}

func (r *run) Logf(format string, args ...any) {
	r.log(strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (r *run) Fatalf(format string, args ...any) {
	r.err = fmt.Errorf(format, args...)
	runtime.Goexit()
}

func (r *run) Cleanup(f func()) { r.cleanup = append(r.cleanup, f) }

func (r *run) end() {
	for i := len(r.cleanup) - 1; i >= 0; i-- {
		r.cleanup[i]()
	}
}

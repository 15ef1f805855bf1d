// Package program has what all programs that run in a cluster share: the flags for the cluster and the log, and the
// manager that runs controllers.
//
// Start with Flags.Run in program.go.
package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/nameplane/nameplane/internal/cli"
)

// Flags are the flags of every command that connects to a cluster.
type Flags struct {
	kubeconfig      string
	metrics, health string
	logFormat       string
	verbose         bool
}

// Add declares the flags. By default, metrics are on this port of loopback, and health checks on the next one.
func (f *Flags) Add(fl *pflag.FlagSet, port int) {
	f.AddConfig(fl)
	fl.StringVar(&f.metrics, "metrics-addr", fmt.Sprintf("127.0.0.1:%d", port), "`ADDR`ess for /metrics; 0 disables it")
	fl.StringVar(&f.health, "health-addr", fmt.Sprintf("127.0.0.1:%d", port+1),
		"`ADDR`ess for /healthz and /readyz; 0 disables it")
	fl.StringVar(&f.logFormat, "log-format", "text", "`FORMAT` of the log: text or json")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log all steps, not only changes")
}

// AddConfig declares only the flags that a command without a server needs.
func (f *Flags) AddConfig(fl *pflag.FlagSet) {
	fl.StringVar(&f.kubeconfig, "kubeconfig", "",
		"`FILE` with the address of the cluster (default: KUBECONFIG, ~/.kube/config, or the pod's service account)")
}

// Logger returns a logger to standard error. Libraries use it too.
func (f *Flags) Logger(c *cobra.Command) (*slog.Logger, error) {
	w, opts := c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelInfo}
	if f.verbose {
		opts.Level = slog.LevelDebug
	}
	var h slog.Handler
	switch f.logFormat {
	case "text":
		h = slog.NewTextHandler(w, opts)
	case "json":
		h = slog.NewJSONHandler(w, opts)
	default:
		return nil, cli.Usage(c, "--log-format %s: must be text or json", f.logFormat)
	}
	SetLogger(h)
	return slog.New(h), nil
}

// SetLogger sets the logger of controller-runtime and that of client-go, which uses klog. Each of them has its own,
// and both write to standard error in another format when it is not set.
func SetLogger(h slog.Handler) {
	ctrl.SetLogger(logr.FromSlogHandler(h))
	klog.SetLogger(logr.FromSlogHandler(h))
}

// Config returns the configuration of the client of a program.
func (f *Flags) Config(program string) (*rest.Config, error) {
	// These are the rules of kubectl, so that a user who can run kubectl needs no flag.
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, &cli.Failure{Code: cli.ExitUnknown, Text: "no cluster: " + err.Error(), Err: err,
			Hint: "give --kubeconfig FILE, set KUBECONFIG, or run in a pod with a service account"}
	}
	// The API server has its own fairness. A second limit here only delays a burst of names.
	c.QPS = -1
	c.UserAgent = program
	return c, nil
}

// NeedNamespace rejects values that are not the name of a namespace. An empty one would mean all namespaces.
func NeedNamespace(c *cobra.Command, flag, name, example string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return cli.Usage(c, "--%s %q: must be the name of a namespace, such as %s", flag, name, example)
	}
	return nil
}

// Run runs the manager until the command is stopped. setup adds controllers to it. namespace is that of the leader
// election lease.
func (f *Flags) Run(c *cobra.Command, config *rest.Config, namespace string, opts ctrl.Options, log *slog.Logger,
	setup func(ctrl.Manager) error) error {
	opts.LeaderElectionNamespace = namespace
	opts.LeaderElectionReleaseOnCancel = true // all work ends with the process, so the next leader may start at once
	opts.Metrics = metricsserver.Options{BindAddress: f.metrics}
	opts.HealthProbeBindAddress = f.health
	mgr, err := ctrl.NewManager(config, opts)
	if err != nil {
		return Undefined(err, c, cli.ExitError)
	}
	// The checks report only that the process runs. A restart does not help while the cluster or a server is down, and
	// what was written stays valid meanwhile.
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping),
		setup(mgr)); err != nil {
		return Undefined(err, c, cli.ExitError)
	}
	log.Info("running", "command", c.Name(), "cluster", config.Host)
	// The context ends with SIGTERM, which is how Kubernetes stops a pod: that is not a failure.
	if err := mgr.Start(c.Context()); err != nil && !errors.Is(err, context.Canceled) {
		return Undefined(err, c, cli.ExitError)
	}
	log.Info("stopped")
	return nil
}

// Undefined adds a hint to an error from a cluster without the custom resource definitions of a program.
func Undefined(err error, c *cobra.Command, code int) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	return &cli.Failure{Code: code, Text: err.Error(), Err: err,
		Hint: "the cluster lacks the definitions: " + c.Root().Name() + " crds | kubectl apply -f -"}
}

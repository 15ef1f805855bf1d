package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/nameplane/nameplane/internal/cli"
	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
)

// clusterFlags are the flags of every command that connects to a cluster.
type clusterFlags struct {
	kubeconfig      string
	metrics, health string
	logFormat       string
	verbose         bool
}

// add declares the flags. By default, metrics are on this port of loopback, and health checks on the next one.
func (f *clusterFlags) add(fl *pflag.FlagSet, port int) {
	f.addConfig(fl)
	fl.StringVar(&f.metrics, "metrics-addr", fmt.Sprintf("127.0.0.1:%d", port), "`ADDR`ess for /metrics; 0 disables it")
	fl.StringVar(&f.health, "health-addr", fmt.Sprintf("127.0.0.1:%d", port+1),
		"`ADDR`ess for /healthz and /readyz; 0 disables it")
	fl.StringVar(&f.logFormat, "log-format", "text", "`FORMAT` of the log: text or json")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log all steps, not only changes")
}

// addConfig declares only the flags that a command without a server needs.
func (f *clusterFlags) addConfig(fl *pflag.FlagSet) {
	fl.StringVar(&f.kubeconfig, "kubeconfig", "",
		"`FILE` with the address of the cluster (default: KUBECONFIG, ~/.kube/config, or the pod's service account)")
}

// logger returns a logger to standard error. Libraries use it too.
func (f *clusterFlags) logger(c *cobra.Command) (*slog.Logger, error) {
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
	setLogger(h)
	return slog.New(h), nil
}

// setLogger sets the logger of controller-runtime and that of client-go, which uses klog. Each of them has its own,
// and both write to standard error in another format when it is not set.
func setLogger(h slog.Handler) {
	ctrl.SetLogger(logr.FromSlogHandler(h))
	klog.SetLogger(logr.FromSlogHandler(h))
}

// config returns the configuration of the client.
func (f *clusterFlags) config() (*rest.Config, error) {
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
	c.UserAgent = "nameplane-egress"
	return c, nil
}

// scheme returns a scheme with the types that the commands read and write.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
		networkingv1.AddToScheme,
		apiv1.AddToScheme, v1alpha1.AddToScheme, dnsv1alpha1.AddToScheme)
	return s, types.AddToScheme(s)
}

// needNamespace rejects values that are not the name of a namespace. An empty one would mean all namespaces.
func needNamespace(c *cobra.Command, flag, name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return cli.Usage(c, "--%s %q: must be the name of a namespace, such as %s", flag, name, egress.DefaultNamespace)
	}
	return nil
}

// run runs the manager until the command is stopped. setup adds controllers to it. namespace is that of the
// DNSNameResolvers and of the leader election lease. Package fetch reads DNSNameResolvers, because they are most of the
// data.
func (f *clusterFlags) run(c *cobra.Command, namespace string, opts ctrl.Options,
	setup func(ctrl.Manager, *slog.Logger) error) error {
	log, err := f.logger(c)
	if err != nil {
		return err
	}
	config, err := f.config()
	if err != nil {
		return err
	}
	if opts.Scheme, err = scheme(); err != nil {
		return err
	}
	resolvers, err := fetch.NewClient(config)
	if err != nil {
		return err
	}
	opts.Cache.NewInformer = fetch.Informers(resolvers, namespace)
	opts.LeaderElectionNamespace = namespace
	opts.LeaderElectionReleaseOnCancel = true // all work ends with the process, so the next leader may start at once
	opts.Metrics = metricsserver.Options{BindAddress: f.metrics}
	opts.HealthProbeBindAddress = f.health
	mgr, err := ctrl.NewManager(config, opts)
	if err != nil {
		return undefined(err, cli.ExitError)
	}
	// The checks report only that the process runs. A restart does not help while the cluster or a database is
	// down, and the rules in the switches stay valid meanwhile.
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping),
		setup(mgr, log)); err != nil {
		return undefined(err, cli.ExitError)
	}
	log.Info("running", "command", c.Name(), "cluster", config.Host)
	// The context ends with SIGTERM, which is how Kubernetes stops a pod: that is not a failure.
	if err := mgr.Start(c.Context()); err != nil && !errors.Is(err, context.Canceled) {
		return undefined(err, cli.ExitError)
	}
	log.Info("stopped")
	return nil
}

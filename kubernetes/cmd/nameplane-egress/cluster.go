package main

import (
	"log/slog"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
	"github.com/nameplane/nameplane/kubernetes/internal/program"
)

// userAgent is the name of the program in the audit log of the API server.
const userAgent = "nameplane-egress"

// scheme returns a scheme with the types that the commands read and write.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
		networkingv1.AddToScheme,
		apiv1.AddToScheme, v1alpha1.AddToScheme, dnsv1alpha1.AddToScheme)
	return s, types.AddToScheme(s)
}

// needNamespace rejects values that are not the name of a namespace. The API server does not: it returns an empty list
// for such a namespace, and nothing would be programmed.
func needNamespace(c *cobra.Command, flag, name string) error {
	return program.NeedNamespace(c, flag, name, egress.DefaultNamespace)
}

// run runs the manager until the command is stopped. setup adds controllers to it. namespace is that of the
// DNSNameResolvers and of the leader election lease. Package fetch reads DNSNameResolvers, because they are most of the
// data.
func run(f *program.Flags, c *cobra.Command, namespace string, opts ctrl.Options,
	setup func(ctrl.Manager, *slog.Logger) error) error {
	log, err := f.Logger(c)
	if err != nil {
		return err
	}
	config, err := f.Config(userAgent)
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
	return f.Run(c, config, namespace, opts, log, func(mgr ctrl.Manager) error { return setup(mgr, log) })
}

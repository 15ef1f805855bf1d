package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/daemon"
	"github.com/nameplane/nameplane/internal/explain/source"
	"github.com/nameplane/nameplane/internal/store"
)

const serveLong = `Serve DNS and the REST API until SIGTERM or Ctrl-C.

Zones are stored in an embedded store in the data directory. When the API confirms a
change, the change is on disk and served. The first start writes an admin token to
DIR/admin.token, which only its owner can read. The other commands find it there.

DNS is served over UDP and TCP on every --dns address. The default is port 53 of all
addresses. The REST API listens on loopback. Any other address needs a TLS certificate
in the configuration. A server that root starts becomes the user "nameplane", or
"nobody", after it has bound its ports (see --user).

Edge applications (Mp1) and edge platforms (Mm5 and server management) have their own
addresses, --apps and --mep. They are closed by default. Their clients need tokens, or
one of the other credentials that the configuration allows.

The configuration file has more settings than there are flags. --print-config prints
it with all defaults. A flag overrides the setting of the file. On SIGHUP the server
reloads the file, the certificates and the keys.`

// serveFlags are the flags of serve. An empty flag does not override the configuration file.
type serveFlags struct {
	config, data, user string
	http, apps, mep    string
	dns                []string
	printConfig        bool
}

// newServeCommand has flags for what differs between two servers on one machine. The file has all other settings.
func newServeCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Serve DNS and the REST API", Long: serveLong, Args: cli.Args(0, 0),
		Example: `  nameplane serve --data /var/lib/nameplane
  nameplane serve --data ./data --dns 127.0.0.1:5300,[::1]:5300 --http 127.0.0.1:8053
  nameplane serve --config /etc/nameplane.yaml
  nameplane serve --print-config > nameplane.yaml`,
		RunE: func(c *cobra.Command, _ []string) error { return serve(c, f) },
	}
	fl, def := c.Flags(), config.Default()
	fl.StringVar(&f.config, "config", "", "configuration `FILE` (YAML)")
	fl.StringVar(&f.data, "data", "", fmt.Sprintf("data `DIR` (default %q)", def.Data))
	fl.StringSliceVar(&f.dns, "dns", nil,
		fmt.Sprintf("listen on these `ADDR`esses for DNS, separated by commas (default %q)", def.DNS.Listen[0]))
	fl.StringVar(&f.http, "http", "",
		fmt.Sprintf("listen on this `ADDR`ess for the REST API (default %q)", def.HTTP.Listen))
	fl.StringVar(&f.apps, "apps", "", "listen on this `ADDR`ess for edge applications, Mp1 (default: closed)")
	fl.StringVar(&f.mep, "mep", "",
		"listen on this `ADDR`ess for edge platforms, Mm5 and server management (default: closed)")
	fl.StringVar(&f.user, "user", "", "`USER` to become if root starts the server (default nameplane, otherwise nobody)")
	fl.BoolVar(&f.printConfig, "print-config", false, "print the configuration file with all defaults, and exit")
	return c
}

// load returns the configuration: the defaults, overridden by the file, overridden by the flags. The daemon calls it
// again for each reload, so that flags still override a changed file.
func (f serveFlags) load() (config.Config, error) {
	c := config.Default()
	if f.config != "" {
		var err error
		if c, err = config.Load(f.config); err != nil {
			return c, err
		}
	}
	for _, o := range []struct {
		value string
		field *string
	}{{f.data, &c.Data}, {f.http, &c.HTTP.Listen}, {f.apps, &c.Apps.Listen}, {f.mep, &c.MEP.Listen}, {f.user, &c.User}} {
		if o.value != "" {
			*o.field = o.value
		}
	}
	if len(f.dns) > 0 {
		c.DNS.Listen = f.dns
	}
	// Validate the result and not the file: a flag may be what makes the settings contradict each other.
	return c, c.Validate()
}

// serve runs the server until a signal ends its context. It binds no port before the whole configuration is valid.
func serve(c *cobra.Command, f serveFlags) error {
	if f.printConfig {
		fmt.Fprint(c.OutOrStdout(), config.Example())
		return nil
	}
	// Load the settings before the log: its level and its format are in the file.
	cfg, err := f.load()
	if err != nil {
		return cli.Fail("nameplane serve --print-config shows every setting", "%s", err)
	}
	hangup := make(chan os.Signal, 1) // first, because an unhandled SIGHUP would end the process
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log, level := daemon.NewLogger(cfg.Log)
	debug.SetGCPercent(gcPercent)
	d, err := daemon.Open(c.Context(), daemon.Options{Config: cfg, Load: f.load, Log: log, Level: level,
		Version: thisBuild(debug.ReadBuildInfo()).Version, Memory: budget.Limit()})
	if err != nil {
		return startFailure(err)
	}
	a := d.Endpoints()
	log.Info("serving", "dns", strings.Join(a.DNS, ","), "tls", strings.Join(a.TLS, ","),
		"https", strings.Join(a.HTTPS, ","), "quic", strings.Join(a.QUIC, ","), "http", a.HTTP,
		"apps", a.Apps, "mep", a.MEP, "data", cfg.Data, "zones", d.Zones())
	// Under systemd or in a container these lines would only fill the log.
	if cli.IsTerminal(os.Stdout) {
		printFirstSteps(c.OutOrStdout(), cfg, a)
	}
	// SIGTERM cancels the context. A server that an operator stops must exit with 0, or systemd reports a failure.
	if err := runAndReload(c.Context(), d, hangup); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped")
	return nil
}

// runAndReload runs d until ctx ends, and reloads the configuration on each hangup signal.
func runAndReload(ctx context.Context, d *daemon.Daemon, hangup <-chan os.Signal) error {
	g, ctx := errgroup.WithContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	g.Go(func() error {
		// d.Run returns nil after an orderly end, which does not cancel the context of the group.
		defer stop()
		return d.Run(ctx)
	})
	g.Go(func() error {
		for {
			select {
			case <-hangup:
				d.Reload()
			case <-ctx.Done():
				return nil
			}
		}
	})
	return g.Wait()
}

// gcPercent lets garbage grow to three times the live heap before a collection. The live heap is small, about 60 bytes
// per name, and has few pointers. Changes produce much garbage in relation to it.
const gcPercent = 300

// startFailure adds a hint to the error of a server that cannot start, if the operator can fix it.
func startFailure(err error) error {
	if errors.As(err, new(*store.DamagedError)) {
		return damaged(err)
	}
	if e, ok := errors.AsType[*source.NoLabError](err); ok {
		return &cli.Failure{Code: cli.ExitError, Text: err.Error(), Err: err,
			Hint: "start the lab: nameplane lab up --dir " + e.Dir}
	}
	if errors.Is(err, os.ErrPermission) {
		return &cli.Failure{Code: cli.ExitError, Text: err.Error(), Err: err,
			Hint: "ports below 1024 need root or CAP_NET_BIND_SERVICE: try --dns 127.0.0.1:5300; check the owner of the files"}
	}
	return err
}

// printFirstSteps prints commands for a user who has just started a server in a terminal.
func printFirstSteps(w io.Writer, cfg config.Config, a daemon.Endpoints) {
	host, port, err := net.SplitHostPort(a.DNS[0])
	if err != nil {
		return
	}
	// dig cannot send to 0.0.0.0 or :: on every system.
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	env := ""
	if a.HTTP != defaultServer() {
		env += "NAMEPLANE_SERVER=" + a.HTTP + " "
	}
	if cfg.Data != config.Default().Data {
		env += "NAMEPLANE_DATA=" + cfg.Data + " "
	}
	fmt.Fprintf(w, `
nameplane is serving. In another terminal, try:

  %[1]sbin/nameplane zone create example.org
  %[1]sbin/nameplane record set example.org www A 192.0.2.1
  dig @%[2]s -p %[3]s www.example.org

Stop with Ctrl-C.

`, env, host, port)
}

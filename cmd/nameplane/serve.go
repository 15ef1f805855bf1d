package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/store"
)

const serveLong = `Serves DNS and the REST API until it is told to stop (SIGTERM or Ctrl-C).

Zones live in an embedded store in the data directory; a change that was
answered with success is on the disk and in the answers. The first start writes
an admin token to DIR/admin.token, readable by its owner only; the other
commands find it there.

DNS is served over UDP and TCP on every --dns address, by default on port 53 of
all addresses. The REST API listens on loopback; another address is refused
unless the configuration names a TLS certificate. A server started by root
becomes the user "nameplane", or "nobody", once the ports are bound (see --user).

Edge applications (Mp1) and edge platforms (Mm5 and the management of the
server's records) have addresses of their own, --apps and --mep, which are closed
unless given. They need tokens as well; the configuration has other ways in.

What is not a flag is in the configuration file, which --print-config shows with
all its defaults. SIGHUP reads the file, certificates and keys again. Flags win
over the file.`

// serveFlags are the flags of serve; empty means not given.
type serveFlags struct {
	config, data, user string
	http, apps, mep    string
	dns                []string
	printConfig        bool
}

func newServeCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use: "serve", Short: "Serve DNS and the REST API", Long: serveLong, Args: between(0, 0),
		Example: `  nameplane serve --data /var/lib/nameplane
  nameplane serve --data ./data --dns 127.0.0.1:5300,[::1]:5300 --http 127.0.0.1:8053
  nameplane serve --config /etc/nameplane.yaml
  nameplane serve --print-config > nameplane.yaml`,
		RunE: func(c *cobra.Command, _ []string) error { return serve(c, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.config, "config", "", "configuration `FILE` (YAML)")
	fl.StringVar(&f.data, "data", "", "data `DIR` (default \"data\")")
	fl.StringSliceVar(&f.dns, "dns", nil, "`ADDR`esses for DNS, separated by commas (default \":53\")")
	fl.StringVar(&f.http, "http", "", "`ADDR`ess for the REST API (default \"127.0.0.1:8053\")")
	fl.StringVar(&f.apps, "apps", "", "`ADDR`ess for edge applications, Mp1 (default: closed)")
	fl.StringVar(&f.mep, "mep", "", "`ADDR`ess for edge platforms, Mm5 and server management (default: closed)")
	fl.StringVar(&f.user, "user", "", "`USER` to become when started by root (default nameplane, or else nobody)")
	fl.BoolVar(&f.printConfig, "print-config", false, "print the configuration file with all defaults, and stop")
	return c
}

// load is the configuration: the file, then the flags.
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
	return c, c.Validate()
}

func serve(c *cobra.Command, f serveFlags) error {
	if f.printConfig {
		fmt.Fprint(c.OutOrStdout(), config.Example())
		return nil
	}
	cfg, err := f.load()
	if err != nil {
		return fail("nameplane serve --print-config shows every setting", "%s", err)
	}
	log, level := newLogger(cfg.Log)
	debug.SetGCPercent(gcPercent)
	d, err := newDaemon(c.Context(), cfg, log, level)
	if err != nil {
		return explainStart(cfg, err)
	}
	d.load = f.load
	a := d.endpoints()
	log.Info("serving", "dns", strings.Join(a.DNS, ","), "http", a.HTTP, "apps", a.Apps, "mep", a.MEP, "data", cfg.Data,
		"zones", d.publisher.Snapshot().Len())
	if isTerminal(os.Stdout) {
		tryNext(c.OutOrStdout(), cfg, a)
	}
	if err := d.run(c.Context()); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	log.Info("stopped")
	return nil
}

// gcPercent lets garbage grow to three times what is in use before it is collected. What is in use is small, some 60 bytes
// a name, and has few pointers; changes make much garbage for their size.
const gcPercent = 300

// explainStart adds the way out to what kept the server from starting.
func explainStart(cfg config.Config, err error) error {
	if damaged, ok := errors.AsType[*store.DamagedError](err); ok {
		return &failure{code: exitError, text: damaged.Error(), err: err}
	}
	if errors.Is(err, os.ErrPermission) {
		return &failure{code: exitError, text: err.Error(), err: err,
			hint: "ports below 1024 need root or CAP_NET_BIND_SERVICE: try --dns 127.0.0.1:5300; files need to belong to you"}
	}
	return err
}

// tryNext tells a person at a terminal what to do with a server that has just started.
func tryNext(w io.Writer, cfg config.Config, a endpoints) {
	host, port, err := net.SplitHostPort(a.DNS[0])
	if err != nil {
		return
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	env := ""
	if a.HTTP != "http://127.0.0.1:8053" {
		env += "NAMEPLANE_SERVER=" + a.HTTP + " "
	}
	if cfg.Data != "data" {
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

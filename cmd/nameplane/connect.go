package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/config"
)

// defaultServer returns the URL of a server with the default configuration.
func defaultServer() string { return "http://" + config.Default().HTTP.Listen }

// connection holds the flags that say where the server is and which token to use. Empty fields fall back to the
// environment and then to defaults.
type connection struct {
	server    string
	tokenFile string
	data      string
	caFile    string
	project   string
}

// addFlags adds the flags of a connection to a command and its subcommands. They are not on the root command, because
// `serve` does not use them.
func (c *connection) addFlags(cmd *cobra.Command) {
	c.addServerFlags(cmd)
	f := cmd.PersistentFlags()
	f.StringVar(&c.tokenFile, "token-file", "",
		"`FILE` that holds the token (default: $NAMEPLANE_TOKEN, then admin.token in the data directory)")
	f.StringVar(&c.data, "data", "",
		"data `DIR` of the server, which holds admin.token (default $NAMEPLANE_DATA or ./data)")
}

// addServerFlags adds the flags for the address of the server. Commands that need no token use only these.
func (c *connection) addServerFlags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.server, "server", "", "`URL` of the server (default $NAMEPLANE_SERVER or "+defaultServer()+")")
	f.StringVar(&c.caFile, "ca-file", "", "PEM `FILE` with certificates to trust for https instead of those of the system")
}

// addProjectFlag adds --project to commands for resources that a project owns.
func (c *connection) addProjectFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.project, "project", "",
		"act for the project with this `ID` or name (administrators only)")
}

// dial returns a client without a token. It does not connect yet.
func (c *connection) dial() (*client, error) {
	base, err := c.baseURL()
	if err != nil {
		return nil, err
	}
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	return &client{
		base: base,
		http: &http.Client{
			Transport: transport,
			// A redirect could carry the token to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// open returns a client with a token. It sends no request unless it must look up the id of a project by its name.
func (c *connection) open(ctx context.Context) (*client, error) {
	cl, err := c.dial()
	if err != nil {
		return nil, err
	}
	if cl.token, cl.tokenFrom, err = c.token(); err != nil {
		return nil, err
	}
	if c.project != "" {
		cl.project, err = cl.projectID(ctx, c.project)
	}
	return cl, err
}

// with returns the RunE of a command that needs a client.
func (c *connection) with(run func(*cobra.Command, *client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cl, err := c.open(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd, cl, args)
	}
}

// baseURL returns the URL of the server. It refuses http to another host, because the token would be readable on the
// network.
func (c *connection) baseURL() (string, error) {
	// Messages name the source of the address, because a forgotten variable in the environment is a common cause.
	text, from := c.server, "--server"
	if text == "" {
		text, from = os.Getenv("NAMEPLANE_SERVER"), "NAMEPLANE_SERVER"
	}
	if text == "" {
		return defaultServer(), nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return "", &cli.Failure{Code: cli.ExitUsage,
			Text: fmt.Sprintf("%s is %q, which is not the URL of a server", from, text),
			Hint: "write it like " + defaultServer() + " or https://dns.example.org:8053"}
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return "", &cli.Failure{Code: cli.ExitUsage,
			Text: fmt.Sprintf("%s is %s: the token would be sent over the network without encryption", from, text),
			Hint: "use https://, and --ca-file if the certificate is from your own CA"}
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// isLoopback does not look up other names: one that resolves to loopback today may not do so tomorrow.
func isLoopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback()
	}
	return strings.EqualFold(host, "localhost") // RFC 6761 §6.3
}

// token returns the token and its source. Error messages name the source when the server rejects the token.
func (c *connection) token() (token, from string, err error) {
	if c.tokenFile == "" {
		// The flag is more specific than the environment, which a shell profile may set for another server.
		if t := strings.TrimSpace(os.Getenv("NAMEPLANE_TOKEN")); t != "" {
			return t, "NAMEPLANE_TOKEN", nil
		}
	}
	file := c.tokenFile
	if file == "" {
		file = filepath.Join(cmp.Or(c.data, os.Getenv("NAMEPLANE_DATA"), config.Default().Data), "admin.token")
	}
	b, err := os.ReadFile(file)
	t := strings.TrimSpace(string(b))
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.tokenFile == "":
		return "", "", cli.Fail("set --token-file, NAMEPLANE_TOKEN, or the data directory of the server with --data",
			"no token: NAMEPLANE_TOKEN is not set and there is no file %s", file)
	case err != nil:
		return "", "", cli.Fail("only the operator of the server can read its admin token; ask an administrator for a token",
			"cannot read the token: %s", err)
	// Refuse other files here. Otherwise --token-file /etc/passwd would send its content to the server.
	case t == "" || strings.ContainsAny(t, " \t\r\n") || len(t) > 4096:
		return "", "", cli.Fail("the file must hold one token (np_...) and nothing else", "%s does not hold a token", file)
	}
	return t, file, nil
}

// transport returns the HTTP transport for the server, with the certificates of --ca-file.
func (c *connection) transport() (*http.Transport, error) {
	// There is no limit for a whole request, because a backup can take minutes. Each phase before the body has its own.
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute, // an import may wait for other imports
		ForceAttemptHTTP2:     true,
	}
	if c.caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.caFile)
	if err != nil {
		return nil, cli.Fail("", "cannot read --ca-file: %s", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, cli.Fail("a PEM certificate begins with -----BEGIN CERTIFICATE-----",
			"--ca-file %s holds no certificate in PEM format", c.caFile)
	}
	// The file replaces the certificates of the system: with a private CA, no public CA can vouch for the server.
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

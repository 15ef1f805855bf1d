package peers

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Nameplane is nameplane at the given path. Its zones are imported with the command line, as by an operator.
func Nameplane(binary string) Program {
	return Program{
		Name:   "nameplane",
		Binary: binary,
		configure: func(s site) ([]string, error) {
			dns := "127.0.0.1:" + strconv.Itoa(s.port)
			args := []string{"serve", "--data", filepath.Join(s.dir, "data"), "--dns", dns, "--http", s.http}
			text := s.opts.Config
			if s.opts.Transfer {
				text += "transfer: {allow: [127.0.0.0/8]}\n"
			}
			conf, err := write(s.dir, "nameplane.yaml", text)
			return append(args, "--config", conf), err
		},
		load: importZones,
	}
}

// importZones loads the zones through the API, as an operator does. Other servers read them from files at their start.
func importZones(ctx context.Context, s *Server, zones []Zone) error {
	if err := s.WaitHTTP(ctx); err != nil {
		return err
	}
	for _, z := range zones {
		if _, err := s.Run(ctx, "zone", "import", z.File); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a command of the server's own program against it.
func (s *Server) Run(ctx context.Context, args ...string) ([]byte, error) {
	token, err := s.Token()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, s.program.Binary, args...)
	cmd.Env = append(os.Environ(), "NAMEPLANE_SERVER="+s.HTTP, "NAMEPLANE_TOKEN="+token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", s.Name, strings.Join(args, " "), err, out)
	}
	return out, nil
}

// Token returns the administrator's token, which the server writes on its first start.
func (s *Server) Token() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.Dir, "data", "admin.token"))
	return strings.TrimSpace(string(text)), err
}

// WaitHTTP blocks until the management API is ready.
func (s *Server) WaitHTTP(ctx context.Context) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.HTTP+"/readyz", nil)
		if err != nil {
			return err
		}
		if r, err := http.DefaultClient.Do(req); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.Done():
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("the management API is not ready: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

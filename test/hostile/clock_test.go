package hostile

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// TestClockOfAClient sends updates with knsupdate from clients with wrong clocks. The server accepts what is within
// five minutes of its own clock, and nothing older than the last update from that key (RFC 8945 §5.2.3).
func TestClockOfAClient(t *testing.T) {
	s := server.Start(t, server.Options{})
	zone := s.CreateZone("example.org.")
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	s.Must(http.MethodPost, "/v2/tsigkeys", map[string]string{"name": "update-key", "algorithm": "hmac-sha256",
		"secret": secret,
		"scope":  "ZONE", "resource_id": strings.TrimPrefix(zone, "/v2/zones/")}, nil)
	host, port, _ := strings.Cut(s.DNS[0], ":")
	for i, tt := range []struct {
		clock string // offset from our clock
		want  string // part of the output of knsupdate
	}{
		{"-10m", "BADTIME"},
		{"-4m", "BADTIME"}, // it could be a replay of an update from before the server started
		{"+0", ""},
		{"-2m", "BADTIME"},
		{"+4m", ""},
		{"+10m", "BADTIME"},
		{"+0", "BADTIME"}, // the clock was set back: refused until it has caught up
	} {
		name := fmt.Sprintf("n%d.example.org.", i)
		ctx, cancel := context.WithTimeout(t.Context(), server.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "faketime", "-f", tt.clock, "knsupdate", "-t", "10", "-y",
			"hmac-sha256:update-key:"+secret)
		cmd.Stdin = strings.NewReader(fmt.Sprintf(
			"server %s %s\nzone example.org\nupdate add %s 60 A 192.0.2.1\nsend\nquit\n", host, port, name))
		out, err := cmd.CombinedOutput()
		if took := err == nil; took != (tt.want == "") || !strings.Contains(string(out), tt.want) {
			t.Errorf("%d: an update at %s: %v %s; want %q", i, tt.clock, err, out, tt.want)
		}
		if a := s.Ask(name, dns.TypeA); (len(a.Answer) == 1) != (tt.want == "") {
			t.Errorf("%d: after an update at %s: %v", i, tt.clock, a)
		}
	}
}

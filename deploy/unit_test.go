package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/config"
)

// unit reads a systemd unit and returns the values of each section.key in order. A setting that is not in known is an
// error, to detect typing errors.
func unit(t *testing.T, text string) map[string][]string {
	t.Helper()
	out, section := map[string][]string{}, ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' && strings.HasSuffix(line, "]") {
			section = line[1 : len(line)-1]
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || value == "" || strings.TrimSpace(key) != key || strings.HasSuffix(line, "\\") ||
			!slices.Contains(known[section], key) {
			t.Errorf("line %d of [%s] is not a setting of systemd: %s", i+1, section, line)
		}
		out[section+"."+key] = append(out[section+"."+key], value)
	}
	return out
}

var known = map[string][]string{
	"Unit": {"Description", "Documentation", "After", "Wants", "StartLimitIntervalSec"},
	"Service": {"Type", "User", "Group", "ExecStart", "ExecReload", "Restart", "RestartSec", "TimeoutStopSec",
		"StateDirectory",
		"StateDirectoryMode", "ConfigurationDirectory", "LimitNOFILE", "MemoryMax", "TasksMax", "UMask",
		"AmbientCapabilities", "CapabilityBoundingSet",
		"NoNewPrivileges", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectClock",
		"ProtectControlGroups",
		"ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables", "ProtectProc",
		"RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality",
		"MemoryDenyWriteExecute", "RemoveIPC", "SystemCallArchitectures", "SystemCallFilter", "SystemCallErrorNumber"},
	"Install": {"WantedBy"},
}

func TestUnit(t *testing.T) {
	u := unit(t, string(read(t, "systemd/nameplane.service")))
	for key, want := range map[string]string{
		"Service.ExecStart":             "/usr/bin/nameplane serve --config /etc/nameplane/nameplane.yaml",
		"Service.ExecReload":            "/bin/kill -HUP $MAINPID",
		"Service.User":                  "nameplane",
		"Service.StateDirectory":        "nameplane",
		"Service.StateDirectoryMode":    "0700",
		"Service.AmbientCapabilities":   "CAP_NET_BIND_SERVICE",
		"Service.CapabilityBoundingSet": "CAP_NET_BIND_SERVICE",
		"Service.NoNewPrivileges":       "yes",
		"Service.ProtectSystem":         "strict",
		"Service.Restart":               "on-failure",
		"Install.WantedBy":              "multi-user.target",
	} {
		if got := u[key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if !strings.Contains(string(read(t, "systemd/nameplane.sysusers")), "u     nameplane ") {
		t.Error("the user of the unit is not created")
	}
}

// TestHostConfig checks that the unit allows what the configuration for a host needs: port 53, and a writable directory
// for the store.
func TestHostConfig(t *testing.T) {
	cfg, err := config.Parse("nameplane.yaml", read(t, "systemd/nameplane.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	u := unit(t, string(read(t, "systemd/nameplane.service")))
	if cfg.Data != "/var/lib/"+u["Service.StateDirectory"][0] || !slices.Equal(cfg.DNS.Listen, []string{":53"}) {
		t.Errorf("data in %s, DNS on %v", cfg.Data, cfg.DNS.Listen)
	}
	for _, p := range cfg.Forward.ClientNetworks() {
		if p.Bits() < 8 {
			t.Errorf("forwarding is for %s", p)
		}
	}
}

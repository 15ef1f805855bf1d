package powerdns

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// version is the version of PowerDNS whose API this package has. Clients parse it as three numbers and derive from it
// which calls they may use. test/powerdns compares the API with this version.
const version = "4.7.3"

type wireVersion struct {
	URL     string `json:"url"`
	Version int    `json:"version"`
}

func (c *call) listVersions() (reply, error) { return ok([]wireVersion{{"/api/v1", 1}}), nil }

type wireFeatures struct {
	Features  []string `json:"api_features"`
	ServerURL string   `json:"server_url"`
}

func (c *call) showVersion() (reply, error) {
	// The list of features is empty in PowerDNS 4.7 too. Clients that need a feature use the plain calls
	// without it.
	return ok([]wireFeatures{{[]string{}, "/api/v1/servers{/server}"}}), nil
}

type wireServer struct {
	AutoprimariesURL string `json:"autoprimaries_url"`
	ConfigURL        string `json:"config_url"`
	DaemonType       string `json:"daemon_type"`
	ID               string `json:"id"`
	Type             string `json:"type"`
	URL              string `json:"url"`
	Version          string `json:"version"`
	ZonesURL         string `json:"zones_url"`
}

// The id of the only server is localhost in PowerDNS, and clients have it in their defaults.
var thisServer = wireServer{AutoprimariesURL: server + "/autoprimaries{/autoprimary}",
	ConfigURL: server + "/config{/config_setting}", DaemonType: "authoritative", ID: "localhost", Type: "Server",
	URL: server, Version: version, ZonesURL: zones + "{/zone}"}

func (c *call) listServers() (reply, error) { return ok([]wireServer{thisServer}), nil }

func (c *call) showServer() (reply, error) { return ok(thisServer), nil }

// item is a setting or a counter.
type item struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

// listConfig returns the settings that have a counterpart in PowerDNS.
func (c *call) listConfig() (reply, error) {
	s := c.api.Zones.Settings
	return ok([]item{
		{"api", "ConfigSetting", "yes"},
		{"default-ttl", "ConfigSetting", strconv.FormatUint(uint64(s.DefaultTTL), 10)},
		{"primary", "ConfigSetting", "yes"},
		// Each zone has its own kind here, so the server is always both.
		{"secondary", "ConfigSetting", "yes"},
	}), nil
}

func (c *call) listStatistics() (reply, error) {
	all := c.api.Statistics()
	names := slices.Sorted(maps.Keys(all))
	// An unknown name is an error and not an empty list: a monitor must not read a mistyped name as zero.
	if name := c.r.URL.Query().Get("statistic"); name != "" {
		if _, ok := all[name]; !ok {
			return reply{}, refuse("Unknown statistic name")
		}
		names = []string{name}
	}
	out := make([]item, 0, len(names))
	for _, name := range names {
		out = append(out, item{name, "StatisticItem", strconv.FormatUint(all[name], 10)})
	}
	return ok(out), nil
}

type flushed struct {
	Count  int    `json:"count"`
	Result string `json:"result"`
}

// flushCache does nothing: zones are answered without a cache.
func (c *call) flushCache() (reply, error) {
	// PowerDNS refuses a wrong name here. A client that tests its own input must see that.
	if _, err := parseCanonical(c.r.URL.Query().Get("domain")); err != nil {
		return reply{}, err
	}
	return ok(flushed{0, "Flushed cache."}), nil
}

// withoutDot returns a name without its final dot.
func withoutDot(n dnsname.Name) string {
	if n.IsRoot() {
		return "."
	}
	return strings.TrimSuffix(n.String(), ".")
}

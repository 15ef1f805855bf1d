package designate

import (
	"net/http"

	"github.com/nameplane/nameplane/internal/httpapi"
)

// versions are the versions of Designate's API that this server is compatible with, and the dates of their release.
var versions = []struct{ id, updated string }{
	{"v2", "2022-06-29T00:00:00Z"}, {"v2.0", "2022-06-29T00:00:00Z"}, {"v2.1", "2023-01-25T00:00:00Z"},
	{"v2.2", "2024-07-31T00:00:00Z"}, {"v2.3", "2025-04-01T00:00:00Z"}, {"v2.4", "2026-01-01T00:00:00Z"},
}

type version struct {
	ID      string        `json:"id"`
	Status  string        `json:"status"`
	Links   []versionLink `json:"links"`
	Updated string        `json:"updated"`
}

type versionLink struct {
	Href string `json:"href"`
	Rel  string `json:"rel"`
}

var helpLink = versionLink{"https://docs.openstack.org/api-ref/dns", "help"}

func (c *call) version(i int) version {
	status := "SUPPORTED"
	if i == len(versions)-1 {
		status = "CURRENT"
	}
	return version{versions[i].id, status, []versionLink{{c.url("/v2"), "self"}, helpLink}, versions[i].updated}
}

func (c *call) showVersions() (reply, error) {
	out := []version{}
	for i := range versions {
		out = append(out, c.version(i))
	}
	return ok(map[string]any{"versions": out}), nil
}

// showServices returns the versions of the identity and the DNS service in the form of Keystone, with 300, so that the
// URL of the server can be the URL of the identity service. The entry of the DNS API has no link with the relation
// self: keystoneauth ignores it then. See httpapi.DNSPath.
func (c *call) showServices() (reply, error) {
	dns := c.version(len(versions) - 1)
	dns.ID, dns.Links = "v2", []versionLink{{c.url(httpapi.DNSPath + "/"), "service"}, helpLink}
	values := []any{dns}
	if c.api.Identity != nil {
		values = []any{c.api.Identity(httpapi.BaseURL(c.r, c.settings.BaseURL)), dns}
	}
	body := map[string]any{"versions": map[string]any{"values": values}}
	return reply{status: http.StatusMultipleChoices, body: body}, nil
}

func (c *call) showVersion() (reply, error) {
	return ok(map[string]any{"version": c.version(len(versions) - 1)}), nil
}

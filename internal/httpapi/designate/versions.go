package designate

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

func (c *call) version(i int) version {
	status := "SUPPORTED"
	if i == len(versions)-1 {
		status = "CURRENT"
	}
	return version{versions[i].id, status, []versionLink{{c.url("/v2"), "self"},
		{"https://docs.openstack.org/api-ref/dns", "help"}}, versions[i].updated}
}

func (c *call) showVersions() (reply, error) {
	out := []version{}
	for i := range versions {
		out = append(out, c.version(i))
	}
	return ok(map[string]any{"versions": out}), nil
}

func (c *call) showVersion() (reply, error) {
	return ok(map[string]any{"version": c.version(len(versions) - 1)}), nil
}

package designate

import (
	"os"
	"time"

	"github.com/google/uuid"
)

// The versions of Designate's API that this one is compatible with, and when each was new.
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

// Pool of the API. There is one, made of the settings.
type Pool struct {
	Meta
	ProjectID   *string           `json:"project_id"`
	Name        string            `json:"name"`
	Description *string           `json:"description"`
	Attributes  map[string]string `json:"attributes"`
	NSRecords   []NSRecord        `json:"ns_records"`
}

// NSRecord is a name server of a pool.
type NSRecord struct {
	Hostname string `json:"hostname"`
	Priority int    `json:"priority"`
}

func (c *call) pool() Pool {
	p := Pool{Meta: Meta{ID: c.settings.PoolID.String()}, Name: c.settings.PoolName, Attributes: map[string]string{}}
	p.Links = &Links{Self: c.url("/v2/pools/" + p.ID)}
	for _, n := range c.settings.Nameservers {
		p.NSRecords = append(p.NSRecords, NSRecord{n.Hostname.String(), n.Priority})
	}
	return p
}

var poolListing = listing[Pool]{
	name:    "pools",
	id:      func(p Pool) string { return p.ID },
	keys:    []string{"created_at", "id", "updated_at", "name"},
	filters: map[string]func(Pool) string{"name": func(p Pool) string { return p.Name }},
}

func (c *call) listPools() (reply, error) {
	return listOne(c, poolListing, c.pool())
}

// listOne is a list of a kind of which there is one.
func listOne[T any](c *call, l listing[T], item T) (reply, error) {
	q, err := l.query(c)
	if err != nil {
		return reply{}, err
	}
	p, err := l.cut([]T{item}, q)
	return l.reply(c, q, p, func(item T) any { return item }), err
}

func (c *call) showPool() (reply, error) {
	id, err := c.id("id")
	if err == nil && id != c.settings.PoolID {
		err = notFound("pool", "Pool")
	}
	return ok(c.pool()), err
}

// ServiceStatus of the API. Designate is many processes, this is one.
type ServiceStatus struct {
	Meta
	Hostname      string            `json:"hostname"`
	ServiceName   string            `json:"service_name"`
	Status        string            `json:"status"`
	Stats         map[string]string `json:"stats"`
	Capabilities  map[string]string `json:"capabilities"`
	HeartbeatedAt Time              `json:"heartbeated_at"`
}

var serviceListing = listing[ServiceStatus]{
	name: "service_statuses",
	id:   func(s ServiceStatus) string { return s.ID },
	keys: []string{"created_at", "id", "updated_at", "hostname", "service_name", "status"},
	filters: map[string]func(ServiceStatus) string{
		"hostname":     func(s ServiceStatus) string { return s.Hostname },
		"service_name": func(s ServiceStatus) string { return s.ServiceName },
		"status":       func(s ServiceStatus) string { return s.Status },
	},
}

func (c *call) service() ServiceStatus {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	s := ServiceStatus{Hostname: host, ServiceName: "nameplane", Status: "UP", Stats: map[string]string{},
		Capabilities: map[string]string{}, HeartbeatedAt: Time(time.Now())}
	s.ID = uuid.NewSHA1(c.settings.PoolID, []byte(host)).String()
	s.Links = &Links{Self: c.url("/v2/service_statuses/" + s.ID)}
	return s
}

func (c *call) listServices() (reply, error) {
	return listOne(c, serviceListing, c.service())
}

func (c *call) showService() (reply, error) {
	s := c.service()
	id, err := c.id("id")
	if err == nil && id.String() != s.ID {
		err = notFound("service_status", "ServiceStatus")
	}
	return ok(s), err
}

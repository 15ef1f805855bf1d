package designate

import (
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/zone"
)

// serviceStatus is the state of a service. Designate has one for each of its processes; this server has one process,
// which is UP whenever it can answer.
type serviceStatus struct {
	resourceMeta
	Hostname      string            `json:"hostname"`
	ServiceName   string            `json:"service_name"`
	Status        string            `json:"status"`
	Stats         map[string]string `json:"stats"`
	Capabilities  map[string]string `json:"capabilities"`
	HeartbeatedAt timestamp         `json:"heartbeated_at"`
}

var serviceListing = newListing("service_statuses", map[string]func(serviceStatus) string{
	"hostname":     func(s serviceStatus) string { return s.Hostname },
	"service_name": func(s serviceStatus) string { return s.ServiceName },
	"status":       func(s serviceStatus) string { return s.Status },
}, "hostname", "service_name", "status")

func (c *call) service() serviceStatus {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	s := serviceStatus{Hostname: host, ServiceName: "nameplane", Status: "UP", Stats: map[string]string{},
		Capabilities: map[string]string{}, HeartbeatedAt: timestamp(time.Now())}
	s.ID = uuid.NewSHA1(zone.DefaultPool, []byte(host)).String() // the same after a restart, without being stored
	s.Links = &links{Self: c.url("/v2/service_statuses/" + s.ID)}
	return s
}

func (c *call) listServices() (reply, error) {
	return listFixed(c, serviceListing, c.service())
}

func (c *call) showService() (reply, error) {
	s := c.service()
	id, err := c.id("id")
	if err == nil && id.String() != s.ID {
		err = notFound("service_status", "ServiceStatus")
	}
	return ok(s), err
}

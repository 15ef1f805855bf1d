package config

import (
	"fmt"
	"time"

	"github.com/nameplane/nameplane/internal/resolve"
)

// Follow configures how targets of ALIAS records outside the zones of this server are resolved.
type Follow struct {
	Resolvers    []string      `yaml:"resolvers"`
	Interval     time.Duration `yaml:"interval"`
	TTLFloor     time.Duration `yaml:"ttl_floor"`
	AllowPrivate bool          `yaml:"allow_private"`
	AllowOwn     bool          `yaml:"allow_own"`
	StaleLimit   Timeout       `yaml:"stale_limit"`
	OwnZones     string        `yaml:"own_zones"`
}

// These are the values of Follow.OwnZones. They select the projects whose zones on this server may be followed.
const (
	OwnZonesProject = "project"
	OwnZonesAll     = "all"
)

// Servers returns the servers of Resolvers, which Parse has checked.
func (f Follow) Servers() []resolve.Server { return parsed(f.Resolvers, resolve.ParseServer) }

func (v *checker) follow(f Follow) {
	for i, s := range f.Resolvers {
		v.server(fmt.Sprintf("follow.resolvers[%d]", i), s)
	}
	v.within("follow.interval", f.Interval, 10*time.Second, 7*24*time.Hour)
	v.within("follow.ttl_floor", f.TTLFloor, time.Second, time.Hour)
	limit := time.Duration(f.StaleLimit)
	v.need(f.StaleLimit == Never || time.Minute <= limit && limit <= 365*24*time.Hour, "follow.stale_limit",
		"must be never, or a time from 1m to 8760h, such as 72h")
	v.oneOf("follow.own_zones", f.OwnZones, OwnZonesProject, OwnZonesAll)
}

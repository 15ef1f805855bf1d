package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/config"
)

func TestFollow(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte("follow: {resolvers: ['127.0.0.1:5353', 'tls://192.0.2.1#dns.example.org'], "+
		"interval: 10m, allow_private: true, stale_limit: 72h, own_zones: all}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if f := c.Follow; len(f.Servers()) != 2 || f.Interval != 10*time.Minute || f.TTLFloor != 30*time.Second ||
		!f.AllowPrivate || f.AllowOwn || f.StaleLimit != config.Timeout(72*time.Hour) ||
		f.OwnZones != config.OwnZonesAll {
		t.Errorf("follow = %+v", f)
	}
	if f := config.Default().Follow; f.Interval != 1800*time.Second || len(f.Servers()) != 0 || f.AllowPrivate ||
		f.StaleLimit != config.Never || f.OwnZones != config.OwnZonesProject {
		t.Errorf("the default is %+v", f)
	}
	for line, want := range map[string]string{
		"resolvers: [dns.example.org]": "c.yaml:2:15: follow.resolvers[0]: must be an address",
		"interval: 1s":                 "follow.interval: must be a time from 10s",
		"ttl_floor: 0s":                "follow.ttl_floor",
		"stale_limit: 1s":              "follow.stale_limit: must be never, or a time from 1m",
		"stale_limit: 0s":              "c.yaml:2: 0s must be a time with its unit, such as 72h, or the word never",
		"stale_limit: [1h]":            "c.yaml:2: must be a time with its unit",
		"own_zones: mine":              "follow.own_zones: must be one of project, all",
		"max_addresses: 9":             "follow.max_addresses: is no longer a setting: it is always 20",
	} {
		if _, err := config.Parse("c.yaml", []byte("follow:\n  "+line+"\n")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

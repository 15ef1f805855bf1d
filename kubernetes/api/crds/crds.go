// Package crds contains the generated custom resource definitions, so that a program can print or apply them. Start
// with YAML for those of egress firewalls, and Service for those of nameplane-service.
package crds

import (
	"bytes"
	_ "embed" // for the definitions
	"slices"
)

var (
	//go:embed dns.openshift.io_egressfirewalldnsnames.yaml
	dnsNames []byte
	//go:embed k8s.ovn.org_egressfirewalls.yaml
	firewalls []byte
	//go:embed network.openshift.io_dnsnameresolvers.yaml
	resolvers []byte
	//go:embed nameplane.io_hostnamereports.yaml
	hostnameReports []byte
	//go:embed networking.datumapis.com_domains.yaml
	domains []byte
)

// Service returns the definition of HostnameReport.
func Service() []byte { return slices.Clone(hostnameReports) }

// Domains returns the definition of Domain.
func Domains() []byte { return slices.Clone(domains) }

// YAML returns the definitions of egress firewalls in one stream.
func YAML() []byte { return slices.Concat(dnsNames, firewalls, resolvers) }

// wildcard is the beginning of the patterns for names in rules and specs. The pattern for names in a status differs: it
// already accepts "**.".
const (
	wildcard = `pattern: ^(\*\.)?(`
	deep     = `pattern: ^(\*\*?\.)?(`
)

// DeepYAML is YAML with patterns that also accept "**.", which no stock definition does.
func DeepYAML() []byte { return bytes.ReplaceAll(YAML(), []byte(wildcard), []byte(deep)) }

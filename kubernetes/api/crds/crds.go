// Package crds carries the generated custom resource definitions, so that a program can print or apply them.
package crds

import (
	"bytes"
	_ "embed" // the definitions
	"slices"
)

var (
	//go:embed dns.openshift.io_egressfirewalldnsnames.yaml
	dnsNames []byte
	//go:embed k8s.ovn.org_egressfirewalls.yaml
	firewalls []byte
	//go:embed network.openshift.io_dnsnameresolvers.yaml
	resolvers []byte
)

// YAML is all definitions in one stream.
func YAML() []byte { return slices.Concat(dnsNames, firewalls, resolvers) }

// The patterns of names in rules and in specs begin so. That of names in a status begins otherwise: it has "**." already.
const (
	wildcard = `pattern: ^(\*\.)?(`
	deep     = `pattern: ^(\*\*?\.)?(`
)

// DeepYAML is YAML with patterns that also take "**.", which no stock definition does.
func DeepYAML() []byte { return bytes.ReplaceAll(YAML(), []byte(wildcard), []byte(deep)) }

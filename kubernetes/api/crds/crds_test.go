package crds_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/nameplane/nameplane/kubernetes/api/crds"
)

const (
	resolvers = "network.openshift.io_dnsnameresolvers.yaml"
	firewalls = "k8s.ovn.org_egressfirewalls.yaml"
	dnsNames  = "dns.openshift.io_egressfirewalldnsnames.yaml"
)

// Paths at which the tables below begin.
const (
	names   = "spec.names."
	version = "spec.versions.0."
	schema  = version + "schema.openAPIV3Schema."
	spec    = schema + "properties.spec."
	status  = schema + "properties.status.properties."
	rule    = spec + "properties.egress.items."
	port    = rule + "properties.ports.items."
	to      = rule + "properties.to."
	entry   = status + "resolvedNames.items."
	address = entry + "properties.resolvedAddresses.items."
	info    = entry + "properties.info.items."
)

type list = []any

// TestValidation checks the parts of the definitions that other programs rely on: patterns, the CEL rule, list types,
// and columns.
func TestValidation(t *testing.T) {
	tests := []struct {
		file, path string
		want       any
	}{
		{resolvers, "metadata.name", "dnsnameresolvers.network.openshift.io"},
		{resolvers, "metadata.annotations.api-approved.openshift.io", "https://github.com/openshift/api/pull/1524"},
		{resolvers, "spec.group", "network.openshift.io"},
		{resolvers, "spec.scope", "Namespaced"},
		{resolvers, names + "kind", "DNSNameResolver"},
		{resolvers, names + "listKind", "DNSNameResolverList"},
		{resolvers, names + "plural", "dnsnameresolvers"},
		{resolvers, names + "singular", "dnsnameresolver"},
		{resolvers, version + "name", "v1alpha1"},
		{resolvers, version + "subresources", map[string]any{"status": map[string]any{}}},
		{resolvers, schema + "required", list{"spec"}},
		{resolvers, spec + "required", list{"name"}},
		{resolvers, spec + "properties.name.pattern", `^(\*\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){2,}$`},
		{resolvers, spec + "properties.name.maxLength", int64(254)},
		{resolvers, spec + "properties.name.x-kubernetes-validations",
			list{map[string]any{"rule": "self == oldSelf", "message": "spec.name is immutable"}}},
		{resolvers, status + "resolvedNames.x-kubernetes-list-type", "map"},
		{resolvers, status + "resolvedNames.x-kubernetes-list-map-keys", list{"dnsName"}},
		{resolvers, entry + "required", list{"dnsName", "resolvedAddresses"}},
		{resolvers, entry + "properties.dnsName.maxLength", int64(254)},
		{resolvers, entry + "properties.resolutionFailures.format", "int32"},
		{resolvers, entry + "properties.conditions.x-kubernetes-list-type", "map"},
		{resolvers, entry + "properties.conditions.x-kubernetes-list-map-keys", list{"type"}},
		{resolvers, entry + "properties.resolvedAddresses.x-kubernetes-list-type", "map"},
		{resolvers, entry + "properties.resolvedAddresses.x-kubernetes-list-map-keys", list{"ip"}},
		{resolvers, address + "required", list{"ip", "lastLookupTime", "ttlSeconds"}},
		{resolvers, address + "properties.ip.anyOf",
			list{map[string]any{"format": "ipv4"}, map[string]any{"format": "ipv6"}}},
		{resolvers, address + "properties.ip.type", "string"},
		{resolvers, address + "properties.ttlSeconds.format", "int32"},
		{resolvers, address + "properties.lastLookupTime.format", "date-time"},

		{firewalls, "metadata.name", "egressfirewalls.k8s.ovn.org"},
		{firewalls, "spec.group", "k8s.ovn.org"},
		{firewalls, "spec.scope", "Namespaced"},
		{firewalls, names + "kind", "EgressFirewall"},
		{firewalls, names + "plural", "egressfirewalls"},
		{firewalls, version + "name", "v1"},
		{firewalls, version + "subresources", map[string]any{"status": map[string]any{}}},
		{firewalls, version + "additionalPrinterColumns",
			list{map[string]any{"name": "EgressFirewall Status", "type": "string", "jsonPath": ".status.status"}}},
		{firewalls, schema + "required", list{"spec"}},
		{firewalls, schema + "properties.metadata.properties.name.pattern", "^default$"},
		{firewalls, spec + "required", list{"egress"}},
		{firewalls, spec + "properties.egress.x-kubernetes-list-type", "atomic"},
		{firewalls, rule + "required", list{"to", "type"}},
		{firewalls, rule + "properties.type.pattern", "^Allow|Deny$"},
		{firewalls, rule + "properties.ports.x-kubernetes-list-type", "atomic"},
		{firewalls, port + "required", list{"port", "protocol"}},
		{firewalls, port + "properties.protocol.pattern", "^TCP|UDP|SCTP$"},
		{firewalls, port + "properties.port.minimum", int64(1)},
		{firewalls, port + "properties.port.maximum", int64(65535)},
		{firewalls, to + "minProperties", int64(1)},
		{firewalls, to + "maxProperties", int64(1)},
		{firewalls, to + "properties.cidrSelector.type", "string"},
		{firewalls, to + "properties.dnsName.pattern", `^(\*\.)?([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$`},
		{firewalls, to + "properties.nodeSelector.properties.matchLabels.type", "object"},
		{firewalls, status + "messages.x-kubernetes-list-type", "set"},
		{firewalls, status + "status.type", "string"},

		{dnsNames, "metadata.name", "egressfirewalldnsnames.dns.openshift.io"},
		{dnsNames, "spec.group", "dns.openshift.io"},
		{dnsNames, "spec.scope", "Namespaced"},
		{dnsNames, names + "kind", "EgressFirewallDNSName"},
		{dnsNames, version + "name", "v1alpha1"},
		{dnsNames, version + "subresources", map[string]any{"status": map[string]any{}}},
		{dnsNames, spec + "required", list{"name"}},
		{dnsNames, entry + "required", list{"dnsName", "info"}},
		{dnsNames, info + "required", list{"ip", "lastLookupTime", "ttl"}},
		{dnsNames, info + "properties.ttl.format", "int64"},
		{dnsNames, info + "properties.lastLookupTime.format", "date-time"},
		{dnsNames, entry + "properties.conditions.x-kubernetes-list-map-keys", list{"type"}},
		{dnsNames, status + "programmed.x-kubernetes-list-map-keys", list{"zone"}},
	}
	for _, tt := range tests {
		t.Run(tt.file+" "+tt.path, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, at(t, tt.file, tt.path)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestStatusNames has names that the stock definition rejects, and with them the whole write, and some that ours
// rejects too.
func TestStatusNames(t *testing.T) {
	ours := regexp.MustCompile(at(t, resolvers, entry+"properties.dnsName.pattern").(string))
	stock := regexp.MustCompile(at(t, resolvers, spec+"properties.name.pattern").(string))
	tests := []struct {
		name        string
		stock, ours bool
	}{
		{"www.example.com.", true, true},
		{"*.example.com.", true, true},
		{"example.com.", true, true},
		{strings.Repeat("a", 63) + ".example.com.", true, true},
		{"a_b.example.com.", false, true},
		{"_sip._tcp.example.com.", false, true},
		{"r3---sn-.example.com.", false, true},
		{"**.example.com.", false, true},
		{strings.Repeat("a", 64) + ".example.com.", false, false},
		{"WWW.example.com.", false, false},
		{"www.example.com", false, false},
		{"com.", false, false},
		{"a..example.com.", false, false},
		{"a.*.com.", false, false},
	}
	for _, tt := range tests {
		if got := stock.MatchString(tt.name); got != tt.stock {
			t.Errorf("spec.name %q passes: %v, want %v", tt.name, got, tt.stock)
		}
		if got := ours.MatchString(tt.name); got != tt.ours {
			t.Errorf("dnsName %q passes: %v, want %v", tt.name, got, tt.ours)
		}
	}
}

// TestDeep checks that only the two patterns differ.
func TestDeep(t *testing.T) {
	plain, deep := strings.Split(string(crds.YAML()), "\n"), strings.Split(string(crds.DeepYAML()), "\n")
	if len(plain) != len(deep) {
		t.Fatalf("%d and %d lines", len(plain), len(deep))
	}
	var got []string
	for i := range plain {
		if plain[i] != deep[i] {
			got = append(got, strings.TrimSpace(deep[i]))
		}
	}
	want := []string{
		`pattern: ^(\*\*?\.)?([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$`,
		`pattern: ^(\*\*?\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){2,}$`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestYAML(t *testing.T) {
	if n := bytes.Count(crds.YAML(),
		[]byte("---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n")); n != 3 {
		t.Errorf("%d definitions, want 3", n)
	}
}

// at finds a value in a file. It tries the longest key first, so that keys may contain dots.
func at(t *testing.T, file, path string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	v, err := find(doc, path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

func find(v any, path string) (any, error) {
	if path == "" {
		return v, nil
	}
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '.') {
		child, ok := step(v, path[:end])
		if ok {
			return find(child, strings.TrimPrefix(path[end:], "."))
		}
	}
	return nil, fmt.Errorf("nothing at %s", path)
}

func step(v any, key string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[key]
		return child, ok
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

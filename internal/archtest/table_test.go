// Package archtest checks the structure of the source tree: imports between packages, sizes, and words.
//
// Start with layers in table_test.go: the table of packages and of the imports that they may have.
package archtest

import "slices"

// module is the path of the root module. The path of every other module of the tree begins with it. An import path
// without this prefix is therefore a folder of the tree.
const module = "github.com/nameplane/nameplane/"

// layer is a set of packages that may import the layers before it.
type layer struct {
	name, idea string
	// packages maps the folder of each package to the packages of its own layer that it may import.
	packages map[string][]string
}

// layers are the layers, lowest first. A package imports packages of lower layers, and those of its own layer that
// are listed with it here. TestLayers also fails on a listed import that no file uses and on a package that does not
// exist. ARCHITECTURE.md shows this table: after a change, run `go test ./internal/archtest -update`.
var layers = []layer{
	{"nouns", "values without I/O, goroutines or logging", map[string][]string{
		"internal/dnsname":                 {},
		"internal/rr":                      {"internal/dnsname"},
		"internal/specialaddr":             {},
		"internal/strictjson":              {"internal/zone"},
		"internal/wire":                    {"internal/dnsname", "internal/rr"},
		"internal/zone":                    {"internal/dnsname", "internal/rr", "internal/wire"},
		"kubernetes/api/crds":              {},
		"kubernetes/api/datum/v1alpha":     {},
		"kubernetes/api/dns/v1alpha1":      {},
		"kubernetes/api/hostname/v1alpha1": {},
		"kubernetes/api/v1":                {},
		"kubernetes/api/v1alpha1":          {},
	}},
	{"mechanisms", "one job each, independent of the features for users", map[string][]string{
		"internal/budget":          {},
		"internal/certs":           {},
		"internal/forward":         {"internal/resolve"},
		"internal/lookup":          {},
		"internal/registry":        {},
		"internal/resolve":         {},
		"internal/resolve/iterate": {"internal/resolve"},
		"internal/resolve/secure":  {"internal/resolve/iterate"},
		"internal/store":           {},
		"internal/store/boltstore": {"internal/store"},
		"internal/zonefile":        {},
	}},
	{"verbs", "features for users", map[string][]string{
		"internal/access":  {"internal/publish"},
		"internal/alias":   {"internal/follow", "internal/publish"},
		"internal/explain": {"internal/explain/safeat", "internal/explain/service", "internal/explain/words"},
		"internal/explain/check": {"internal/explain", "internal/explain/mailtext", "internal/explain/safeat",
			"internal/explain/service", "internal/explain/words"},
		"internal/explain/gather": {"internal/explain", "internal/explain/mailtext", "internal/explain/probe",
			"internal/explain/resolvers", "internal/explain/safeat", "internal/explain/service"},
		"internal/explain/mailtext": {},
		"internal/explain/probe":    {},
		"internal/explain/report": {"internal/explain", "internal/explain/safeat", "internal/explain/service",
			"internal/explain/words"},
		"internal/explain/resolvers": {},
		"internal/explain/safeat":    {"internal/explain/words"},
		"internal/explain/scans": {"internal/explain", "internal/explain/check", "internal/explain/report",
			"internal/publish"},
		"internal/explain/service":          {},
		"internal/explain/words":            {},
		"internal/follow":                   {},
		"internal/mec":                      {"internal/publish"},
		"internal/publish":                  {},
		"internal/transfer":                 {"internal/publish"},
		"internal/update":                   {"internal/publish"},
		"kubernetes/internal/enforce":       {},
		"kubernetes/internal/enforce/learn": {},
		"kubernetes/internal/enforce/match": {"kubernetes/internal/enforce"},
	}},
	{"edges", "sockets, APIs, files and clusters", map[string][]string{
		"internal/dnspeer":            {"internal/dnsserver"},
		"internal/dnsserver":          {},
		"internal/httpapi":            {},
		"internal/httpapi/admin":      {"internal/httpapi"},
		"internal/httpapi/designate":  {"internal/httpapi"},
		"internal/httpapi/explainapi": {"internal/httpapi"},
		"internal/httpapi/externaldns": {"internal/httpapi",
			"internal/httpapi/designate"},
		"internal/httpapi/identity": {"internal/httpapi"},
		"internal/httpapi/mecapi":   {"internal/httpapi", "internal/httpapi/mechttp"},
		"internal/httpapi/mechttp":  {"internal/httpapi"},
		"internal/httpapi/openapi":  {},
		"internal/httpapi/powerdns": {"internal/httpapi", "internal/httpapi/designate",
			"internal/httpapi/mechttp"},
		"internal/httpapi/servermgmt": {"internal/httpapi", "internal/httpapi/mechttp"},
		"internal/lab":                {"internal/simnet"},
		"internal/simnet":             {},
		"kubernetes/internal/controller/agent": {"kubernetes/internal/controller/egress",
			"kubernetes/internal/enforce/hold", "kubernetes/internal/enforce/node", "kubernetes/internal/enforce/ovn"},
		"kubernetes/internal/controller/domain":   {},
		"kubernetes/internal/controller/egress":   {},
		"kubernetes/internal/controller/hostname": {},
		"kubernetes/internal/controller/manager": {"kubernetes/internal/controller/egress",
			"kubernetes/internal/enforce/node"},
		"kubernetes/internal/controller/resolver": {"kubernetes/internal/enforce/fetch"},
		"kubernetes/internal/enforce/fetch":       {},
		"kubernetes/internal/enforce/hold":        {},
		"kubernetes/internal/enforce/node":        {},
		"kubernetes/internal/enforce/ovn":         {},
		"kubernetes/plugin/dnsnameresolver": {"kubernetes/internal/enforce/fetch",
			"kubernetes/internal/enforce/hold", "kubernetes/internal/enforce/node"},
	}},
	{"wiring", "parts that programs are built from", map[string][]string{
		"internal/cli":                {},
		"internal/config":             {},
		"internal/daemon":             {"internal/config", "internal/explain/source"},
		"internal/explain/source":     {},
		"kubernetes/internal/program": {"internal/cli"},
	}},
	{"programs", "commands that users start", map[string][]string{
		"cmd/nameplane":                    {},
		"kubernetes/cmd/nameplane-coredns": {},
		"kubernetes/cmd/nameplane-egress":  {},
		"kubernetes/cmd/nameplane-service": {},
	}},
}

// tests are packages that no program links. They may import anything.
var tests = []string{
	"bench",
	"bench/explain",
	"deploy",
	"internal/access/accesstest",
	"internal/archtest",
	"internal/specialaddr/specialaddrtest",
	"internal/store/storetest",
	"kubernetes/bench/egress",
	"kubernetes/test/authority",
	"kubernetes/test/cluster",
	"kubernetes/test/deploy",
	"kubernetes/test/egress",
	"kubernetes/test/egress/rig",
	"kubernetes/test/egress/system",
	"kubernetes/test/gateway",
	"kubernetes/test/must",
	"kubernetes/test/plugincfg",
	"kubernetes/test/service",
	"test/alias",
	"test/clients",
	"test/clients/boulder",
	"test/clients/certmanager",
	"test/clients/externaldns",
	"test/clients/externaldns014",
	"test/clients/openapi",
	"test/compare",
	"test/crash",
	"test/docs",
	"test/encrypted",
	"test/explain",
	"test/explain/real",
	"test/externaldns",
	"test/hostile",
	"test/howto",
	"test/man",
	"test/mec",
	"test/need",
	"test/packaging",
	"test/pages",
	"test/peers",
	"test/powerdns",
	"test/reference",
	"test/secondaries",
	"test/server",
}

// fences list the libraries that only some packages may import, so that a library can be replaced. TestFences also
// fails on a package that does not use the library.
var fences = map[string][]string{
	"go.etcd.io/bbolt": {
		"internal/store/boltstore",
	},
	"github.com/miekg/dns": {
		"internal/dnspeer",
		"internal/dnsserver",
		"internal/explain/probe",
		"internal/follow",
		"internal/forward",
		"internal/lab",
		"internal/resolve",
		"internal/resolve/iterate",
		"internal/resolve/secure",
		"internal/rr",
		"internal/simnet",
		"internal/transfer",
		"kubernetes/internal/controller/resolver",
		"kubernetes/internal/enforce/learn",
		"kubernetes/plugin/dnsnameresolver",
	},
	"github.com/golang-jwt/jwt": {
		"internal/access",
	},
	"k8s.io": {
		"kubernetes/api/datum/v1alpha",
		"kubernetes/api/dns/v1alpha1",
		"kubernetes/api/hostname/v1alpha1",
		"kubernetes/api/v1",
		"kubernetes/api/v1alpha1",
		"kubernetes/cmd/nameplane-egress",
		"kubernetes/cmd/nameplane-service",
		"kubernetes/internal/controller/agent",
		"kubernetes/internal/controller/domain",
		"kubernetes/internal/controller/egress",
		"kubernetes/internal/controller/hostname",
		"kubernetes/internal/controller/manager",
		"kubernetes/internal/controller/resolver",
		"kubernetes/internal/enforce/fetch",
		"kubernetes/internal/enforce/node",
		"kubernetes/internal/program",
		"kubernetes/plugin/dnsnameresolver",
	},
	"sigs.k8s.io": {
		"kubernetes/cmd/nameplane-egress",
		"kubernetes/cmd/nameplane-service",
		"kubernetes/internal/controller/agent",
		"kubernetes/internal/controller/domain",
		"kubernetes/internal/controller/egress",
		"kubernetes/internal/controller/hostname",
		"kubernetes/internal/controller/manager",
		"kubernetes/internal/controller/resolver",
		"kubernetes/internal/program",
	},
	"github.com/coredns": {
		"kubernetes/cmd/nameplane-coredns",
		"kubernetes/plugin/dnsnameresolver",
	},
	"github.com/ovn-kubernetes": {
		"kubernetes/internal/enforce/ovn",
	},
	"github.com/go-json-experiment": {
		"kubernetes/internal/enforce/fetch",
	},
	"github.com/spf13": {
		"internal/cli",
		"cmd/nameplane",
		"kubernetes/cmd/nameplane-egress",
		"kubernetes/cmd/nameplane-service",
		"kubernetes/internal/program",
	},
	"go.yaml.in/yaml/v3": {
		"internal/config",
		"internal/explain/service",
		"internal/mec",
	},
	"golang.org/x/crypto": {
		"internal/access",
	},
	"golang.org/x/sys/unix": {
		"internal/dnsserver",
		"internal/store/boltstore",
	},
}

// layerOf returns the number of a package's layer. Tests are above all layers. It returns -1 for a package that is in
// no table.
func layerOf(pkg string) int {
	if slices.Contains(tests, pkg) {
		return len(layers)
	}
	return slices.IndexFunc(layers, func(l layer) bool { _, ok := l.packages[pkg]; return ok })
}

package explain

import (
	"slices"
	"strings"
)

// ServiceLink is one link of the chain from an object to a page. A service works when all links hold.
type ServiceLink string

// ServiceLinks are the links in their order. The first one that fails is the one to repair: those after it depend on
// it.
var ServiceLinks = []ServiceLink{LinkClass, LinkGateway, LinkListener, LinkRoute, LinkOwnership, LinkDNS,
	LinkCertificate, LinkBackend}

// The links.
const (
	LinkClass       ServiceLink = "class"
	LinkGateway     ServiceLink = "gateway"
	LinkListener    ServiceLink = "listener"
	LinkRoute       ServiceLink = "route"
	LinkOwnership   ServiceLink = "ownership"
	LinkDNS         ServiceLink = "DNS"
	LinkCertificate ServiceLink = "certificate"
	LinkBackend     ServiceLink = "backend"
)

// serviceLinks has the link of each check of a service. All other checks are about DNS.
var serviceLinks = map[string]ServiceLink{
	"SVC01": LinkClass,
	"SVC02": LinkGateway, "SVC03": LinkGateway, "SVC04": LinkGateway,
	"SVC05": LinkListener, "SVC06": LinkListener, "SVC15": LinkListener,
	"SVC07": LinkRoute, "SVC08": LinkRoute, "SVC09": LinkRoute, "SVC10": LinkRoute, "SVC12": LinkRoute, "SVC13": LinkRoute,
	"SVC14": LinkRoute, "SVC16": LinkRoute, "SVC29": LinkRoute, "SVC30": LinkRoute,
	"OWN01": LinkOwnership, "OWN02": LinkOwnership, "OWN03": LinkOwnership, "OWN04": LinkOwnership,
	"OWN05": LinkOwnership, "OWN06": LinkOwnership,
	"SVC24": LinkCertificate,
	"TLS01": LinkCertificate, "TLS02": LinkCertificate, "TLS03": LinkCertificate, "TLS04": LinkCertificate,
	"TLS05": LinkCertificate, "TLS06": LinkCertificate, "TLS07": LinkCertificate, "TLS08": LinkCertificate,
	"TLS09": LinkCertificate, "TLS10": LinkCertificate, "TLS11": LinkCertificate, "TLS12": LinkCertificate,
	"SVC11":  LinkBackend,
	"HTTP01": LinkBackend, "HTTP02": LinkBackend, "HTTP03": LinkBackend, "HTTP04": LinkBackend, "HTTP05": LinkBackend,
	"HTTP06": LinkBackend, "HTTP07": LinkBackend,
}

// IsServiceCheck reports whether a check is one of a service.
func IsServiceCheck(id string) bool {
	_, ok := serviceLinks[id]
	return ok || strings.HasPrefix(id, "SVC")
}

// ServiceLinkOf returns the link that a check is about.
func ServiceLinkOf(id string) ServiceLink {
	if l, ok := serviceLinks[id]; ok {
		return l
	}
	return LinkDNS
}

// After reports whether l depends on other.
func (l ServiceLink) After(other ServiceLink) bool {
	return slices.Index(ServiceLinks, l) > slices.Index(ServiceLinks, other)
}

// FirstBroken returns the link to repair first: the first one with a critical failure. Without any, it is the first one
// with an error, which affects a part of the requests or comes into effect later. It returns "" if all links hold.
func FirstBroken(findings []Finding) ServiceLink {
	for _, least := range []Severity{Critical, Error} {
		for _, l := range ServiceLinks {
			if slices.ContainsFunc(findings, func(f Finding) bool {
				return f.Status == Fail && f.Severity.AtLeast(least) && ServiceLinkOf(f.ID) == l
			}) {
				return l
			}
		}
	}
	return ""
}

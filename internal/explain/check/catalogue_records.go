package check

import "github.com/nameplane/nameplane/internal/explain"

// recordChecks are the checks of the records of a service.
var recordChecks = []Check{
	{
		ID: "SVC20", Group: Service, Severity: explain.Critical, Kinds: services, judge: recordsPresent,
		Title: "The hostname has a record",
		What:  "The zone has no record that leads the hostname to the service.",
		Why:   "Nobody can find the service.",
		How:   "All servers of the zone are asked for the hostname, and no cache.",
		Fix:   "Enter the record at the DNS host of the zone.",
	},
	{
		ID: "SVC21", Group: Service, Severity: explain.Critical, Kinds: services, judge: recordsRight,
		Title: "The hostname leads to the service",
		What:  "The records of the hostname lead to other addresses than those of the service.",
		Why:   "Visitors reach another server.",
		How: "The addresses and aliases of the hostname are compared with the target of the Gateway, and the difference " +
			"with " +
			"common copy and paste mistakes.",
		Fix: "Replace the record at the DNS host of the zone.",
	},
	{
		ID: "SVC22", Group: Service, Severity: explain.Critical, Kinds: services, judge: recordsHere,
		Title: "The record is at the right name",
		What: "The record is at another name: often the form of the DNS host added the name of the zone again, or " +
			"stored the sign @ as a label.",
		Why: "Nobody can find the service.",
		How: "If the record is missing, the servers of the zone are asked for the names at which it may have been " +
			"entered by mistake. If a wildcard answers for all names, none is asked.",
		Fix: "Delete the record at the wrong name, and enter it at the right one.",
	},
	{
		ID: "SVC23", Group: Service, Severity: explain.Critical, Kinds: services, judge: apexRecords,
		Title: "The apex has no CNAME",
		What: "The hostname is the apex of its zone and has a CNAME. As a notice: it has copies of the addresses of " +
			"a host name.",
		Why: "A CNAME excludes all other records, and an apex has SOA and NS records. Copied addresses become wrong " +
			"when those of the host name change.",
		How: "The servers of the zone are asked for the apex. Its nameservers show whether the DNS host is known to " +
			"have ALIAS or ANAME.",
		Fix:  "Use ALIAS or ANAME if the DNS host has it, otherwise addresses.",
		Refs: []string{"RFC 1034 §3.6.2"},
	},
	{
		ID: "SVC24", Group: Service, Severity: explain.Critical, Kinds: services, judge: oneLabel,
		Title: "The certificate covers all labels of the hostname",
		What:  "The hostname has two labels below a wildcard that is in the listener and in the certificate.",
		Why: "In a listener a wildcard stands for one or more labels, in a certificate for exactly one. So the " +
			"route is attached, and browsers show a warning instead of the page.",
		How: "The names of the certificate are compared with the hostname. Without a connection, those of the " +
			"Certificate objects of the listener are.",
		Fix:  "Issue a certificate that contains the hostname itself.",
		Refs: []string{"RFC 9525 §6.3"},
	},
	{
		ID: "SVC25", Group: Service, Severity: explain.Error, Kinds: services, judge: noOldRecords,
		Title: "All addresses of the hostname are those of the service",
		What:  "The hostname has addresses of the service and others.",
		Why:   "A part of the visitors reaches another server.",
		How:   "The addresses of the hostname are compared with those of the service.",
		Fix:   "Delete the addresses that do not belong to the service.",
	},
	{
		ID: "SVC26", Group: Service, Severity: explain.Error, Kinds: services, judge: familiesLead,
		Title: "IPv4 and IPv6 lead to the same service",
		What:  "The addresses of one protocol are those of the service, and those of the other one are not.",
		Why: "Visitors whose network prefers the other protocol reach another server. Often the AAAA record was " +
			"forgotten.",
		How: "The A and AAAA records of the hostname are compared with the addresses of the service.",
		Fix: "Correct or delete the records of the other protocol.",
	},
	{
		ID: "SVC27", Group: Service, Severity: explain.Critical, Kinds: services, judge: ownService,
		Title: "The hostname does not lead to another service",
		What:  "The hostname leads to the address of another Gateway, or to another host of the same provider.",
		Why:   "The other service does not know the hostname.",
		How: "Aliases and addresses are compared with those of all Gateways in the input, and with the domain of " +
			"the target.",
		Fix: "Replace the record at the DNS host of the zone.",
	},
	{
		ID: "SVC28", Group: Service, Severity: explain.Notice, Kinds: services, judge: noProxy,
		Title: "No proxy is in front of the service",
		What:  "The hostname leads to a known CDN or proxy.",
		Why:   "DNS shows the addresses of the proxy, so it cannot show whether the proxy forwards to the service.",
		How:   "The names of aliases and the Server field of the page are compared with those of known CDNs.",
		Fix:   "Check in the settings of the proxy that it forwards to the target.",
	},
	{
		ID: "SVC29", Group: Service, Severity: explain.Warning, Kinds: services, judge: targetRead,
		Title: "external-dns reads the target",
		What:  "An annotation with a target is on a route, or has a prefix that external-dns does not read.",
		Why:   "external-dns ignores it silently, and publishes the address in the status of the Gateway.",
		How:   "The annotations of the route, the Gateway, the ListenerSet and the Ingress are read.",
		Fix:   "Write the annotation external-dns.kubernetes.io/target on the Gateway.",
	},
	{
		ID: "SVC30", Group: Service, Severity: explain.Warning, Kinds: services, judge: noSurprise,
		Title: "No wildcard is published by accident",
		What:  "A route without hostnames is attached to a listener with a wildcard.",
		Why:   "external-dns then publishes a wildcard record: every name below it leads to the service.",
		How:   "The hostnames of the route are compared with those of the listener.",
		Fix:   "Write the hostnames into spec.hostnames of the route.",
	},
	{
		ID: "SVC31", Group: Service, Severity: explain.Error, Kinds: services, judge: noPrivateAddress,
		Title: "The hostname has public addresses",
		What:  "An address of the hostname is private or reserved.",
		Why:   "Only visitors in the same network can reach it.",
		How:   "The addresses are compared with the registries of special-purpose addresses.",
		Fix:   "Point the record to the public address of the service, or use --private for an internal name.",
		Refs:  []string{"RFC 6890"},
	},
	{
		ID: "SVC32", Group: Service, Severity: explain.Critical, Kinds: services, judge: targetResolves,
		Title: "The target of the service has an address",
		What:  "The host name that the hostname must point to has no address.",
		Why:   "An alias to it leads nowhere.",
		How:   "The target is looked up for A and AAAA at its authoritative servers.",
		Fix:   "Correct the target, or create its records.",
	},
	{
		ID: "SVC33", Group: Service, Severity: explain.Critical, Kinds: services, judge: nothingBlocks,
		Title: "No other fault of the name keeps it from working",
		What:  "Checks of the delegation, the zone, the records or DNSSEC failed.",
		Why:   "The records are right, but some or all visitors cannot resolve them.",
		How:   "All checks of nameplane analyze run for the hostname. This one only refers to those that failed.",
		Fix:   "Do what the other findings say.",
	},
	{
		ID: "SVC34", Group: Service, Severity: explain.Warning, Kinds: services, judge: noneRemember,
		Title: "No resolver can remember an older answer",
		What:  "The records are right now, but resolvers that were asked before can still have the older answer.",
		Why: "Their users see an error until the answer expires. That the name does not exist is remembered for the " +
			"negative TTL of the zone.",
		How: "The records are compared with those of earlier checks, and the time is computed from the TTLs. No " +
			"resolver is asked.",
		Fix:  "Wait.",
		Refs: []string{"RFC 2308 §5"},
	},
}

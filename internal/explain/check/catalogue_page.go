package check

import "github.com/nameplane/nameplane/internal/explain"

// pageChecks are the checks of the pages and backends of a service.
var pageChecks = []Check{
	{
		ID: "HTTP01", Group: Service, Severity: explain.Critical, Kinds: services, judge: connects,
		Title: "Every address accepts connections",
		What:  "An address of the hostname refuses connections, or does not reply.",
		Why:   "Visitors who use the address see an error, or wait.",
		How:   "A connection is made to the port of each listener at every address.",
		Fix:   "Check the load balancer, its ports and its firewall.",
	},
	{
		ID: "HTTP02", Group: Service, Severity: explain.Critical, Kinds: services, judge: backendAnswers,
		Title: "A backend answers",
		What:  "The Gateway answers with an error of the server (5xx).",
		Why:   "DNS and the certificate are right, but no backend is ready.",
		How:   "A request is sent to every address, with the hostname in the Host field.",
		Fix:   "Check that the pods of the Service run and are ready.",
	},
	{
		ID: "HTTP03", Group: Service, Severity: explain.Critical, Kinds: services, judge: hostRouted,
		Title: "The Gateway knows the hostname",
		What:  "The Gateway answers 404 or 421 with its own page.",
		Why:   "It has no route for this hostname at this address.",
		How:   "A request is sent to every address. 404 pages of known controllers differ from those of a backend.",
		Fix:   "Check the hostname of the route, and that it is attached to the listener of this port.",
	},
	{
		ID: "HTTP04", Group: Service, Severity: explain.Warning, Kinds: services, judge: noRedirectLoop,
		Title: "The page does not redirect to itself",
		What:  "The page redirects to its own URL or, as a notice, to another host.",
		Why:   "Browsers stop with an error. Often a proxy in front speaks HTTP to a Gateway that redirects to HTTPS.",
		How:   "The Location field of the reply is compared with the URL. Redirects are not followed.",
		Fix:   "Let the proxy in front use HTTPS, or remove one of the redirects.",
	},
	{
		ID: "HTTP05", Group: Service, Severity: explain.Error, Kinds: services, judge: familiesAgree,
		Title: "The service answers the same over IPv4 and IPv6",
		What: "All addresses of one protocol refuse connections, or answer with another status than those of the " +
			"other one.",
		Why: "Visitors whose network prefers this protocol see an error, or wait.",
		How: "The connections and pages of the addresses are compared by protocol.",
		Fix: "Check the load balancer and its firewall for this protocol, or delete its records.",
	},
	{
		ID: "HTTP06", Group: Service, Severity: explain.Critical, Kinds: services, judge: endpointsReady,
		Title: "The backends have ready endpoints",
		What:  "No endpoint of a Service is ready, or the Service does not have the port.",
		Why:   "The Gateway has nobody to send requests to.",
		How:   "The EndpointSlices of the Services of the route are read.",
		Fix:   "Check that the pods of the Service run and pass their readiness probes.",
	},
	{
		ID: "HTTP07", Group: Service, Severity: explain.Notice, Kinds: services, judge: redirectsToHTTPS,
		Title: "HTTP redirects to HTTPS",
		What:  "The Gateway has no listener with port 80 for the hostname, or it does not redirect to HTTPS.",
		Why:   "Visitors who type the name without https get an error, or an unencrypted page.",
		How:   "The listeners are read, and the page of port 80 is requested.",
		Fix:   "Add a listener with port 80 and a route with a RequestRedirect filter.",
	},
}

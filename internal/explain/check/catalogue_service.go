package check

import "github.com/nameplane/nameplane/internal/explain"

// gatewayAPI is the specification of the conditions that controllers write.
const gatewayAPI = "Gateway API v1.6, conditions"

// serviceChecks are the checks of the objects of a service.
var serviceChecks = []Check{
	{
		ID: "SVC01", Group: Service, Severity: explain.Critical, Kinds: services, judge: classAccepted,
		Title: "A controller serves the class of the Gateway",
		What:  "The GatewayClass does not exist, or its controller has not accepted it.",
		Why:   "Without a controller nothing reads the Gateway: it gets no address, and no status changes.",
		How:   "The condition Accepted of the GatewayClass that the Gateway names is read.",
		Fix:   "Install the controller, or write the name of an existing GatewayClass into spec.gatewayClassName.",
		Refs:  []string{gatewayAPI},
	},
	{
		ID: "SVC02", Group: Service, Severity: explain.Critical, Kinds: services, judge: gatewayAccepted,
		Title: "The controller has accepted the Gateway",
		What:  "The condition Accepted of the Gateway or ListenerSet is False.",
		Why:   "The controller does not configure what it has not accepted.",
		How: "The condition Accepted is read. With the reason ListenersNotValid only some listeners are wrong, which " +
			"their own conditions show.",
		Fix:  "Correct the Gateway as the message of the condition says.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC03", Group: Service, Severity: explain.Critical, Kinds: services, judge: gatewayProgrammed,
		Title: "The Gateway has an address",
		What:  "The condition Programmed of the Gateway is False, or its status has no address.",
		Why:   "No record can point to a Gateway without an address.",
		How:   "The condition Programmed and the addresses in the status are read.",
		Fix:   "Read the message of the condition: often the cluster has no load balancer, or no free address.",
		Refs:  []string{gatewayAPI},
	},
	{
		ID: "SVC04", Group: Service, Severity: explain.Error, Kinds: services, judge: controllerCurrent,
		Title: "The controller has seen the newest versions of the objects",
		What:  "The status of an object is older than its last change, which was more than a minute ago.",
		Why:   "A controller that has stopped leaves its last status, which seems healthy.",
		How: "observedGeneration of the conditions is compared with the generation of the object, and the time of " +
			"its last change is read from managedFields. kubectl prints them with --show-managed-fields.",
		Fix:  "Check that the controller of the GatewayClass runs, and read its log.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC05", Group: Service, Severity: explain.Critical, Kinds: services, judge: listenerConflict,
		Title: "The controller serves the listener",
		What: "The condition Accepted or Programmed of the listener is False, or Conflicted is True: two listeners of the " +
			"Gateway have the same port and hostname, or one port has two protocols.",
		Why:  "The controller does not serve the listener, and of two in conflict none or only the older one.",
		How:  "The conditions Accepted, Programmed and Conflicted of the listener are read.",
		Fix:  "Correct the listener as the message says. Give listeners in conflict different hostnames or ports.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC06", Group: Service, Severity: explain.Critical, Kinds: services, judge: listenerRefs,
		Title: "The listener has its certificate",
		What: "A Secret that the listener names does not exist, is no certificate, or is in a namespace that does not " +
			"allow it.",
		Why: "Without a certificate the listener does not accept TLS connections, or shows the certificate of the " +
			"controller.",
		How: "The condition ResolvedRefs of the listener is read. Secrets are never read.",
		Fix: "Create the Secret. If it is in another namespace, create a ReferenceGrant there that allows Gateways of this " +
			"namespace to use Secrets.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC07", Group: Service, Severity: explain.Critical, Kinds: services, judge: routeParent,
		Title: "The Gateway of the route exists",
		What:  "The route names a Gateway that does not exist, or no controller has written a status for it.",
		Why:   "Requests never reach the route.",
		How:   "The parentRefs of the route are compared with the Gateways and ListenerSets, and its status is read.",
		Fix:   "Correct the name and the namespace in spec.parentRefs of the route.",
		Refs:  []string{gatewayAPI},
	},
	{
		ID: "SVC08", Group: Service, Severity: explain.Critical, Kinds: services, judge: routeSection,
		Title: "The Gateway has the listener that the route names",
		What:  "No listener of the Gateway has the sectionName or port of the route's parentRef.",
		Why:   "The route is attached to no listener.",
		How:   "The parentRefs of the route are compared with the listeners.",
		Fix:   "Write the name of an existing listener into sectionName, or remove sectionName and port.",
		Refs:  []string{gatewayAPI},
	},
	{
		ID: "SVC09", Group: Service, Severity: explain.Critical, Kinds: services, judge: routeAllowed,
		Title: "The listener accepts the route",
		What:  "The listener accepts no routes of this namespace or of this kind.",
		Why:   "The route is attached to no listener.",
		How: "allowedRoutes of the listener is compared with the namespace of the route and its labels, and the condition " +
			"Accepted of the route is read.",
		Fix:  "Change allowedRoutes of the listener, or add the label that its selector wants to the namespace.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC10", Group: Service, Severity: explain.Critical, Kinds: services, judge: routeHostname,
		Title: "A listener has a hostname that matches the route",
		What:  "No listener of the Gateway has a hostname that includes the hostname of the route.",
		Why:   "Requests for the hostname never reach the route.",
		How: "The hostnames of the route and of the listeners are intersected. A wildcard stands for one or more labels, " +
			"and not for the domain itself.",
		Fix:  "Add a listener for the hostname, or correct the hostname of the route.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC11", Group: Service, Severity: explain.Critical, Kinds: services, judge: backendsFound,
		Title: "The backends of the route exist",
		What:  "A Service that the route names does not exist, or is in a namespace that does not allow it.",
		Why:   "Requests get an error of the Gateway.",
		How: "The condition ResolvedRefs of the route is read, and backendRefs are compared with Services and " +
			"ReferenceGrants.",
		Fix:  "Correct the name in backendRefs. For another namespace, create a ReferenceGrant there.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC12", Group: Service, Severity: explain.Error, Kinds: services, judge: routePartial,
		Title: "All rules of the route are valid",
		What:  "The controller left out rules of the route, or it does not support one of its values.",
		Why:   "Requests for these rules get an error, or the answer of another rule.",
		How:   "The conditions PartiallyInvalid and Accepted of the route are read.",
		Fix:   "Correct the rule that the message names.",
		Refs:  []string{gatewayAPI},
	},
	{
		ID: "SVC13", Group: Service, Severity: explain.Critical, Kinds: services, judge: listenerRoutes,
		Title: "A route uses the hostname of the listener",
		What:  "A listener has a hostname that no route uses.",
		Why:   "Requests for the hostname get 404.",
		How:   "Listeners are compared with the routes of the input, and attachedRoutes in the status is read.",
		Fix:   "Create a route for the hostname, or remove the listener.",
		Refs:  []string{gatewayAPI},
	},
	{
		ID: "SVC14", Group: Service, Severity: explain.Error, Kinds: services, judge: noRivals,
		Title: "No two routes want the same requests",
		What:  "Two routes have the same hostname and the same match at one listener.",
		Why:   "Only the older route gets the requests; of two with the same age, the one whose name comes first.",
		How:   "The matches of all routes of the hostname are compared: paths, methods, headers and query parameters.",
		Fix:   "Delete one of the routes, or give them different paths or hostnames.",
		Refs:  []string{gatewayAPI},
	},
	{
		ID: "SVC15", Group: Service, Severity: explain.Critical, Kinds: services, judge: notShadowed,
		Title: "Requests reach the listener of the route",
		What: "The route is attached to one listener, but another listener of the same port has a more specific " +
			"hostname and no route.",
		Why: "The most specific listener gets the requests, and answers 404.",
		How: "The hostnames of the listeners of one port are compared: an exact hostname comes before a wildcard, " +
			"and a longer wildcard before a shorter one.",
		Fix:  "Attach the route to the listener with the more specific hostname as well, or remove that listener.",
		Refs: []string{gatewayAPI},
	},
	{
		ID: "SVC16", Group: Service, Severity: explain.Critical, Kinds: services, judge: hostnameForm,
		Title: "The hostname is a name that DNS and certificates can have",
		What:  "The hostname is an address, or has characters that host names cannot have.",
		Why:   "No record or certificate can exist for it.",
		How:   "The hostname is compared with the syntax of RFC 1123.",
		Fix:   "Write a host name: letters, digits and hyphens, in labels that dots separate.",
		Refs:  []string{"RFC 1123 §2.1"},
	},
}

package check

import "github.com/nameplane/nameplane/internal/explain"

// certificateChecks are the checks of the certificates of a service.
var certificateChecks = []Check{
	{
		ID: "TLS01", Group: Service, Severity: explain.Critical, Kinds: services, judge: certificateCovers,
		Title: "The certificate is valid for the hostname",
		What:  "The certificate of an address does not contain the hostname.",
		Why:   "Browsers show a warning instead of the page.",
		How: "A TLS handshake is made with every address, with the hostname in SNI. A wildcard in a certificate stands for " +
			"one label, and in a listener for several.",
		Fix:  "Issue a certificate that contains the hostname, and name its Secret in the listener.",
		Refs: []string{"RFC 6066 §3", "RFC 9525 §6.3"},
	},
	{
		ID: "TLS02", Group: Service, Severity: explain.Critical, Kinds: services, judge: certificateDefault,
		Title: "The certificate is not the default of the controller",
		What:  "The controller shows the certificate that it has for unknown hostnames.",
		Why:   "The listener for the hostname has no certificate, or the request reached another listener.",
		How:   "The certificate is compared with the default certificates of known controllers.",
		Fix:   "Name the Secret of the certificate in the listener, and check its condition ResolvedRefs.",
	},
	{
		ID: "TLS03", Group: Service, Severity: explain.Critical, Kinds: services, judge: certificateCurrent,
		Title: "The certificate has not expired",
		What:  "The certificate has expired, expires within 14 days, or is not valid yet.",
		Why:   "Browsers show a warning instead of the page.",
		How:   "The dates of the certificate are compared with the time of the scan.",
		Fix:   "Renew the certificate, and find out why it was not renewed automatically.",
	},
	{
		ID: "TLS04", Group: Service, Severity: explain.Critical, Kinds: services, judge: certificateTrusted,
		Title: "Browsers trust the certificate",
		What:  "The chain of the certificate does not end at a CA that this machine trusts.",
		Why:   "Browsers show a warning instead of the page.",
		How:   "The chain is verified with the CAs of this machine.",
		Fix:   "Serve the whole chain with the intermediate certificates, or use a CA that browsers trust.",
	},
	{
		ID: "TLS05", Group: Service, Severity: explain.Error, Kinds: services, judge: certificatesAgree,
		Title: "All addresses have the same certificate",
		What:  "The addresses of the hostname show different certificates.",
		Why:   "Some of them were not updated, or they are different servers.",
		How:   "The names and dates of the certificates are compared.",
		Fix:   "Update the servers that show the older certificate.",
	},
	{
		ID: "TLS06", Group: Service, Severity: explain.Critical, Kinds: services, judge: issuerPermitted,
		Title: "The CAA records permit the CA of the certificate",
		What:  "The CAA records permit other CAs, or none. As a warning: the present certificate is still valid.",
		Why:   "The CA refuses to issue or renew the certificate.",
		How:   "The CAA records that apply to the hostname are compared with the issuer of the certificate that is served.",
		Fix:   "Add a CAA record for the CA, or use one that the records permit.",
		Refs:  []string{"RFC 8659 §4.2"},
	},
	{
		ID: "TLS07", Group: Service, Severity: explain.Error, Kinds: services, judge: caaReadable,
		Title: "CAs can read the CAA records",
		What:  "The servers of the zone do not answer the question for CAA.",
		Why:   "A CA must not issue a certificate when this lookup fails.",
		How:   "The zone's servers are asked for CAA at the hostname and at the names above it, as a CA does.",
		Fix:   "Repair the DNS servers of the zone: they must answer queries for every type.",
		Refs:  []string{"RFC 8659 §3"},
	},
	{
		ID: "TLS08", Group: Service, Severity: explain.Error, Kinds: services, judge: challengeReachable,
		Title: "A CA can test the hostname with HTTP-01",
		What: "A Challenge waits for HTTP-01, and an address of the hostname refuses the request of the CA or " +
			"redirects it to another host.",
		Why:  "The CA issues no certificate. It may use any address, and prefers IPv6.",
		How:  "Port 80 of every address is asked for a path of HTTP-01, if the Gateway has a listener with this port.",
		Fix:  "Let port 80 of all addresses reach the solver, without a login and without a redirect to another host.",
		Refs: []string{"RFC 8555 §8.3"},
	},
	{
		ID: "TLS09", Group: Service, Severity: explain.Error, Kinds: services, judge: certificateIssued,
		Title: "cert-manager has issued the certificate",
		What:  "The condition Ready of the Certificate is False.",
		Why:   "The listener keeps its older certificate, or has none.",
		How:   "The condition Ready of the Certificate objects with this hostname is read.",
		Fix:   "Read the message, and the reason of the Challenge: kubectl describe challenge.",
	},
	{
		ID: "TLS10", Group: Service, Severity: explain.Warning, Kinds: services, judge: certificateUsed,
		Title: "The newest certificate is shown",
		What:  "cert-manager has renewed the certificate, but an address still shows the older one.",
		Why:   "Browsers show a warning as soon as the older one expires.",
		How: "The end of the certificate in the handshake is compared with the status of the Certificate. Renewals " +
			"within the last hour are not judged, because CAs backdate certificates.",
		Fix: "Restart the Gateway, or find out why it does not read the Secret again.",
	},
	{
		ID: "TLS11", Group: Service, Severity: explain.Notice, Kinds: services, judge: modernTLS,
		Title: "The addresses have a current version of TLS, and HTTP/2",
		What:  "An address has only TLS 1.0 or 1.1, or does not offer HTTP/2.",
		Why:   "Browsers refuse old versions, and pages load faster with HTTP/2.",
		How:   "One handshake accepts every version of TLS, and a second one offers HTTP/2.",
		Fix:   "Enable TLS 1.3 and HTTP/2 in the Gateway.",
		Refs:  []string{"RFC 8996", "RFC 9113"},
	},
	{
		ID: "TLS12", Group: Service, Severity: explain.Notice, Kinds: services, judge: noOverlap,
		Title: "The listener shares its certificate with no other one",
		What:  "The certificate or the hostnames of two listeners overlap.",
		Why: "Browsers use one HTTP/2 connection for all names of a certificate, and so may send requests to the " +
			"other listener, which answers 404 or 421.",
		How:  "The condition OverlappingTLSConfig of the listener is read.",
		Fix:  "Give each listener a certificate with its own names only.",
		Refs: []string{gatewayAPI},
	},
}

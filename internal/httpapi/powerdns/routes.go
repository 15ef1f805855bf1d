package powerdns

import "net/http"

// Route is one operation of the API. Pattern is a path in the form of http.ServeMux.
type Route struct {
	Method, Pattern, Description string

	need   demand
	handle func(*call) (reply, error)
}

// demand is the role that a caller needs.
type demand uint8

const (
	needReader demand = iota
	needMember
	needAdmin
)

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete

	server = "/api/v1/servers/localhost" // the only server
	zones  = server + "/zones"
	oneOf  = zones + "/{zone_name}"
)

// Routes lists every operation of the API.
func Routes() []Route {
	return []Route{
		{get, "/api", "List the versions of the PowerDNS API", needReader, (*call).listVersions},
		{get, "/api/v1", "Show version 1 of the PowerDNS API", needReader, (*call).showVersion},
		{get, "/api/v1/servers", "List the servers of the PowerDNS API", needReader, (*call).listServers},
		{get, server, "Show the server in the form of PowerDNS", needReader, (*call).showServer},
		{get, server + "/config", "List settings in the form of PowerDNS", needReader, (*call).listConfig},
		{get, server + "/statistics", "List counters in the form of PowerDNS", needAdmin, (*call).listStatistics},
		{get, server + "/search-data", "Search zones, records and comments", needReader, (*call).search},
		{put, server + "/cache/flush", "Flush a name from the cache, which is empty here", needMember, (*call).flushCache},

		{get, zones, "List zones in the form of PowerDNS", needReader, (*call).listZones},
		{post, zones, "Create a zone in the form of PowerDNS", needMember, (*call).createZone},
		{get, oneOf, "Show a zone with its record sets", needReader, (*call).showZone},
		{patch, oneOf, "Change record sets of a zone, all or none", needMember, (*call).patchZone},
		{put, oneOf, "Change a zone, or replace all its record sets", needMember, (*call).updateZone},
		{remove, oneOf, "Delete a zone in the form of PowerDNS", needMember, (*call).deleteZone},
		{put, oneOf + "/notify", "Send NOTIFY for a zone", needMember, (*call).notifyZone},
		{get, oneOf + "/export", "Fetch the records of a zone as text", needReader, (*call).exportZone},
		{put, oneOf + "/axfr-retrieve", "Fetch a zone from its masters", needMember, (*call).retrieveZone},
		{put, oneOf + "/rectify", "Rectify a zone, which is never needed here", needMember, (*call).rectifyZone},

		{get, oneOf + "/metadata", "List the metadata of a zone", needReader, (*call).listMetadata},
		{post, oneOf + "/metadata", "Add metadata to a zone", needMember, (*call).addMetadata},
		{get, oneOf + "/metadata/{kind}", "Show metadata of one kind", needReader, (*call).showMetadata},
		{put, oneOf + "/metadata/{kind}", "Replace metadata of one kind", needMember, (*call).putMetadata},
		{remove, oneOf + "/metadata/{kind}", "Delete metadata of one kind", needMember, (*call).deleteMetadata},

		{get, oneOf + "/cryptokeys", "List the signing keys of a zone, which has none", needReader, (*call).listSigningKeys},
		{post, oneOf + "/cryptokeys", "Create a signing key, which is refused", needMember, (*call).createSigningKey},
		{get, oneOf + "/cryptokeys/{id}", "Show a signing key, which is never found", needReader, (*call).showSigningKey},

		{get, server + "/tsigkeys", "List TSIG keys without their secrets", needAdmin, (*call).listKeys},
		{post, server + "/tsigkeys", "Create a TSIG key in the form of PowerDNS", needAdmin, (*call).createKey},
		{get, server + "/tsigkeys/{id}", "Show a TSIG key with its secret", needAdmin, (*call).showKey},
		{put, server + "/tsigkeys/{id}", "Change a TSIG key in the form of PowerDNS", needAdmin, (*call).updateKey},
		{remove, server + "/tsigkeys/{id}", "Delete a TSIG key in the form of PowerDNS", needAdmin, (*call).deleteKey},
	}
}

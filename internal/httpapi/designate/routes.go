package designate

import (
	"net/http"
	"slices"

	"github.com/nameplane/nameplane/internal/httpapi"
)

const (
	get    = http.MethodGet
	post   = http.MethodPost
	put    = http.MethodPut
	patch  = http.MethodPatch
	remove = http.MethodDelete
)

// Routes lists every operation of the API.
func Routes() []Route {
	return slices.Concat(versionRoutes, zoneRoutes, recordSetRoutes, extensionRoutes, taskRoutes, transferRoutes,
		shareRoutes, tlds.routes(), blacklists.routes(), tsigKeys.routes(), serviceRoutes)
}

var versionRoutes = []Route{
	{get, "/v1/domains/{zone_id}/records", "List the records of a zone as version 1 did",
		needReader, (*call).listV1Records},
	{get, "/", "List the versions of all services", needNothing, (*call).showServices},
	{get, httpapi.DNSPath, "List the versions of the API", needNothing, (*call).showVersions},
	{get, "/v2", "Show this version of the API", needNothing, (*call).showVersion},
}

var zoneRoutes = []Route{
	{get, "/v2/zones", "List zones", needReader, (*call).listZones},
	{post, "/v2/zones", "Create a zone", needMember, (*call).createZone},
	{get, "/v2/zones/{zone_id}", "Show a zone", needReader, (*call).showZone},
	{patch, "/v2/zones/{zone_id}", "Change a zone", needMember, (*call).updateZone},
	{remove, "/v2/zones/{zone_id}", "Delete a zone", needMember, (*call).deleteZone},
	{get, "/v2/zones/{zone_id}/nameservers", "List the name servers of a zone", needReader, (*call).listNameservers},
}

var recordSetRoutes = []Route{
	{get, "/v2/zones/{zone_id}/recordsets", "List the record sets of a zone", needReader, (*call).listRecordSets},
	{post, "/v2/zones/{zone_id}/recordsets", "Create a record set", needMember | needPrimary, (*call).createRecordSet},
	{get, "/v2/zones/{zone_id}/recordsets/{recordset_id}", "Show a record set", needReader, (*call).showRecordSet},
	{put, "/v2/zones/{zone_id}/recordsets/{recordset_id}", "Change a record set",
		needMember | needPrimary, (*call).updateRecordSet},
	{remove, "/v2/zones/{zone_id}/recordsets/{recordset_id}", "Delete a record set",
		needMember | needPrimary, (*call).deleteRecordSet},
	{get, "/v2/recordsets", "List the record sets of the project's zones", needReader, (*call).listAllRecordSets},
	{get, "/v2/recordsets/{recordset_id}", "Find a record set", needReader, (*call).findRecordSet},
}

// extensionRoutes are additions of this server; Designate does not have them.
var extensionRoutes = []Route{
	{post, "/v2/zones/{zone_id}/changes", "Apply many changes of record sets at once, or none",
		needMember | needPrimary, (*call).applyChanges},
	{post, "/v2/zones/{zone_id}/recordsets/{recordset_id}/tasks/flatten", "Look up the target of an ALIAS now",
		needMember | needPrimary, (*call).flatten},
	{get, "/v2/zones/{zone_id}/history", "List the changes of a zone, newest first", needReader, (*call).listHistory},
	{get, "/v2/zones/{zone_id}/history/diff", "Compare a zone at two serials", needReader, (*call).showDiff},
	{post, "/v2/zones/{zone_id}/history/rollback", "Make a zone what it was at a serial",
		needMember | needPrimary, (*call).rollback},
}

var taskRoutes = []Route{
	{post, "/v2/zones/{zone_id}/tasks/abandon", "Abandon a zone", needAdmin, (*call).abandon},
	{post, "/v2/zones/{zone_id}/tasks/xfr", "Fetch a secondary zone from its masters",
		needMember, (*call).fetchFromMasters},
	{post, "/v2/zones/{zone_id}/tasks/pool_move", "Move a zone to another pool", needAdmin, (*call).movePool},
	{post, "/v2/zones/{zone_id}/tasks/export", "Export a zone", needMember, (*call).createExport},
	{get, "/v2/zones/tasks/exports", "List exports", needReader, exportTasks.list},
	{get, "/v2/zones/tasks/exports/{id}", "Show an export", needReader, exportTasks.show},
	{remove, "/v2/zones/tasks/exports/{id}", "Delete an export", needMember, exportTasks.remove},
	{get, "/v2/zones/tasks/exports/{id}/export", "Fetch the zone file of an export",
		needReader | isZoneFile, (*call).fetchExport},
	{get, "/v2/zones/tasks/imports", "List imports", needReader, importTasks.list},
	{post, "/v2/zones/tasks/imports", "Import a zone file", needMember, (*call).createImport},
	{get, "/v2/zones/tasks/imports/{id}", "Show an import", needReader, importTasks.show},
	{remove, "/v2/zones/tasks/imports/{id}", "Delete an import", needMember, importTasks.remove},
}

var transferRoutes = []Route{
	{post, "/v2/zones/{zone_id}/tasks/transfer_requests", "Offer a zone to another project",
		needMember, (*call).createTransferRequest},
	{get, "/v2/zones/tasks/transfer_requests", "List transfer requests", needReader, transferRequests.list},
	{get, "/v2/zones/tasks/transfer_requests/{id}", "Show a transfer request", needReader, (*call).showTransferRequest},
	{patch, "/v2/zones/tasks/transfer_requests/{id}", "Change a transfer request",
		needMember, (*call).updateTransferRequest},
	{remove, "/v2/zones/tasks/transfer_requests/{id}", "Delete a transfer request",
		needMember, (*call).deleteTransferRequest},
	{get, "/v2/zones/tasks/transfer_accepts", "List transfer accepts", needAdmin, transferAccepts.list},
	{post, "/v2/zones/tasks/transfer_accepts", "Take over a zone", needMember, (*call).createTransferAccept},
	{get, "/v2/zones/tasks/transfer_accepts/{id}", "Show a transfer accept", needReader, transferAccepts.show},
}

var shareRoutes = []Route{
	{get, "/v2/zones/{zone_id}/shares", "List the shares of a zone", needReader, (*call).listShares},
	{post, "/v2/zones/{zone_id}/shares", "Share a zone with another project", needMember, (*call).createShare},
	{get, "/v2/zones/{zone_id}/shares/{id}", "Show a share", needReader, (*call).showShare},
	{remove, "/v2/zones/{zone_id}/shares/{id}", "End a share", needMember, (*call).deleteShare},
}

var serviceRoutes = []Route{
	{get, "/v2/limits", "Show the limits of the project", needReader, (*call).showLimits},
	{get, "/v2/quotas", "Show the quotas of the caller's project", needReader, (*call).showQuotas},
	{get, "/v2/quotas/{project_id}", "Show the quotas of a project", needReader, (*call).showQuotas},
	{patch, "/v2/quotas/{project_id}", "Change the quotas of a project", needAdmin, (*call).updateQuotas},
	{remove, "/v2/quotas/{project_id}", "Give a project the default quotas", needAdmin, (*call).deleteQuotas},
	{get, "/v2/pools", "List pools", needReader, (*call).listPools},
	{post, "/v2/pools", "Create a pool", needAdmin, (*call).createPool},
	{get, "/v2/pools/{id}", "Show a pool", needReader, (*call).showPool},
	{patch, "/v2/pools/{id}", "Change a pool", needAdmin, (*call).updatePool},
	{remove, "/v2/pools/{id}", "Delete a pool", needAdmin, (*call).deletePool},
	{get, "/v2/service_statuses", "List the states of services", needAdmin, (*call).listServices},
	{get, "/v2/service_statuses/{id}", "Show the state of a service", needAdmin, (*call).showService},
	{get, "/v2/reverse/floatingips", "List floating IPs", needReader, (*call).listFloatingIPs},
	{get, "/v2/reverse/floatingips/{id}", "Show a floating IP", needReader, (*call).showFloatingIP},
	{patch, "/v2/reverse/floatingips/{id}", "Name a floating IP", needMember, (*call).updateFloatingIP},
}

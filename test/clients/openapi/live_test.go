package openapi_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func at(v any, keys ...string) any {
	for _, key := range keys {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		}
	}
	return v
}

func str(v any, keys ...string) string {
	s, _ := at(v, keys...).(string)
	return s
}

func id(v any) map[string]string { return map[string]string{"id": str(v, "id")} }

// TestLive uses the whole API. It calls every operation, sends every example of a body, and receives every successful
// reply that the document lists.
func TestLive(t *testing.T) {
	k := newSession(t)
	k.operation()
	project := k.accounts()
	zone := k.zones()
	k.recordSets(zone)
	k.history(zone)
	k.tasks(zone)
	k.shares(zone)
	k.transfers(zone, project)
	k.rules()
	k.service(zone)
	k.edgeApplication()
	k.edgePlatform()
	k.edgeGallery()
	k.serverManagement()
	k.explain()
	k.externalDNS()
	k.powerDNS()
	k.refusals(zone)
	k.strange()
	k.guesses()
	k.leave(zone)
	for name, op := range k.ops {
		for status := range op.Responses.Map() {
			n, err := strconv.Atoi(status)
			if err != nil {
				t.Fatal(err)
			}
			if n < 400 && !k.received[name+" "+status] {
				t.Errorf("%s was never answered with %d", name, n)
			}
		}
		if op.RequestBody == nil || name == "updateFloatingIP" { // which is always 404
			continue
		}
		for _, content := range op.RequestBody.Value.Content {
			for example := range content.Examples {
				if !k.sent[name+" "+example] {
					t.Errorf("the example %q of %s was never taken", example, name)
				}
			}
		}
	}
}

func (k *session) operation() {
	for _, name := range []string{"healthz", "readyz", "openapi", "showIdentityVersion"} {
		k.send(200, name, call{as: "nobody"})
	}
	k.send(300, "listServices", call{as: "nobody"})
	k.send(200, "listVersions", call{as: "nobody"})
	tag := ""
	k.send(200, "openapi", call{check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "openapi", call{headers: map[string]string{"If-None-Match": tag}})
	k.send(200, "showVersion", call{})
	k.send(200, "metrics", call{})
	k.send(200, "backup", call{})
	k.send(200, "scrub", call{})
}

// accounts manages a project with its user and tokens, logs in by every method, and returns the project's id.
func (k *session) accounts() string {
	p := k.send(201, "createProject", call{example: "project"})
	project := str(p, "project", "id")
	k.send(409, "createProject", call{example: "project"})
	user := k.send(201, "createUser", call{example: "user"})
	short := k.send(201, "createToken", call{example: "short"})
	k.send(201, "createToken", call{example: "long"})
	k.send(201, "createToken", call{example: "app"})
	for _, name := range []string{"listProjects", "listUsers", "listTokens", "listIdentityProjects", "listOwnProjects",
		"showCatalog"} {
		k.send(200, name, call{})
	}
	k.send(200, "listOwnProjects", call{query: "?name=web"})
	k.send(200, "showIdentityProject", call{params: map[string]string{"id": project}})
	k.send(404, "showIdentityProject", call{})
	k.logins(short)
	userID := map[string]string{"id": str(user, "user", "id")}
	k.send(200, "setPassword", call{params: userID, example: "password"})
	k.send(401, "login", call{as: "nobody", example: "password"})
	k.send(204, "deleteUser", call{params: userID})
	k.send(404, "deleteUser", call{params: userID})
	k.send(204, "revokeToken", call{params: map[string]string{"id": str(short, "token", "id")}})
	k.send(400, "createToken", call{example: "short", bad: true, change: func(b map[string]any) { b["role"] = "king" }})
	spare := k.send(201, "createProject", call{example: "project", change: func(b map[string]any) { b["name"] = "spare" }})
	k.send(409, "deleteProject", call{params: map[string]string{"id": project}})
	k.send(204, "deleteProject", call{params: map[string]string{"id": str(spare, "project", "id")}})
	return project
}

func (k *session) logins(token map[string]any) {
	session := ""
	note := func(r *http.Response) { session = r.Header.Get("X-Subject-Token") }
	part := func(b map[string]any, method string) map[string]any {
		return at(b, "auth", "identity", method).(map[string]any)
	}
	k.send(201, "login", call{as: "nobody", example: "application_credential", query: "?nocatalog",
		change: func(b map[string]any) {
			part(b, "application_credential")["id"] = str(token, "token", "id")
			part(b, "application_credential")["secret"] = str(token, "token", "token")
		}})
	k.send(201, "login", call{as: "nobody", example: "token", change: func(b map[string]any) {
		part(b, "token")["id"] = str(token, "token", "token")
	}})
	k.send(400, "login", call{as: "nobody", bad: true, example: "token",
		change: func(b map[string]any) { delete(b, "auth") }})
	k.send(401, "login", call{as: "nobody", example: "password", change: func(b map[string]any) {
		b["auth"].(map[string]any)["scope"] = map[string]any{"system": map[string]any{"all": true}}
	}})
	k.send(201, "login", call{as: "nobody", example: "token", change: func(b map[string]any) {
		part(b, "token")["id"] = k.Admin
		b["auth"].(map[string]any)["scope"] = map[string]any{"system": map[string]any{"all": true}}
	}})
	k.send(201, "login", call{as: "nobody", example: "password", check: note})
	subject := map[string]string{"X-Subject-Token": session}
	k.send(200, "listZones", call{as: session})
	k.send(200, "showSession", call{as: session, headers: subject})
	k.send(200, "showSession", call{headers: map[string]string{"X-Subject-Token": k.Admin}, query: "?nocatalog"})
	k.send(403, "showSession", call{as: session, headers: map[string]string{"X-Subject-Token": k.Admin}})
	k.send(403, "listTokens", call{as: session})
	k.send(403, "logout", call{headers: map[string]string{"X-Subject-Token": k.Admin}})
	k.send(204, "logout", call{as: session, headers: subject})
	k.send(404, "logout", call{headers: subject})
	k.send(401, "listZones", call{as: session})
}

// zones creates, changes and lists zones, and returns the path parameters of one.
func (k *session) zones() map[string]string {
	z := k.send(202, "createZone", call{example: "short"})
	k.send(202, "createZone", call{example: "long"})
	k.send(409, "createZone", call{example: "short"})
	second := k.send(202, "createZone", call{example: "secondary"})
	k.send(202, "transferZone", call{params: map[string]string{"zone_id": str(second, "id")}})
	k.send(202, "deleteZone", call{params: map[string]string{"zone_id": str(second, "id")}})
	zone := map[string]string{"zone_id": str(z, "id")}
	tag := ""
	k.send(200, "showZone", call{params: zone, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showZone", call{params: zone, headers: map[string]string{"If-None-Match": tag}})
	k.send(202, "updateZone", call{params: zone, example: "email", headers: map[string]string{"If-Match": tag}})
	k.send(412, "updateZone", call{params: zone, example: "description", headers: map[string]string{"If-Match": tag}})
	k.send(202, "updateZone", call{params: zone, example: "description"})
	k.send(200, "listNameservers", call{params: zone})
	k.send(200, "listZones", call{query: "?limit=1&sort_key=name&sort_dir=desc"})
	k.send(200, "listZones", call{query: "?limit=max&marker=" + zone["zone_id"]})
	k.send(200, "listZones", call{query: "?name=*.org.&email=*&type=PRIMARY&status=ACTIVE&ttl=1800&description=*"})
	k.send(200, "listZones", call{headers: map[string]string{"OpenStack-DNS-Hide-Counts": "true",
		"X-Auth-All-Projects": "true"}})
	k.send(400, "listZones", call{query: "?sort_key=colour", bad: true})
	k.send(400, "listZones", call{query: "?limit=none", bad: true})
	return zone
}

func (k *session) recordSets(zone map[string]string) {
	var sets []map[string]any
	for _, example := range []string{"a", "mx", "txt", "unknown"} {
		sets = append(sets, k.send(202, "createRecordSet", call{params: zone, example: example}))
	}
	k.send(409, "createRecordSet", call{params: zone, example: "a"})
	k.send(400, "createRecordSet", call{params: zone, example: "a",
		change: func(b map[string]any) { b["records"] = []string{"192.0.2.300"} }})
	www := map[string]string{"zone_id": zone["zone_id"], "recordset_id": str(sets[0], "id")}
	tag := ""
	k.send(200, "showRecordSet", call{params: www, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showRecordSet", call{params: www, headers: map[string]string{"If-None-Match": tag}})
	k.send(301, "findRecordSet", call{params: www})
	k.send(202, "updateRecordSet", call{params: www, example: "records"})
	k.send(412, "updateRecordSet", call{params: www, example: "ttl", headers: map[string]string{"If-Match": tag}})
	k.send(202, "updateRecordSet", call{params: www, example: "ttl"})
	k.send(200, "listRecordSets", call{params: zone, query: "?sort_key=records&limit=2"})
	k.send(200, "listRecordSets", call{params: zone, query: "?name=www.example.org.&type=A&status=ACTIVE&data=192.*"})
	k.send(200, "listAllRecordSets", call{query: "?description=mail&ttl=60"})
	k.send(200, "listAllRecordSets", call{query: "?sort_key=ttl"})
	mx := map[string]string{"zone_id": zone["zone_id"], "recordset_id": str(sets[1], "id")}
	k.aliases(zone)
	k.send(202, "deleteRecordSet", call{params: mx})
	k.send(404, "deleteRecordSet", call{params: mx})
}

func (k *session) aliases(zone map[string]string) {
	set := k.send(202, "createRecordSet", call{params: zone, example: "alias"})
	of := map[string]string{"zone_id": zone["zone_id"], "recordset_id": str(set, "id")}
	if k.send(200, "showRecordSet", call{params: of})["alias"] == nil {
		k.t.Error("an ALIAS is shown without what is known of it")
	}
	k.send(202, "updateRecordSet", call{params: of, example: "alias"})
	k.send(202, "flatten", call{params: of})
	k.send(429, "flatten", call{params: of})
	k.send(200, "listRecordSets", call{params: zone, query: "?status=PENDING"})
	k.send(200, "listV1Records", call{params: zone})
	k.send(202, "deleteRecordSet", call{params: of})
}

func (k *session) history(zone map[string]string) {
	first := k.send(200, "showZone", call{params: zone})["serial"].(float64)
	changed := k.send(200, "applyChanges", call{params: zone, example: "batch"})
	k.send(404, "applyChanges", call{params: zone, example: "batch", change: func(b map[string]any) {
		b["changes"] = []any{map[string]any{"action": "delete", "name": "none.example.org.", "type": "A"}}
	}})
	ttl := k.send(200, "showZone", call{params: zone})["ttl"].(float64)
	for _, ttl := range []float64{ttl + 1, ttl} {
		k.send(202, "updateZone", call{params: zone, example: "description",
			change: func(b map[string]any) { b["ttl"] = ttl }})
	}
	k.send(200, "listHistory", call{params: zone})
	page := k.send(200, "listHistory", call{params: zone, query: "?limit=2"})
	k.send(200, "listHistory", call{params: zone, query: "?limit=2&marker=" + str(page, "history", "1", "id")})
	last := at(changed, "zone", "serial").(float64)
	number := func(f float64) string { return strconv.FormatUint(uint64(f), 10) }
	diff := k.send(200, "showDiff", call{params: zone, query: "?from=" + number(first) + "&to=" + number(last)})
	if len(diff["recordsets"].([]any)) < 3 {
		k.t.Errorf("diff of a batch: %v", diff)
	}
	k.send(409, "showDiff", call{params: zone, query: "?from=1&to=" + number(last)})
	k.send(200, "rollback", call{params: zone, example: "serial", change: func(b map[string]any) { b["serial"] = first }})
	k.send(409, "rollback", call{params: zone, example: "serial", change: func(b map[string]any) { b["serial"] = 7 }})
}

func (k *session) tasks(zone map[string]string) {
	export := id(k.send(202, "createExport", call{params: zone}))
	k.send(200, "listExports", call{query: "?status=COMPLETE&zone_id=" + zone["zone_id"]})
	k.send(200, "showExport", call{params: export})
	k.send(200, "fetchExport", call{params: export})
	k.send(204, "deleteExport", call{params: export})
	k.send(404, "showExport", call{params: export})
	file := k.waitImport(k.send(202, "createImport", call{example: "file", media: "text/dns"}))
	k.waitImport(k.send(202, "createImport", call{example: "file", media: "text/dns", query: "?replace=true"}))
	k.waitImport(k.send(202, "createImport", call{example: "json"}))
	k.send(200, "listImports", call{query: "?sort_key=status"})
	k.send(204, "deleteImport", call{params: id(file)})
	imported := map[string]string{"zone_id": str(file, "zone_id")}
	k.send(400, "transferZone", call{params: imported})
	k.send(400, "movePool", call{params: imported, example: "default"}) // the zone is in it
	k.send(204, "abandonZone", call{params: imported})
}

func (k *session) waitImport(task map[string]any) map[string]any {
	for end := time.Now().Add(30 * time.Second); task["status"] == "PENDING"; {
		task = k.send(200, "showImport", call{params: id(task)})
		if time.Now().After(end) {
			k.t.Fatal("the import does not end")
		}
	}
	if task["status"] != "COMPLETE" {
		k.t.Fatalf("import: %v", task)
	}
	return task
}

func (k *session) shares(zone map[string]string) {
	made := k.send(201, "createShare", call{params: zone, example: "share"})
	share := map[string]string{"zone_id": zone["zone_id"], "id": str(made, "id")}
	k.send(409, "createShare", call{params: zone, example: "share"})
	k.send(200, "listShares", call{params: zone, query: "?target_project_id=*"})
	k.send(200, "showShare", call{params: share})
	k.send(400, "deleteZone", call{params: zone})
	k.send(204, "deleteShare", call{params: share})
	k.send(404, "showShare", call{params: share})
}

// transfers offers the zone to the other project, which accepts it and offers it back.
func (k *session) transfers(zone map[string]string, project string) {
	other, _ := k.Token(k.t, "other", project, "member")
	request := k.send(201, "createTransferRequest", call{params: zone, example: "one"})
	k.send(409, "createTransferRequest", call{params: zone, example: "one"})
	k.send(200, "updateTransferRequest", call{params: id(request), example: "description"})
	k.send(403, "showTransferRequest", call{params: id(request), as: other})
	k.send(204, "deleteTransferRequest", call{params: id(request)})
	request = k.send(201, "createTransferRequest", call{params: zone, example: "any"})
	k.send(200, "showTransferRequest", call{params: id(request)})
	k.send(200, "showTransferRequest", call{params: id(request), as: other})
	take := func(b map[string]any) {
		b["key"], b["zone_transfer_request_id"] = request["key"], request["id"]
	}
	k.send(403, "createTransferAccept", call{as: other, example: "accept", change: func(b map[string]any) {
		b["zone_transfer_request_id"] = request["id"]
	}})
	accept := k.send(201, "createTransferAccept", call{as: other, example: "accept", change: take})
	k.send(200, "showTransferAccept", call{as: other, params: id(accept)})
	k.send(200, "listTransferAccepts", call{headers: map[string]string{"X-Auth-All-Projects": "true"}})
	k.send(404, "showZone", call{params: zone})
	request = k.send(201, "createTransferRequest", call{as: other, params: zone})
	k.send(201, "createTransferAccept", call{example: "accept", change: take})
	k.send(200, "listTransferRequests",
		call{query: "?status=COMPLETE", headers: map[string]string{"X-Auth-All-Projects": "true"}})
}

func (k *session) rules() {
	for _, r := range []struct{ one, create, update, query string }{
		{"TLD", "org", "description", "?name=o*&description=*"},
		{"Blacklist", "pattern", "pattern", "?sort_key=pattern"},
		{"TSIGKey", "key", "secret", "?algorithm=hmac-sha256&scope=POOL"},
	} {
		made := k.send(201, "create"+r.one, call{example: r.create})
		k.send(409, "create"+r.one, call{example: r.create})
		k.send(200, "list"+r.one+"s", call{query: r.query})
		k.send(200, "show"+r.one, call{params: id(made)})
		k.send(200, "update"+r.one, call{params: id(made), example: r.update})
		k.send(204, "delete"+r.one, call{params: id(made)})
		k.send(404, "show"+r.one, call{params: id(made)})
	}
}

func (k *session) service(zone map[string]string) {
	own := map[string]string{"project_id": str(k.send(200, "showZone", call{params: zone}), "project_id")}
	k.send(200, "showLimits", call{})
	k.send(200, "showOwnQuotas", call{})
	k.send(200, "showQuotas", call{params: own})
	k.send(403, "showQuotas", call{params: map[string]string{"project_id": "another"}})
	k.send(200, "updateQuotas", call{params: own, example: "zones"})
	k.send(200, "updateQuotas", call{params: own, example: "zones", change: func(b map[string]any) { b["zones"] = 1 }})
	k.send(413, "createZone", call{example: "short", change: func(b map[string]any) { b["name"] = "more.test." }})
	k.send(204, "deleteQuotas", call{params: own})
	pools := k.send(200, "listPools", call{query: "?name=default"})
	k.send(200, "showPool", call{params: map[string]string{"id": str(pools, "pools", "0", "id")}})
	k.send(400, "deletePool", call{params: map[string]string{"id": str(pools, "pools", "0", "id")}})
	pool := map[string]string{"id": str(k.send(201, "createPool", call{example: "pool"}), "id")}
	k.send(409, "createPool", call{example: "pool"})
	k.send(202, "movePool", call{params: zone, example: "default",
		change: func(b map[string]any) { b["pool_id"] = pool["id"] }})
	k.send(400, "deletePool", call{params: pool})
	k.send(202, "updatePool", call{params: pool, example: "description"})
	k.send(202, "movePool", call{params: zone, example: "default"})
	k.send(204, "deletePool", call{params: pool})
	services := k.send(200, "listServiceStatuses", call{query: "?status=UP"})
	k.send(200, "showServiceStatus", call{params: map[string]string{"id": str(services, "service_statuses", "0", "id")}})
	k.send(200, "listFloatingIPs", call{})
	address := map[string]string{"id": "RegionOne:" + someID}
	k.send(404, "showFloatingIP", call{params: address})
	k.send(404, "updateFloatingIP", call{params: address, example: "name"})
}

// refusals causes the errors that every part of the API has.
func (k *session) refusals(zone map[string]string) {
	reader, _ := k.Token(k.t, "reader", "admin", "reader")
	k.send(401, "listZones", call{as: "nobody"})
	k.send(403, "createZone", call{as: reader, example: "short"})
	k.send(403, "listZones", call{as: reader, headers: map[string]string{"X-Auth-All-Projects": "true"}})
	k.send(404, "showZone", call{})
	k.send(406, "showZone", call{params: zone, headers: map[string]string{"Accept": "text/html"}})
	k.send(400, "showZone", call{params: map[string]string{"zone_id": "nonsense"}, bad: true})
	k.send(415, "updateZone", call{params: zone, example: "email", bad: true,
		headers: map[string]string{"Content-Type": "text/plain"}})
	k.send(400, "createZone", call{example: "short", bad: true, change: func(b map[string]any) { b["colour"] = "red" }})
	k.send(400, "createZone", call{example: "short", bad: true, change: func(b map[string]any) { b["ttl"] = -1 }})
	k.send(400, "createZone", call{example: "short", change: func(b map[string]any) { b["name"] = "no-final-dot" }})
	long := strings.Repeat("x", 2<<20)
	k.send(413, "createZone", call{example: "short", bad: true,
		change: func(b map[string]any) { b["description"] = long }})
	k.send(413, "createProject", call{example: "project", bad: true,
		change: func(b map[string]any) { b["description"] = long }})
	k.send(413, "login", call{as: "nobody", example: "password", bad: true,
		change: func(b map[string]any) { b["padding"] = long }})
	k.send(503, "createZone", call{example: "short", gone: true,
		change: func(b map[string]any) { b["name"] = "gone.test." }})
	k.send(400, "applyChanges", call{params: zone, example: "batch", bad: true, change: func(b map[string]any) {
		b["changes"] = []any{map[string]any{"action": "destroy", "name": "www.example.org.", "type": "A"}}
	}})
}

// strange sends a query that cannot be read, and a header that only an administrator may send, to every route without
// parameters. The document must have each status of the replies.
func (k *session) strange() {
	reader, _ := k.Token(k.t, "strange", "admin", "reader")
	for id, op := range k.ops {
		needs := id == "showSession" || id == "searchPowerDNS" // parameters in the header or the query
		events := strings.HasSuffix(op.path, "/events")        // the reply does not end
		if op.method != http.MethodGet || strings.Contains(op.path, "{") || needs || events {
			continue
		}
		k.send(anyStatus, id, call{query: "?a=%zz"})
		k.send(anyStatus, id, call{as: reader, headers: map[string]string{"X-Auth-All-Projects": "true"}})
	}
}

// guesses sends wrong passwords until the server throttles the login.
func (k *session) guesses() {
	for range 100 {
		k.send(anyStatus, "login", call{as: "nobody", example: "password"})
		if k.received["login 429"] {
			return
		}
	}
	k.t.Error("a hundred wrong passwords, and no reply asks the client to wait")
}

func (k *session) leave(zone map[string]string) {
	k.send(202, "deleteZone", call{params: zone, headers: map[string]string{"X-Designate-Hard-Delete": "true"}})
	k.send(404, "deleteZone", call{params: zone})
}

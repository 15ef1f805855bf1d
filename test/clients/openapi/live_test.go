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

// TestLive walks through the whole API. Every operation is asked for, every example of a body is sent, and every reply
// of success that the document promises is seen.
func TestLive(t *testing.T) {
	k := newTalk(t)
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
	k.refusals(zone)
	k.guesses()
	k.leave(zone)
	for name, op := range k.ops {
		for status := range op.Responses.Map() {
			n, err := strconv.Atoi(status)
			if err != nil {
				t.Fatal(err)
			}
			if n < 400 && !k.heard[name+" "+status] {
				t.Errorf("%s was never answered with %d", name, n)
			}
		}
		if op.RequestBody == nil || name == "updateFloatingIP" { // which finds nothing, whatever is said
			continue
		}
		for _, content := range op.RequestBody.Value.Content {
			for example := range content.Examples {
				if !k.said[name+" "+example] {
					t.Errorf("the example %q of %s was never taken", example, name)
				}
			}
		}
	}
}

func (k *talk) operation() {
	for _, name := range []string{"listVersions", "healthz", "readyz", "openapi", "showIdentityVersion"} {
		k.say(200, name, turn{as: "nobody"})
	}
	tag := ""
	k.say(200, "openapi", turn{check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "openapi", turn{headers: map[string]string{"If-None-Match": tag}})
	k.say(200, "showVersion", turn{})
	k.say(200, "metrics", turn{})
	k.say(200, "backup", turn{})
	k.say(200, "scrub", turn{})
}

// accounts manages a project with its user and tokens, logs in by every method, and returns the project's id.
func (k *talk) accounts() string {
	p := k.say(201, "createProject", turn{example: "project"})
	project := str(p, "project", "id")
	k.say(409, "createProject", turn{example: "project"})
	user := k.say(201, "createUser", turn{example: "user"})
	short := k.say(201, "createToken", turn{example: "short"})
	k.say(201, "createToken", turn{example: "long"})
	k.say(201, "createToken", turn{example: "app"})
	for _, name := range []string{"listProjects", "listUsers", "listTokens", "listIdentityProjects", "listOwnProjects", "showCatalog"} {
		k.say(200, name, turn{})
	}
	k.say(200, "listOwnProjects", turn{query: "?name=web"})
	k.say(200, "showIdentityProject", turn{params: map[string]string{"id": project}})
	k.say(404, "showIdentityProject", turn{})
	k.logins(short)
	userID := map[string]string{"id": str(user, "user", "id")}
	k.say(200, "setPassword", turn{params: userID, example: "password"})
	k.say(401, "login", turn{as: "nobody", example: "password"})
	k.say(204, "deleteUser", turn{params: userID})
	k.say(404, "deleteUser", turn{params: userID})
	k.say(204, "revokeToken", turn{params: map[string]string{"id": str(short, "token", "id")}})
	k.say(400, "createToken", turn{example: "short", bad: true, change: func(b map[string]any) { b["role"] = "king" }})
	spare := k.say(201, "createProject", turn{example: "project", change: func(b map[string]any) { b["name"] = "spare" }})
	k.say(409, "deleteProject", turn{params: map[string]string{"id": project}})
	k.say(204, "deleteProject", turn{params: map[string]string{"id": str(spare, "project", "id")}})
	return project
}

func (k *talk) logins(token map[string]any) {
	session := ""
	note := func(r *http.Response) { session = r.Header.Get("X-Subject-Token") }
	part := func(b map[string]any, method string) map[string]any {
		return at(b, "auth", "identity", method).(map[string]any)
	}
	k.say(201, "login", turn{as: "nobody", example: "application_credential", query: "?nocatalog", change: func(b map[string]any) {
		part(b, "application_credential")["id"] = str(token, "token", "id")
		part(b, "application_credential")["secret"] = str(token, "token", "token")
	}})
	k.say(201, "login", turn{as: "nobody", example: "token", change: func(b map[string]any) {
		part(b, "token")["id"] = str(token, "token", "token")
	}})
	k.say(400, "login", turn{as: "nobody", bad: true, example: "token", change: func(b map[string]any) { delete(b, "auth") }})
	k.say(201, "login", turn{as: "nobody", example: "password", check: note})
	subject := map[string]string{"X-Subject-Token": session}
	k.say(200, "listZones", turn{as: session})
	k.say(200, "showSession", turn{as: session, headers: subject})
	k.say(200, "showSession", turn{headers: map[string]string{"X-Subject-Token": k.Admin}, query: "?nocatalog"})
	k.say(403, "showSession", turn{as: session, headers: map[string]string{"X-Subject-Token": k.Admin}})
	k.say(403, "listTokens", turn{as: session})
	k.say(403, "logout", turn{headers: map[string]string{"X-Subject-Token": k.Admin}})
	k.say(204, "logout", turn{as: session, headers: subject})
	k.say(404, "logout", turn{headers: subject})
	k.say(401, "listZones", turn{as: session})
}

// zones makes, changes and lists zones, and returns the path parameters of one.
func (k *talk) zones() map[string]string {
	z := k.say(201, "createZone", turn{example: "short"})
	k.say(201, "createZone", turn{example: "long"})
	k.say(409, "createZone", turn{example: "short"})
	second := k.say(202, "createZone", turn{example: "secondary"})
	k.say(202, "transferZone", turn{params: map[string]string{"zone_id": str(second, "id")}})
	k.say(202, "deleteZone", turn{params: map[string]string{"zone_id": str(second, "id")}})
	zone := map[string]string{"zone_id": str(z, "id")}
	tag := ""
	k.say(200, "showZone", turn{params: zone, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "showZone", turn{params: zone, headers: map[string]string{"If-None-Match": tag}})
	k.say(200, "updateZone", turn{params: zone, example: "email", headers: map[string]string{"If-Match": tag}})
	k.say(412, "updateZone", turn{params: zone, example: "description", headers: map[string]string{"If-Match": tag}})
	k.say(200, "updateZone", turn{params: zone, example: "description"})
	k.say(200, "listNameservers", turn{params: zone})
	k.say(200, "listZones", turn{query: "?limit=1&sort_key=name&sort_dir=desc"})
	k.say(200, "listZones", turn{query: "?limit=max&marker=" + zone["zone_id"]})
	k.say(200, "listZones", turn{query: "?name=*.org.&email=*&type=PRIMARY&status=ACTIVE&ttl=1800&description=*"})
	k.say(200, "listZones", turn{headers: map[string]string{"OpenStack-DNS-Hide-Counts": "true", "X-Auth-All-Projects": "true"}})
	k.say(400, "listZones", turn{query: "?sort_key=colour", bad: true})
	k.say(400, "listZones", turn{query: "?limit=none", bad: true})
	return zone
}

func (k *talk) recordSets(zone map[string]string) {
	var sets []map[string]any
	for _, example := range []string{"a", "mx", "txt", "unknown"} {
		sets = append(sets, k.say(201, "createRecordSet", turn{params: zone, example: example}))
	}
	k.say(409, "createRecordSet", turn{params: zone, example: "a"})
	k.say(400, "createRecordSet", turn{params: zone, example: "a", change: func(b map[string]any) { b["records"] = []string{"192.0.2.300"} }})
	www := map[string]string{"zone_id": zone["zone_id"], "recordset_id": str(sets[0], "id")}
	tag := ""
	k.say(200, "showRecordSet", turn{params: www, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "showRecordSet", turn{params: www, headers: map[string]string{"If-None-Match": tag}})
	k.say(301, "findRecordSet", turn{params: www})
	k.say(200, "updateRecordSet", turn{params: www, example: "records"})
	k.say(412, "updateRecordSet", turn{params: www, example: "ttl", headers: map[string]string{"If-Match": tag}})
	k.say(200, "updateRecordSet", turn{params: www, example: "ttl"})
	k.say(200, "listRecordSets", turn{params: zone, query: "?sort_key=records&limit=2"})
	k.say(200, "listRecordSets", turn{params: zone, query: "?name=www.example.org.&type=A&status=ACTIVE&data=192.*"})
	k.say(200, "listAllRecordSets", turn{query: "?description=mail&ttl=60"})
	k.say(200, "listAllRecordSets", turn{query: "?sort_key=ttl"})
	mx := map[string]string{"zone_id": zone["zone_id"], "recordset_id": str(sets[1], "id")}
	k.aliases(zone)
	k.say(202, "deleteRecordSet", turn{params: mx})
	k.say(404, "deleteRecordSet", turn{params: mx})
}

func (k *talk) aliases(zone map[string]string) {
	set := k.say(202, "createRecordSet", turn{params: zone, example: "alias"})
	of := map[string]string{"zone_id": zone["zone_id"], "recordset_id": str(set, "id")}
	if k.say(200, "showRecordSet", turn{params: of})["alias"] == nil {
		k.t.Error("an ALIAS is shown without what is known of it")
	}
	k.say(202, "updateRecordSet", turn{params: of, example: "alias"})
	k.say(202, "flatten", turn{params: of})
	k.say(429, "flatten", turn{params: of})
	k.say(200, "listRecordSets", turn{params: zone, query: "?status=PENDING"})
	k.say(200, "listV1Records", turn{params: zone})
	k.say(202, "deleteRecordSet", turn{params: of})
}

func (k *talk) history(zone map[string]string) {
	first := k.say(200, "showZone", turn{params: zone})["serial"].(float64)
	changed := k.say(200, "applyChanges", turn{params: zone, example: "batch"})
	k.say(404, "applyChanges", turn{params: zone, example: "batch", change: func(b map[string]any) {
		b["changes"] = []any{map[string]any{"action": "delete", "name": "none.example.org.", "type": "A"}}
	}})
	ttl := k.say(200, "showZone", turn{params: zone})["ttl"].(float64)
	for _, ttl := range []float64{ttl + 1, ttl} {
		k.say(200, "updateZone", turn{params: zone, example: "description", change: func(b map[string]any) { b["ttl"] = ttl }})
	}
	k.say(200, "listHistory", turn{params: zone})
	page := k.say(200, "listHistory", turn{params: zone, query: "?limit=2"})
	k.say(200, "listHistory", turn{params: zone, query: "?limit=2&marker=" + str(page, "history", "1", "id")})
	last := at(changed, "zone", "serial").(float64)
	number := func(f float64) string { return strconv.FormatUint(uint64(f), 10) }
	diff := k.say(200, "showDiff", turn{params: zone, query: "?from=" + number(first) + "&to=" + number(last)})
	if len(diff["recordsets"].([]any)) < 3 {
		k.t.Errorf("diff of a batch: %v", diff)
	}
	k.say(409, "showDiff", turn{params: zone, query: "?from=1&to=" + number(last)})
	k.say(200, "rollback", turn{params: zone, example: "serial", change: func(b map[string]any) { b["serial"] = first }})
	k.say(409, "rollback", turn{params: zone, example: "serial", change: func(b map[string]any) { b["serial"] = 7 }})
}

func (k *talk) tasks(zone map[string]string) {
	export := id(k.say(202, "createExport", turn{params: zone}))
	k.say(200, "listExports", turn{query: "?status=COMPLETE&zone_id=" + zone["zone_id"]})
	k.say(200, "showExport", turn{params: export})
	k.say(200, "fetchExport", turn{params: export})
	k.say(204, "deleteExport", turn{params: export})
	k.say(404, "showExport", turn{params: export})
	file := k.waitImport(k.say(202, "createImport", turn{example: "file", media: "text/dns"}))
	k.waitImport(k.say(202, "createImport", turn{example: "file", media: "text/dns", query: "?replace=true"}))
	k.waitImport(k.say(202, "createImport", turn{example: "json"}))
	k.say(200, "listImports", turn{query: "?sort_key=status"})
	k.say(204, "deleteImport", turn{params: id(file)})
	imported := map[string]string{"zone_id": str(file, "zone_id")}
	k.say(400, "transferZone", turn{params: imported})
	k.say(400, "movePool", turn{params: imported})
	k.say(204, "abandonZone", turn{params: imported})
}

func (k *talk) waitImport(task map[string]any) map[string]any {
	for end := time.Now().Add(30 * time.Second); task["status"] == "PENDING"; {
		task = k.say(200, "showImport", turn{params: id(task)})
		if time.Now().After(end) {
			k.t.Fatal("the import does not end")
		}
	}
	if task["status"] != "COMPLETE" {
		k.t.Fatalf("import: %v", task)
	}
	return task
}

func (k *talk) shares(zone map[string]string) {
	made := k.say(201, "createShare", turn{params: zone, example: "share"})
	share := map[string]string{"zone_id": zone["zone_id"], "id": str(made, "id")}
	k.say(409, "createShare", turn{params: zone, example: "share"})
	k.say(200, "listShares", turn{params: zone, query: "?target_project_id=*"})
	k.say(200, "showShare", turn{params: share})
	k.say(400, "deleteZone", turn{params: zone})
	k.say(204, "deleteShare", turn{params: share})
	k.say(404, "showShare", turn{params: share})
}

// transfers offers the zone to the other project, which takes it and gives it back.
func (k *talk) transfers(zone map[string]string, project string) {
	other, _ := k.Token(k.t, "other", project, "member")
	request := k.say(201, "createTransferRequest", turn{params: zone, example: "one"})
	k.say(409, "createTransferRequest", turn{params: zone, example: "one"})
	k.say(200, "updateTransferRequest", turn{params: id(request), example: "description"})
	k.say(404, "showTransferRequest", turn{params: id(request), as: other})
	k.say(204, "deleteTransferRequest", turn{params: id(request)})
	request = k.say(201, "createTransferRequest", turn{params: zone, example: "any"})
	k.say(200, "showTransferRequest", turn{params: id(request)})
	k.say(200, "showTransferRequest", turn{params: id(request), as: other})
	take := func(b map[string]any) {
		b["key"], b["zone_transfer_request_id"] = request["key"], request["id"]
	}
	k.say(403, "createTransferAccept", turn{as: other, example: "accept", change: func(b map[string]any) {
		b["zone_transfer_request_id"] = request["id"]
	}})
	accept := k.say(201, "createTransferAccept", turn{as: other, example: "accept", change: take})
	k.say(200, "showTransferAccept", turn{as: other, params: id(accept)})
	k.say(200, "listTransferAccepts", turn{as: other})
	k.say(404, "showZone", turn{params: zone})
	request = k.say(201, "createTransferRequest", turn{as: other, params: zone})
	k.say(201, "createTransferAccept", turn{example: "accept", change: take})
	k.say(200, "listTransferRequests", turn{query: "?status=COMPLETE", headers: map[string]string{"X-Auth-All-Projects": "true"}})
}

func (k *talk) rules() {
	for _, r := range []struct{ one, create, update, query string }{
		{"TLD", "org", "description", "?name=o*&description=*"},
		{"Blacklist", "pattern", "pattern", "?sort_key=pattern"},
		{"TSIGKey", "key", "secret", "?algorithm=hmac-sha256&scope=POOL"},
	} {
		made := k.say(201, "create"+r.one, turn{example: r.create})
		k.say(409, "create"+r.one, turn{example: r.create})
		k.say(200, "list"+r.one+"s", turn{query: r.query})
		k.say(200, "show"+r.one, turn{params: id(made)})
		k.say(200, "update"+r.one, turn{params: id(made), example: r.update})
		k.say(204, "delete"+r.one, turn{params: id(made)})
		k.say(404, "show"+r.one, turn{params: id(made)})
	}
}

func (k *talk) service(zone map[string]string) {
	own := map[string]string{"project_id": str(k.say(200, "showZone", turn{params: zone}), "project_id")}
	k.say(200, "showLimits", turn{})
	k.say(200, "showOwnQuotas", turn{})
	k.say(200, "showQuotas", turn{params: own})
	k.say(403, "showQuotas", turn{params: map[string]string{"project_id": "another"}})
	k.say(200, "updateQuotas", turn{params: own, example: "zones"})
	k.say(200, "updateQuotas", turn{params: own, example: "zones", change: func(b map[string]any) { b["zones"] = 1 }})
	k.say(413, "createZone", turn{example: "short", change: func(b map[string]any) { b["name"] = "more.test." }})
	k.say(204, "deleteQuotas", turn{params: own})
	pools := k.say(200, "listPools", turn{query: "?name=default"})
	k.say(200, "showPool", turn{params: map[string]string{"id": str(pools, "pools", "0", "id")}})
	services := k.say(200, "listServiceStatuses", turn{query: "?status=UP"})
	k.say(200, "showServiceStatus", turn{params: map[string]string{"id": str(services, "service_statuses", "0", "id")}})
	k.say(200, "listFloatingIPs", turn{})
	address := map[string]string{"id": "RegionOne:" + someID}
	k.say(404, "showFloatingIP", turn{params: address})
	k.say(404, "updateFloatingIP", turn{params: address, example: "name"})
}

// refusals are the errors that every part of the API has.
func (k *talk) refusals(zone map[string]string) {
	reader, _ := k.Token(k.t, "reader", "admin", "reader")
	k.say(401, "listZones", turn{as: "nobody"})
	k.say(403, "createZone", turn{as: reader, example: "short"})
	k.say(403, "listZones", turn{as: reader, headers: map[string]string{"X-Auth-All-Projects": "true"}})
	k.say(404, "showZone", turn{})
	k.say(400, "showZone", turn{params: map[string]string{"zone_id": "nonsense"}, bad: true})
	k.say(415, "updateZone", turn{params: zone, example: "email", bad: true, headers: map[string]string{"Content-Type": "text/plain"}})
	k.say(400, "createZone", turn{example: "short", bad: true, change: func(b map[string]any) { b["colour"] = "red" }})
	k.say(400, "createZone", turn{example: "short", bad: true, change: func(b map[string]any) { b["ttl"] = -1 }})
	k.say(400, "createZone", turn{example: "short", change: func(b map[string]any) { b["name"] = "no-final-dot" }})
	long := strings.Repeat("x", 2<<20)
	k.say(413, "createZone", turn{example: "short", bad: true, change: func(b map[string]any) { b["description"] = long }})
	k.say(413, "createProject", turn{example: "project", bad: true, change: func(b map[string]any) { b["description"] = long }})
	k.say(413, "login", turn{as: "nobody", example: "password", bad: true, change: func(b map[string]any) { b["padding"] = long }})
	k.say(503, "createZone", turn{example: "short", gone: true, change: func(b map[string]any) { b["name"] = "gone.test." }})
	k.say(400, "applyChanges", turn{params: zone, example: "batch", bad: true, change: func(b map[string]any) {
		b["changes"] = []any{map[string]any{"action": "destroy", "name": "www.example.org.", "type": "A"}}
	}})
}

// guesses fails to log in until the server wants it to wait.
func (k *talk) guesses() {
	for range 100 {
		k.say(anyStatus, "login", turn{as: "nobody", example: "password"})
		if k.heard["login 429"] {
			return
		}
	}
	k.t.Error("a hundred wrong passwords, and none was told to wait")
}

func (k *talk) leave(zone map[string]string) {
	k.say(202, "deleteZone", turn{params: zone, headers: map[string]string{"X-Designate-Hard-Delete": "true"}})
	k.say(404, "deleteZone", turn{params: zone})
}

package openapi_test

import (
	"net/http"
	"testing"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/access/accesstest"
)

// appToken creates a token of an application instance.
func (k *session) appToken(t *testing.T, app string) string {
	t.Helper()
	text, _, err := k.Access.CreateToken(t.Context(), accesstest.Actor,
		access.TokenSpec{Name: "app " + app, Project: "admin", Role: access.RoleApp, App: app})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// edgeApplication sends the requests of an application for its own rules.
func (k *session) edgeApplication() {
	app := map[string]string{"app": "app1"}
	own, other := k.appToken(k.t, "app1"), k.appToken(k.t, "app2")
	made := k.send(201, "createRule", call{params: app, example: "active"})
	rule := map[string]string{"app": "app1", "rule": str(made, "dnsRuleId")}
	k.send(200, "listOwnRules", call{as: own, params: app})
	k.send(304, "listOwnRules", call{as: own, params: app, headers: map[string]string{"If-None-Match": "*"}})
	k.send(403, "listOwnRules", call{as: other, params: app})
	k.send(401, "listOwnRules", call{as: "nobody", params: app})
	tag := ""
	k.send(200, "showOwnRule", call{as: own, params: rule, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showOwnRule", call{as: own, params: rule, headers: map[string]string{"If-None-Match": tag}})
	k.send(404, "showOwnRule", call{as: own, params: app})
	k.send(200, "updateOwnRule", call{as: own, params: rule, example: "off", headers: map[string]string{"If-Match": tag}})
	k.send(412, "updateOwnRule", call{as: own, params: rule, example: "on", headers: map[string]string{"If-Match": tag}})
	k.send(200, "updateOwnRule", call{as: own, params: rule, example: "on"})
	k.send(404, "updateOwnRule", call{as: own, params: app, example: "on"})
	k.send(400, "updateOwnRule", call{as: own, params: rule, example: "on", bad: true,
		change: func(b map[string]any) { b["state"] = "UNKNOWN_VALUE" }})
	k.send(400, "updateOwnRule", call{as: own, params: rule, example: "on", bad: true,
		change: func(b map[string]any) { b["ttl"] = "?" }})
	k.send(400, "updateOwnRule", call{as: own, params: rule, example: "on",
		change: func(b map[string]any) { b["ipAddressType"] = "IP_V6" }})
	k.send(415, "updateOwnRule", call{as: own, params: rule, example: "on", bad: true,
		headers: map[string]string{"Content-Type": "text/plain"}})
	k.send(200, "watchOwnRules", call{as: own, params: app, headers: map[string]string{"Last-Event-ID": "1"}})
	k.send(400, "watchOwnRules", call{as: own, params: app, bad: true, headers: map[string]string{"Last-Event-ID": "x"}})

	mine := func(b map[string]any) { b["appInstanceId"] = "app1" }
	k.send(400, "subscribe", call{as: own, params: app, example: "callback"})
	sub := k.send(201, "subscribe", call{as: own, params: app, example: "callback", change: mine})
	k.send(201, "subscribe", call{params: map[string]string{"app": someID}, example: "callback"})
	k.send(200, "listSubscriptions", call{as: own, params: app})
	href := str(sub, "_links", "self", "href")
	one := map[string]string{"app": "app1", "subscription": href[len(href)-36:]}
	k.send(200, "showSubscription", call{as: own, params: one})
	k.send(204, "unsubscribe", call{as: own, params: one})
	k.send(404, "showSubscription", call{as: own, params: one})
}

// edgePlatform sends the requests of a platform for the rules of applications.
func (k *session) edgePlatform() {
	platform, _ := k.Token(k.t, "mepm", "admin", access.RolePlatform)
	app := map[string]string{"app": "app3"}
	k.send(200, "putRules", call{as: platform, params: app, example: "list", change: nil})
	rule := map[string]string{"app": "app3", "rule": "rule1"}
	tag := ""
	k.send(200, "showRule", call{as: platform, params: rule, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showRule", call{as: platform, params: rule, headers: map[string]string{"If-None-Match": tag}})
	k.send(200, "updateRule", call{as: platform, params: rule, example: "state"})
	k.send(412, "updateRule", call{as: platform, params: rule, example: "whole",
		headers: map[string]string{"If-Match": tag}})
	k.send(200, "updateRule", call{as: platform, params: rule, example: "whole"})
	k.send(409, "updateRule", call{as: platform, params: rule, example: "whole",
		change: func(b map[string]any) { b["state"] = "ACTIVE" }})
	k.send(200, "putRules", call{as: platform, params: app, example: "state"})
	k.send(200, "listRules", call{as: platform, params: app})
	k.send(304, "listRules", call{as: platform, params: app, headers: map[string]string{"If-None-Match": "*"}})
	k.send(201, "createRule", call{as: platform, params: map[string]string{"app": "app4"}, example: "wildcard"})
	k.send(409, "createRule", call{as: platform, params: map[string]string{"app": "app4"}, example: "wildcard"})
	k.send(400, "createRule", call{as: platform, params: app, example: "active", bad: true,
		change: func(b map[string]any) { delete(b, "domainName") }})
	k.send(200, "listApplications", call{as: platform, query: "?limit=1"})
	k.send(200, "listApplications", call{as: platform, query: "?limit=5&marker=app1"})
	k.send(400, "listApplications", call{as: platform, query: "?limit=0", bad: true})
	k.send(401, "listApplications", call{as: "nobody"})
	k.send(403, "listApplications", call{as: k.appToken(k.t, "app3")})
	k.send(200, "watchRules", call{as: platform})
	k.send(204, "deleteRule", call{as: platform, params: rule})
	k.send(404, "deleteRule", call{as: platform, params: rule})
	k.send(204, "terminateApplication", call{as: platform, params: app})
	k.send(404, "terminateApplication", call{as: platform, params: app})
	k.send(503, "createRule", call{as: platform, params: app, example: "active", gone: true})
}

// edgeGallery sends the requests of EdgeGallery's managers.
func (k *session) edgeGallery() {
	app := map[string]string{"app": "app1"}
	made := k.send(200, "createRuleEG", call{params: map[string]string{"app": "app5"}, example: "rule"})
	rule := map[string]string{"app": "app5", "rule": str(made, "dnsRuleId")}
	k.send(422, "createRuleEG", call{params: map[string]string{"app": "app5"}, example: "rule"})
	k.send(200, "listRulesEG", call{params: app})
	k.send(304, "listRulesEG", call{params: app, headers: map[string]string{"If-None-Match": "*"}})
	tag := ""
	k.send(200, "showRuleEG", call{params: rule, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showRuleEG", call{params: rule, headers: map[string]string{"If-None-Match": tag}})
	k.send(200, "updateRuleEG", call{params: rule, example: "off"})
	k.send(200, "deleteRuleEG", call{params: rule})
	k.send(404, "deleteRuleEG", call{params: rule})

	k.send(200, "terminateApplicationEG", call{params: app})
	k.task(k.send(200, "createConfiguration", call{params: app, example: "rules"}))
	k.send(400, "createConfiguration", call{params: app, example: "rules"})
	k.send(400, "createConfiguration",
		call{params: app, example: "rules", bad: true, change: func(b map[string]any) { b["appName"] = "" }})
	k.send(200, "showConfiguration", call{params: app})
	k.task(k.send(200, "updateConfiguration", call{params: app, example: "fewer"}))
	k.send(200, "listCapabilities", call{})
	k.send(200, "showCapability", call{params: map[string]string{"capability": "dns"}})
	k.send(404, "showCapability", call{})
	k.task(k.send(200, "deleteConfiguration", call{params: app}))
	k.send(404, "deleteConfiguration", call{params: app})
	k.send(404, "showTask", call{})
}

// task waits until the task of a reply has succeeded.
func (k *session) task(task map[string]any) {
	k.t.Helper()
	for range 10_000 {
		if task["configResult"] != "PROCESSING" {
			break
		}
		task = k.send(200, "showTask", call{params: map[string]string{"task": str(task, "taskId")}})
	}
	if task["configResult"] != "SUCCESS" {
		k.t.Errorf("task %v", task)
	}
}

// serverManagement sends the requests of a mepserver.
func (k *session) serverManagement() {
	k.send(200, "health", call{as: "nobody"})
	k.send(200, "putRecords", call{example: "batch"})
	for _, example := range []string{"one", "list"} {
		k.send(200, "createRecords", call{example: example, query: "?zone=."})
		k.send(409, "createRecords", call{example: example, query: "?zone=."})
	}
	k.send(400, "createRecords", call{example: "one", bad: true, change: func(b map[string]any) { b["type"] = "CNAME" }})
	k.send(200, "listRecords", call{})
	k.send(200, "listRecords", call{query: "?zone=."})
	k.send(200, "listRecordZones", call{})
	edge := map[string]string{"fqdn": "edge.example.com.", "type": "A"}
	k.send(200, "listNameRecords", call{params: edge})
	k.send(200, "showRecord", call{params: edge})
	k.send(200, "replaceRecord", call{params: edge, example: "ttl", query: "?zone=."})
	k.send(200, "deleteRecord", call{params: edge, query: "?zone=."})
	k.send(404, "deleteRecord", call{params: edge, query: "?zone=."})
	k.send(404, "showRecord", call{params: edge})
	k.send(404, "replaceRecord", call{params: edge, example: "ttl", query: "?zone=."})
	k.send(403, "listRecords", call{as: k.appToken(k.t, "app6")})
}

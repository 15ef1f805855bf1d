package openapi_test

import (
	"net/http"
	"testing"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/access/accesstest"
)

// appToken makes a token of an application instance.
func (k *talk) appToken(t *testing.T, app string) string {
	t.Helper()
	text, _, err := k.Access.CreateToken(t.Context(), accesstest.Actor, access.TokenSpec{Name: "app " + app, Project: "admin", Role: access.RoleApp, App: app})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// edgeApplication is what an application does with its own rules.
func (k *talk) edgeApplication() {
	app := map[string]string{"app": "app1"}
	own, other := k.appToken(k.t, "app1"), k.appToken(k.t, "app2")
	made := k.say(201, "createRule", turn{params: app, example: "active"})
	rule := map[string]string{"app": "app1", "rule": str(made, "dnsRuleId")}
	k.say(200, "listOwnRules", turn{as: own, params: app})
	k.say(304, "listOwnRules", turn{as: own, params: app, headers: map[string]string{"If-None-Match": "*"}})
	k.say(403, "listOwnRules", turn{as: other, params: app})
	k.say(401, "listOwnRules", turn{as: "nobody", params: app})
	tag := ""
	k.say(200, "showOwnRule", turn{as: own, params: rule, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "showOwnRule", turn{as: own, params: rule, headers: map[string]string{"If-None-Match": tag}})
	k.say(404, "showOwnRule", turn{as: own, params: app})
	k.say(200, "updateOwnRule", turn{as: own, params: rule, example: "off", headers: map[string]string{"If-Match": tag}})
	k.say(412, "updateOwnRule", turn{as: own, params: rule, example: "on", headers: map[string]string{"If-Match": tag}})
	k.say(200, "updateOwnRule", turn{as: own, params: rule, example: "on"})
	k.say(404, "updateOwnRule", turn{as: own, params: app, example: "on"})
	k.say(400, "updateOwnRule", turn{as: own, params: rule, example: "on", bad: true, change: func(b map[string]any) { b["state"] = "UNKNOWN_VALUE" }})
	k.say(400, "updateOwnRule", turn{as: own, params: rule, example: "on", bad: true, change: func(b map[string]any) { b["ttl"] = "?" }})
	k.say(400, "updateOwnRule", turn{as: own, params: rule, example: "on", change: func(b map[string]any) { b["ipAddressType"] = "IP_V6" }})
	k.say(415, "updateOwnRule", turn{as: own, params: rule, example: "on", bad: true, headers: map[string]string{"Content-Type": "text/plain"}})
	k.say(200, "watchOwnRules", turn{as: own, params: app, headers: map[string]string{"Last-Event-ID": "1"}})
	k.say(400, "watchOwnRules", turn{as: own, params: app, bad: true, headers: map[string]string{"Last-Event-ID": "x"}})

	mine := func(b map[string]any) { b["appInstanceId"] = "app1" }
	k.say(400, "subscribe", turn{as: own, params: app, example: "callback"})
	sub := k.say(201, "subscribe", turn{as: own, params: app, example: "callback", change: mine})
	k.say(201, "subscribe", turn{params: map[string]string{"app": someID}, example: "callback"})
	k.say(200, "listSubscriptions", turn{as: own, params: app})
	href := str(sub, "_links", "self", "href")
	one := map[string]string{"app": "app1", "subscription": href[len(href)-36:]}
	k.say(200, "showSubscription", turn{as: own, params: one})
	k.say(204, "unsubscribe", turn{as: own, params: one})
	k.say(404, "showSubscription", turn{as: own, params: one})
}

// edgePlatform is what a platform does with the rules of applications.
func (k *talk) edgePlatform() {
	platform, _ := k.Token(k.t, "mepm", "admin", access.RolePlatform)
	app := map[string]string{"app": "app3"}
	k.say(200, "putRules", turn{as: platform, params: app, example: "list", change: nil})
	rule := map[string]string{"app": "app3", "rule": "rule1"}
	tag := ""
	k.say(200, "showRule", turn{as: platform, params: rule, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "showRule", turn{as: platform, params: rule, headers: map[string]string{"If-None-Match": tag}})
	k.say(200, "updateRule", turn{as: platform, params: rule, example: "state"})
	k.say(412, "updateRule", turn{as: platform, params: rule, example: "whole", headers: map[string]string{"If-Match": tag}})
	k.say(200, "updateRule", turn{as: platform, params: rule, example: "whole"})
	k.say(409, "updateRule", turn{as: platform, params: rule, example: "whole", change: func(b map[string]any) { b["state"] = "ACTIVE" }})
	k.say(200, "putRules", turn{as: platform, params: app, example: "state"})
	k.say(200, "listRules", turn{as: platform, params: app})
	k.say(304, "listRules", turn{as: platform, params: app, headers: map[string]string{"If-None-Match": "*"}})
	k.say(201, "createRule", turn{as: platform, params: map[string]string{"app": "app4"}, example: "wildcard"})
	k.say(409, "createRule", turn{as: platform, params: map[string]string{"app": "app4"}, example: "wildcard"})
	k.say(400, "createRule", turn{as: platform, params: app, example: "active", bad: true, change: func(b map[string]any) { delete(b, "domainName") }})
	k.say(200, "listApplications", turn{as: platform, query: "?limit=1"})
	k.say(200, "listApplications", turn{as: platform, query: "?limit=5&marker=app1"})
	k.say(400, "listApplications", turn{as: platform, query: "?limit=0", bad: true})
	k.say(401, "listApplications", turn{as: "nobody"})
	k.say(403, "listApplications", turn{as: k.appToken(k.t, "app3")})
	k.say(200, "watchRules", turn{as: platform})
	k.say(204, "deleteRule", turn{as: platform, params: rule})
	k.say(404, "deleteRule", turn{as: platform, params: rule})
	k.say(204, "terminateApplication", turn{as: platform, params: app})
	k.say(404, "terminateApplication", turn{as: platform, params: app})
	k.say(503, "createRule", turn{as: platform, params: app, example: "active", gone: true})
}

// edgeGallery is what EdgeGallery's own managers do.
func (k *talk) edgeGallery() {
	app := map[string]string{"app": "app1"}
	made := k.say(200, "createRuleEG", turn{params: map[string]string{"app": "app5"}, example: "rule"})
	rule := map[string]string{"app": "app5", "rule": str(made, "dnsRuleId")}
	k.say(422, "createRuleEG", turn{params: map[string]string{"app": "app5"}, example: "rule"})
	k.say(200, "listRulesEG", turn{params: app})
	k.say(304, "listRulesEG", turn{params: app, headers: map[string]string{"If-None-Match": "*"}})
	tag := ""
	k.say(200, "showRuleEG", turn{params: rule, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "showRuleEG", turn{params: rule, headers: map[string]string{"If-None-Match": tag}})
	k.say(200, "updateRuleEG", turn{params: rule, example: "off"})
	k.say(200, "deleteRuleEG", turn{params: rule})
	k.say(404, "deleteRuleEG", turn{params: rule})

	k.say(200, "terminateApplicationEG", turn{params: app})
	k.task(k.say(200, "createConfiguration", turn{params: app, example: "rules"}))
	k.say(400, "createConfiguration", turn{params: app, example: "rules"})
	k.say(400, "createConfiguration", turn{params: app, example: "rules", bad: true, change: func(b map[string]any) { b["appName"] = "" }})
	k.say(200, "showConfiguration", turn{params: app})
	k.task(k.say(200, "updateConfiguration", turn{params: app, example: "fewer"}))
	k.say(200, "listCapabilities", turn{})
	k.say(200, "showCapability", turn{params: map[string]string{"capability": "dns"}})
	k.say(404, "showCapability", turn{})
	k.task(k.say(200, "deleteConfiguration", turn{params: app}))
	k.say(404, "deleteConfiguration", turn{params: app})
	k.say(404, "showTask", turn{})
}

// task waits for the task of a reply to succeed.
func (k *talk) task(task map[string]any) {
	k.t.Helper()
	for range 10_000 {
		if task["configResult"] != "PROCESSING" {
			break
		}
		task = k.say(200, "showTask", turn{params: map[string]string{"task": str(task, "taskId")}})
	}
	if task["configResult"] != "SUCCESS" {
		k.t.Errorf("task %v", task)
	}
}

// serverManagement is what a mepserver does.
func (k *talk) serverManagement() {
	k.say(200, "health", turn{as: "nobody"})
	k.say(200, "putRecords", turn{example: "batch"})
	for _, example := range []string{"one", "list"} {
		k.say(200, "createRecords", turn{example: example, query: "?zone=."})
		k.say(409, "createRecords", turn{example: example, query: "?zone=."})
	}
	k.say(400, "createRecords", turn{example: "one", bad: true, change: func(b map[string]any) { b["type"] = "CNAME" }})
	k.say(200, "listRecords", turn{})
	k.say(200, "listRecords", turn{query: "?zone=."})
	k.say(200, "listRecordZones", turn{})
	edge := map[string]string{"fqdn": "edge.example.com.", "type": "A"}
	k.say(200, "listNameRecords", turn{params: edge})
	k.say(200, "showRecord", turn{params: edge})
	k.say(200, "replaceRecord", turn{params: edge, example: "ttl", query: "?zone=."})
	k.say(200, "deleteRecord", turn{params: edge, query: "?zone=."})
	k.say(404, "deleteRecord", turn{params: edge, query: "?zone=."})
	k.say(404, "showRecord", turn{params: edge})
	k.say(404, "replaceRecord", turn{params: edge, example: "ttl", query: "?zone=."})
	k.say(403, "listRecords", turn{as: k.appToken(k.t, "app6")})
}

package openapi_test

import "net/http"

// explain is what somebody does who wants to know about a name.
func (k *talk) explain() {
	reader, _ := k.Token(k.t, "reader of scans", "admin", "reader")
	scan := func(example string) map[string]string {
		k.t.Helper()
		started := k.say(202, "startScan", turn{example: example})
		x := id(started)
		k.say(200, "watchScan", turn{params: x}) // ends with the scan
		return x
	}
	first := scan("domain")
	scan("name")
	scan("caches")
	k.say(403, "startScan", turn{as: reader, example: "domain"})
	k.say(400, "startScan", turn{example: "domain", bad: true, change: func(b map[string]any) { b["kind"] = "other" }})
	k.say(400, "startScan", turn{example: "domain", change: func(b map[string]any) { b["target"] = "a..b" }})
	k.say(400, "startScan", turn{example: "domain", bad: true, change: func(b map[string]any) { b["types"] = []string{"NOTYPE!"}; b["expect"] = 7 }})
	tag := ""
	k.say(200, "showScan", turn{as: reader, params: first, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "showScan", turn{params: first, headers: map[string]string{"If-None-Match": tag}})
	k.say(404, "showScan", turn{})
	k.say(200, "showScanReport", turn{params: first, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.say(304, "showScanReport", turn{params: first, headers: map[string]string{"If-None-Match": tag}})
	k.say(400, "showScanReport", turn{params: first, query: "?format=pdf", bad: true})
	k.say(404, "showScanReport", turn{})
	k.say(200, "showScanFacts", turn{params: first})
	k.say(304, "showScanFacts", turn{params: first, headers: map[string]string{"If-None-Match": "*"}})
	k.say(404, "showScanFacts", turn{})
	k.say(200, "diffScan", turn{params: first})
	second := scan("domain")
	k.say(200, "diffScan", turn{params: second})
	k.say(200, "diffScan", turn{params: second, query: "?with=" + first["id"]})
	k.say(404, "diffScan", turn{params: second, query: "?with=" + someID})
	k.say(404, "watchScan", turn{})
	k.say(200, "listScans", turn{query: "?target=example.com&kind=scan&limit=1"})
	k.say(400, "listScans", turn{query: "?limit=0", bad: true})
	k.say(400, "listScans", turn{query: "?target=a..b"})
	k.say(200, "listChecks", turn{as: reader})
	k.say(200, "showCheck", turn{params: map[string]string{"id": "DEL04"}})
	k.say(404, "showCheck", turn{params: map[string]string{"id": "XYZ99"}})
	k.say(200, "listResolvers", turn{})
	for range 6 {
		k.say(anyStatus, "startScan", turn{example: "domain"})
	}
	k.say(429, "startScan", turn{example: "domain", check: func(r *http.Response) {
		if r.Header.Get("Retry-After") == "" {
			k.t.Error("429 without Retry-After")
		}
	}})
}

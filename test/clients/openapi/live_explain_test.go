package openapi_test

import "net/http"

// explain sends the requests of a user who scans a name.
func (k *session) explain() {
	reader, _ := k.Token(k.t, "reader of scans", "admin", "reader")
	scan := func(example string) map[string]string {
		k.t.Helper()
		started := k.send(202, "startScan", call{example: example})
		x := id(started)
		k.send(200, "watchScan", call{params: x}) // the stream ends with the scan
		return x
	}
	first := scan("domain")
	scan("name")
	scan("caches")
	scan("service")
	k.send(403, "startScan", call{as: reader, example: "domain"})
	k.send(400, "startScan", call{example: "domain", bad: true, change: func(b map[string]any) { b["kind"] = "other" }})
	k.send(400, "startScan", call{example: "domain", change: func(b map[string]any) { b["target"] = "a..b" }})
	k.send(400, "startScan", call{example: "domain", bad: true,
		change: func(b map[string]any) { b["types"] = []string{"NOTYPE!"}; b["expect"] = 7 }})
	tag := ""
	k.send(200, "showScan", call{as: reader, params: first, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showScan", call{params: first, headers: map[string]string{"If-None-Match": tag}})
	k.send(404, "showScan", call{})
	k.send(200, "showScanReport", call{params: first, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showScanReport", call{params: first, headers: map[string]string{"If-None-Match": tag}})
	k.send(400, "showScanReport", call{params: first, query: "?format=pdf", bad: true})
	k.send(404, "showScanReport", call{})
	k.send(200, "showScanFacts", call{params: first})
	k.send(304, "showScanFacts", call{params: first, headers: map[string]string{"If-None-Match": "*"}})
	k.send(404, "showScanFacts", call{})
	k.send(200, "diffScan", call{params: first})
	second := scan("domain")
	k.send(200, "diffScan", call{params: second})
	k.send(200, "diffScan", call{params: second, query: "?with=" + first["id"]})
	k.send(404, "diffScan", call{params: second, query: "?with=" + someID})
	k.send(404, "watchScan", call{})
	k.send(200, "listScans", call{query: "?target=example.com&kind=scan&limit=1"})
	k.send(400, "listScans", call{query: "?limit=0", bad: true})
	k.send(400, "listScans", call{query: "?target=a..b"})
	k.send(200, "listChecks", call{as: reader})
	k.send(200, "showCheck", call{params: map[string]string{"id": "DEL04"}})
	k.send(404, "showCheck", call{params: map[string]string{"id": "XYZ99"}})
	k.send(200, "listResolvers", call{})
	for range 6 {
		k.send(anyStatus, "startScan", call{example: "domain"})
	}
	k.send(429, "startScan", call{example: "domain", check: func(r *http.Response) {
		if r.Header.Get("Retry-After") == "" {
			k.t.Error("429 without Retry-After")
		}
	}})
}

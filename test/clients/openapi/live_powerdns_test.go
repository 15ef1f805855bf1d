package openapi_test

import "net/http"

// powerDNS uses the API in the form of PowerDNS.
func (k *session) powerDNS() {
	for _, id := range []string{"listPowerDNSVersions", "showPowerDNSVersion", "listPowerDNSServers",
		"showPowerDNSServer", "listPowerDNSConfig", "listPowerDNSStatistics"} {
		k.send(200, id, call{})
	}
	k.send(422, "listPowerDNSStatistics", call{query: "?statistic=none"})
	k.send(200, "flushPowerDNSCache", call{query: "?domain=example.org."})
	zone := k.powerDNSZones()
	k.powerDNSRecords(zone)
	k.powerDNSMetadata(zone)
	k.powerDNSKeys(zone)
	k.send(200, "searchPowerDNS", call{query: "?q=*&max=10&object_type=all"})
	k.send(422, "searchPowerDNS", call{query: "?q=*&object_type=colour", bad: true})
	k.send(204, "deletePowerDNSZone", call{params: zone})
	k.send(404, "deletePowerDNSZone", call{params: zone})
}

// powerDNSZones creates zones and returns the path parameters of one.
func (k *session) powerDNSZones() map[string]string {
	for _, example := range []string{"native", "rrsets", "file", "slave"} {
		k.send(201, "createPowerDNSZone", call{example: example})
	}
	k.send(409, "createPowerDNSZone", call{example: "native"})
	k.send(422, "createPowerDNSZone", call{example: "native", change: func(b map[string]any) { b["name"] = "a.test" }})
	slave := map[string]string{"zone_name": "slave.test."}
	k.send(200, "retrievePowerDNSZone", call{params: slave})
	for _, name := range []string{"records.test.", "file.test.", "slave.test."} {
		k.send(204, "deletePowerDNSZone", call{params: map[string]string{"zone_name": name}})
	}
	zone := map[string]string{"zone_name": "pdns.example.org."}
	k.send(422, "retrievePowerDNSZone", call{params: zone})
	k.send(200, "notifyPowerDNSZone", call{params: zone})
	k.send(200, "rectifyPowerDNSZone", call{params: zone})
	k.send(200, "listPowerDNSZones", call{query: "?zone=pdns.example.org.&dnssec=false"})
	k.send(200, "listPowerDNSZones", call{headers: map[string]string{"X-Auth-All-Projects": "true"}})
	return zone
}

func (k *session) powerDNSRecords(zone map[string]string) {
	tag := ""
	k.send(200, "showPowerDNSZone", call{params: zone, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(304, "showPowerDNSZone", call{params: zone, headers: map[string]string{"If-None-Match": tag}})
	k.send(204, "patchPowerDNSZone", call{params: zone, example: "replace", headers: map[string]string{"If-Match": tag}})
	k.send(412, "patchPowerDNSZone", call{params: zone, example: "delete", headers: map[string]string{"If-Match": tag}})
	for _, example := range []string{"extend", "prune", "delete"} {
		k.send(204, "patchPowerDNSZone", call{params: zone, example: example})
	}
	k.send(422, "patchPowerDNSZone", call{params: zone, example: "replace", bad: true,
		change: func(b map[string]any) { b["rrsets"] = 1 }})
	k.send(200, "showPowerDNSZone", call{params: zone, query: "?rrset_name=pdns.example.org.&rrset_type=NS"})
	k.send(200, "showPowerDNSZone", call{params: zone, query: "?rrsets=false"})
	k.send(204, "updatePowerDNSZone", call{params: zone, example: "account"})
	k.send(204, "updatePowerDNSZone", call{params: zone, example: "content"})
	k.send(200, "exportPowerDNSZone", call{params: zone, check: func(r *http.Response) { tag = r.Header.Get("ETag") }})
	k.send(200, "exportPowerDNSZone", call{params: zone, headers: map[string]string{"Accept": "application/json"}})
	k.send(304, "exportPowerDNSZone", call{params: zone, headers: map[string]string{"If-None-Match": tag}})
}

func (k *session) powerDNSMetadata(zone map[string]string) {
	k.send(201, "addPowerDNSMetadata", call{params: zone, example: "own"})
	k.send(200, "listPowerDNSMetadata", call{params: zone})
	kind := map[string]string{"zone_name": zone["zone_name"], "kind": "X-OWNER"}
	k.send(200, "putPowerDNSMetadata", call{params: kind, example: "own"})
	k.send(200, "showPowerDNSMetadata", call{params: kind})
	k.send(200, "deletePowerDNSMetadata", call{params: kind})
	k.send(422, "deletePowerDNSMetadata", call{params: zone})
}

func (k *session) powerDNSKeys(zone map[string]string) {
	k.send(200, "listPowerDNSSigningKeys", call{params: zone})
	k.send(422, "createPowerDNSSigningKey", call{params: zone})
	k.send(404, "showPowerDNSSigningKey", call{params: zone})
	key := map[string]string{"id": "transfer."}
	k.send(201, "createPowerDNSKey", call{example: "key"})
	k.send(409, "createPowerDNSKey", call{example: "key"})
	k.send(200, "listPowerDNSKeys", call{})
	k.send(200, "showPowerDNSKey", call{params: key})
	k.send(200, "updatePowerDNSKey", call{params: key, example: "secret"})
	k.send(204, "deletePowerDNSKey", call{params: key})
	k.send(404, "showPowerDNSKey", call{params: key})
}

package openapi_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestKeys sends every key of every body alone and without a value. The server may require more keys or another value,
// but it must know the key. It must not know a key that is not in the document.
func TestKeys(t *testing.T) {
	k := newSession(t)
	zone := map[string]string{"zone_id": str(k.send(202, "createZone", call{example: "short"}), "id")}
	set := k.send(202, "createRecordSet", call{params: zone, example: "a"})
	params := map[string]map[string]string{
		"updateRecordSet":       {"zone_id": zone["zone_id"], "recordset_id": str(set, "id")},
		"updateTransferRequest": id(k.send(201, "createTransferRequest", call{params: zone, example: "any"})),
		"updateBlacklist":       id(k.send(201, "createBlacklist", call{example: "pattern"})),
		"updateTSIGKey":         id(k.send(201, "createTSIGKey", call{example: "key"})),
		"updateTLD":             id(k.send(201, "createTLD", call{example: "org"})),
		"updatePool":            id(k.send(201, "createPool", call{example: "pool"})),
	}
	own := str(k.send(200, "showZone", call{params: zone}), "project_id")
	params["updateQuotas"] = map[string]string{"project_id": own}
	tried := 0
	for name, op := range k.ops {
		if op.RequestBody == nil || name == "login" || ignoresKeys(op) {
			continue
		}
		where := params[name]
		if where == nil {
			where = zone
		}
		schema := op.RequestBody.Value.Content["application/json"].Schema.Value
		keys := []string{"colour"}
		for key := range schema.Properties {
			keys = append(keys, key)
		}
		for _, key := range keys {
			tried++
			if reply := k.sendKey(op, where, key); (key == "colour") != unknownKey(reply) {
				t.Errorf("%s {%q: null}: %s", name, key, reply)
			}
		}
	}
	if tried < 60 {
		t.Errorf("tried only %d keys", tried)
	}
}

// ignoresKeys reports whether an operation is of an API that ignores unknown keys: for edge applications and platforms,
// for external-dns, and for clients of PowerDNS.
func ignoresKeys(op operation) bool {
	return slices.Contains([]string{"mp1", "mm5", "edgegallery", "servermgmt", "externaldns", "powerdns"}, op.Tags[0])
}

func (k *session) sendKey(op operation, params map[string]string, key string) string {
	req := httptest.NewRequest(op.method, fill(op.path, params), strings.NewReader(`{"`+key+`": null}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Auth-Token", k.Admin)
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, req)
	return w.Body.String()
}

func unknownKey(reply string) bool {
	return strings.Contains(reply, "are not valid for") || strings.Contains(reply, "has an unknown key")
}

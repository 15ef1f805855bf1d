package openapi_test

// externalDNS sends the requests of external-dns.
func (k *session) externalDNS() {
	const media = "application/external.dns.webhook+json;version=1"
	reader, _ := k.Token(k.t, "reader of endpoints", "admin", "reader")
	k.send(204, "applyEndpoints", call{example: "create", media: media})
	k.send(204, "applyEndpoints", call{example: "update", media: media})
	k.send(500, "applyEndpoints", call{example: "create", media: media})
	k.send(403, "applyEndpoints", call{as: reader, example: "update", media: media})
	k.send(401, "listEndpoints", call{as: "nobody"})
	k.send(200, "listEndpoints", call{})
	k.send(200, "adjustEndpoints", call{example: "alias", media: media})
}

package registry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// maxEntities limits the nesting of entities. The abuse contact of a registrar is at depth 1.
const maxEntities = 3

// addEntity reads an entity and the entities in it (RFC 9083 §5.1).
func (r *rdapReply) addEntity(e node, depth int) {
	if depth > maxEntities {
		return
	}
	c := cardOf(e)
	for _, role := range e.get("roles").list() {
		switch role.word() {
		case "registrar":
			r.addRegistrar(e, c)
		case "abuse":
			r.Registrar.AbuseEmail = cmp.Or(r.Registrar.AbuseEmail, c.email)
			r.Registrar.AbusePhone = cmp.Or(r.Registrar.AbusePhone, c.phone)
		}
	}
	for _, inner := range e.get("entities").list() {
		r.addEntity(inner, depth+1)
	}
}

func (r *rdapReply) addRegistrar(e node, c card) {
	r.Registrar.Name = cmp.Or(r.Registrar.Name, c.name, c.organization, e.get("handle").text())
	for _, id := range e.get("publicIds").list() {
		if strings.Contains(id.get("type").word(), "iana") {
			r.Registrar.IANAID = cmp.Or(r.Registrar.IANAID, id.get("identifier").text())
		}
	}
	links := e.get("links").list()
	page := ""
	isPage := func(l node) bool { return l.get("rel").word() == "about" || l.get("type").word() == "text/html" }
	if i := slices.IndexFunc(links, isPage); i >= 0 {
		page = links[i].get("href").text()
	}
	r.Registrar.URL = cmp.Or(r.Registrar.URL, webURL(page), webURL(e.get("url").text()))
}

// card has the contact data of a registrar or of its abuse contact.
type card struct{ name, organization, email, phone string }

// cardOf reads a jCard (RFC 7095), or a JSContact card, its planned replacement.
func cardOf(e node) (c card) {
	for _, p := range e.get("vcardArray").at(1).list() {
		value := p.at(3)
		switch p.at(0).word() {
		case "fn":
			c.name = cmp.Or(c.name, value.text())
		case "org":
			c.organization = cmp.Or(c.organization, joined(value))
		case "email":
			c.email = cmp.Or(c.email, strings.TrimPrefix(value.text(), "mailto:"))
		case "tel":
			c.phone = cmp.Or(c.phone, strings.TrimPrefix(value.text(), "tel:"))
		}
	}
	j := e.get("jscontact_card")
	c.name = cmp.Or(c.name, j.get("name").get("full").text(), j.get("fullName").text())
	c.organization = cmp.Or(c.organization, ofAny(j.get("organizations"), "name"))
	c.email = cmp.Or(c.email, ofAny(j.get("emails"), "address"), ofAny(j.get("emails"), "email"))
	c.phone = cmp.Or(c.phone, strings.TrimPrefix(ofAny(j.get("phones"), "number"), "tel:"))
	return c
}

// joined returns a text, or the parts of a list as one text.
func joined(n node) string {
	var parts []string
	for _, p := range n.list() {
		if t := cmp.Or(p.text(), p.at(0).text()); t != "" {
			parts = append(parts, t)
		}
	}
	return clean(strings.Join(parts, ", "))
}

// ofAny returns a member of the first object that has it, in a map of objects.
func ofAny(n node, key string) string {
	m, _ := n.v.(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(m)) {
		if t := (node{m[id]}).get(key).text(); t != "" {
			return t
		}
	}
	return ""
}

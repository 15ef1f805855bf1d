package registry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// contactRoles are the roles of entities that are contacts of the holder.
var contactRoles = []string{"registrant", "administrative", "technical", "billing"}

// maxEntities bounds how deep entities stand in entities; a registrar's abuse desk is at 1.
const maxEntities = 3

// addEntity reads an entity (RFC 9083 §5.1).
func (r *rdapReply) addEntity(e node, depth int) {
	if depth > maxEntities {
		return
	}
	c := card(e)
	c.Handle = e.get("handle").text()
	for _, role := range e.get("roles").list() {
		switch word := role.word(); {
		case word == "registrar":
			r.addRegistrar(e, c)
		case word == "abuse":
			r.Registrar.AbuseEmail = cmp.Or(r.Registrar.AbuseEmail, c.Email)
			r.Registrar.AbusePhone = cmp.Or(r.Registrar.AbusePhone, c.Phone)
		case slices.Contains(contactRoles, word) && depth == 0 && len(r.Private.Contacts) < maxList:
			c.Role = word
			r.Private.Contacts = append(r.Private.Contacts, c)
		}
	}
	for _, inner := range e.get("entities").list() {
		r.addEntity(inner, depth+1)
	}
}

func (r *rdapReply) addRegistrar(e node, c Contact) {
	r.Registrar.Name = cmp.Or(r.Registrar.Name, c.Name, c.Organization, c.Handle)
	for _, id := range e.get("publicIds").list() {
		if strings.Contains(id.get("type").word(), "iana") {
			r.Registrar.IANAID = cmp.Or(r.Registrar.IANAID, id.get("identifier").text())
		}
	}
	page := node{}
	for _, l := range e.get("links").list() {
		if l.get("rel").word() == "about" || l.get("type").word() == "text/html" {
			page = l.get("href")
			break
		}
	}
	r.Registrar.URL = cmp.Or(r.Registrar.URL, webURL(page.text()), webURL(e.get("url").text()))
}

// card reads who an entity is: from a jCard (RFC 7095), or from a JSContact card, which is to replace it.
func card(e node) (c Contact) {
	for _, p := range e.get("vcardArray").at(1).list() {
		value := p.at(3)
		switch p.at(0).word() {
		case "fn":
			c.Name = cmp.Or(c.Name, value.text())
		case "org":
			c.Organization = cmp.Or(c.Organization, joined(value))
		case "email":
			c.Email = cmp.Or(c.Email, strings.TrimPrefix(value.text(), "mailto:"))
		case "tel":
			c.Phone = cmp.Or(c.Phone, strings.TrimPrefix(value.text(), "tel:"))
		case "adr":
			c.Address = cmp.Or(c.Address, joined(value), p.at(1).get("label").text())
			c.Country = cmp.Or(c.Country, p.at(1).get("cc").text(), value.at(6).text())
		}
	}
	j := e.get("jscontact_card")
	c.Name = cmp.Or(c.Name, j.get("name").get("full").text(), j.get("fullName").text())
	c.Organization = cmp.Or(c.Organization, ofAny(j.get("organizations"), "name"))
	c.Email = cmp.Or(c.Email, ofAny(j.get("emails"), "address"), ofAny(j.get("emails"), "email"))
	c.Phone = cmp.Or(c.Phone, strings.TrimPrefix(ofAny(j.get("phones"), "number"), "tel:"))
	c.Address = cmp.Or(c.Address, ofAny(j.get("addresses"), "full"))
	c.Country = cmp.Or(c.Country, ofAny(j.get("addresses"), "countryCode"))
	return c
}

// joined is a text or the parts of one.
func joined(n node) string {
	var parts []string
	for _, p := range n.list() {
		if t := cmp.Or(p.text(), p.at(0).text()); t != "" {
			parts = append(parts, t)
		}
	}
	return clean(strings.Join(parts, ", "))
}

// ofAny is a member of the first object in a map of objects that has it.
func ofAny(n node, key string) string {
	m, _ := n.v.(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(m)) {
		if t := (node{m[id]}).get(key).text(); t != "" {
			return t
		}
	}
	return ""
}

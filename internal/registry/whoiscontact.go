package registry

import (
	"cmp"
	"slices"
	"strings"
)

// roleWords begin the keys and headings of contacts: "Registrant Name:", "Administrative Contact".
var roleWords = []struct{ word, role string }{
	{"registrant", "registrant"}, {"holder", "registrant"}, {"owner", "registrant"},
	{"administrative", "administrative"}, {"admin", "administrative"},
	{"technical", "technical"}, {"tech", "technical"}, {"billing", "billing"},
}

// sectionRole is the role of the contact below a heading; empty if it is none.
func sectionRole(section string) string {
	for _, w := range roleWords {
		if section == w.word || strings.HasPrefix(section, w.word+" ") || section == w.word+"s" {
			return w.role
		}
	}
	return ""
}

// prefixRole splits "tech email" into its role and the rest.
func prefixRole(key string) (role, attribute string) {
	for _, w := range roleWords {
		if rest, ok := strings.CutPrefix(key, w.word+" "); ok {
			return w.role, strings.TrimPrefix(rest, "contact ")
		}
	}
	return "", ""
}

// attribute is the part of a contact that a key stands for; nil if it is none.
func (c *Contact) attribute(key string) *string {
	switch key {
	case "name", "contact", "person", "responsible":
		return &c.Name
	case "": // a line of its own: the name comes first
		if *c == (Contact{Role: c.Role}) {
			return &c.Name
		}
		return &c.Address
	case "organization", "organisation", "org", "company", "owner":
		return &c.Organization
	case "email", "e-mail", "mail":
		return &c.Email
	case "phone", "telephone", "voice", "tel":
		return &c.Phone
	case "country", "country code":
		return &c.Country
	case "street", "address", "city", "postal code", "state/province":
		return &c.Address
	case "id", "handle", "nic-hdl", "nic-hdl-br":
		return &c.Handle
	}
	return nil
}

func (r *whoisReply) addContact(role, key, value string) {
	i := slices.IndexFunc(r.Private.Contacts, func(c Contact) bool { return c.Role == role })
	if i < 0 {
		i = len(r.Private.Contacts)
		r.Private.Contacts = append(r.Private.Contacts, Contact{Role: role})
	}
	r.Private.Contacts[i].set(key, value)
}

// addPerson adds to a contact that has a block of its own, which begins with the handle by which the domain refers to it.
func (r *whoisReply) addPerson(f field, begins bool) {
	contacts := &r.Private.Contacts
	switch {
	case len(*contacts) >= maxList:
	case begins:
		handle := clean(f.value)
		*contacts = append(*contacts, Contact{Role: cmp.Or(r.roles[strings.ToLower(handle)], "contact"), Handle: handle})
	default:
		(*contacts)[len(*contacts)-1].set(f.key, f.value)
	}
}

// set sets a part, or adds a line to an address.
func (c *Contact) set(key, value string) {
	p := c.attribute(key)
	switch {
	case p == nil:
	case *p == "":
		*p = clean(value)
	case p == &c.Address:
		*p = cut(*p+", "+clean(value), maxWords)
	}
}

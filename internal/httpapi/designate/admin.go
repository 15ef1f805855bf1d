package designate

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// tld is a top-level domain in which zones may be created. As in Designate, all are allowed when there is no entry.
type tld struct {
	resourceMeta
	Name        string  `json:"name"`
	Description *string `json:"description"`
}

// blacklist is a regular expression that the names of new zones must not match.
type blacklist struct {
	resourceMeta
	Pattern     string  `json:"pattern"`
	Description *string `json:"description"`
}

// tsigKey is a TSIG key (RFC 8945) that signs zone transfers and dynamic updates. Package transfer reads these objects.
type tsigKey struct {
	resourceMeta
	Name       string `json:"name"`
	Algorithm  string `json:"algorithm"`
	Secret     string `json:"secret"`
	Scope      string `json:"scope"`
	ResourceID string `json:"resource_id"`

	// These limits are not in Designate. A key without them may use all zones of its scope, and change all their records.
	Zones []string `json:"zones,omitempty"`
	Names []string `json:"names,omitempty"`
	Types []string `json:"types,omitempty"`
}

// tlds compares names without case, because DNS names have none (RFC 4343).
var tlds = resource[tld, *tld]{
	kind: store.KindTLD, title: "TLD", object: "Tld", path: "/v2/tlds", keys: []string{"name", "description"},
	read: readTLD,
	same: func(a, b tld) bool { return strings.EqualFold(a.Name, b.Name) },
	listing: newListing("tlds", map[string]func(tld) string{
		"name": func(t tld) string { return t.Name }, "description": func(t tld) string { return value(t.Description) },
	}, "name"),
}

// readTLD reads the body of a create or an update. The problems use the messages and the format names of Designate's
// JSON schema, because clients show them to users.
func readTLD(in *input, isNew bool) func(*tld) {
	if isNew || in.has("name") {
		in.require("name")
	}
	name := in.text("name", 255)
	if name != nil {
		if _, ok := parseHost(*name+".", false); !ok {
			in.note("name", fmt.Sprintf("'%s' is not a 'tldname'", short([]byte(*name))), "format", "tldname")
		}
	}
	describes, description := in.has("description"), in.text("description", maxDescription)
	return func(t *tld) {
		if name != nil {
			t.Name = *name
		}
		if describes {
			t.Description = description
		}
	}
}

var blacklists = resource[blacklist, *blacklist]{
	kind: store.KindBlacklist, title: "Blacklist", path: "/v2/blacklists", keys: []string{"pattern", "description"},
	read: readBlacklist, same: func(a, b blacklist) bool { return a.Pattern == b.Pattern },
	listing: newListing("blacklists", map[string]func(blacklist) string{
		"pattern": func(b blacklist) string { return b.Pattern },
	}, "pattern"),
}

// readBlacklist refuses patterns that RE2 cannot compile. Designate accepts the syntax of Python, which has
// backreferences and lookahead too: their running time is not bounded.
func readBlacklist(in *input, isNew bool) func(*blacklist) {
	if isNew || in.has("pattern") {
		in.require("pattern")
	}
	pattern := in.text("pattern", 255)
	if pattern != nil {
		if *pattern == "" { // it would match every name
			in.note("pattern", "'' is not a 'regex'", "format", "regex")
		} else if _, err := regexp.Compile(*pattern); err != nil {
			in.note("pattern", fmt.Sprintf("'%s' is not a 'regex': %v", *pattern, err), "format", "regex")
		}
	}
	describes, description := in.has("description"), in.text("description", maxDescription)
	return func(b *blacklist) {
		if pattern != nil {
			b.Pattern = *pattern
		}
		if describes {
			b.Description = description
		}
	}
}

var tsigAlgorithms = []string{"hmac-md5", "hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"}

var tsigKeys = resource[tsigKey, *tsigKey]{
	kind: store.KindTSIGKey, title: "TSIG key", object: "TsigKey", path: "/v2/tsigkeys", read: readTSIGKey,
	check: checkTSIGKey,
	keys:  []string{"name", "algorithm", "secret", "scope", "resource_id", "zones", "names", "types"},
	same: func(a, b tsigKey) bool { // a DNS message writes both spellings of a name in the same form
		return strings.EqualFold(strings.TrimSuffix(a.Name, "."), strings.TrimSuffix(b.Name, "."))
	},
	listing: newListing("tsigkeys", map[string]func(tsigKey) string{
		"name":      func(k tsigKey) string { return k.Name },
		"algorithm": func(k tsigKey) string { return k.Algorithm },
		"scope":     func(k tsigKey) string { return k.Scope },
	}, "name"),
}

// tsigKeyFields lists the fields of a key. A new key needs all of them.
var tsigKeyFields = []struct {
	key  string
	most int
	of   func(*tsigKey) *string
	fits func(string) bool
}{
	{"name", 160, func(k *tsigKey) *string { return &k.Name }, isKeyName},
	{"algorithm", 16, func(k *tsigKey) *string { return &k.Algorithm },
		func(s string) bool { return slices.Contains(tsigAlgorithms, s) }},
	{"secret", 160, func(k *tsigKey) *string { return &k.Secret }, isSecret},
	{"scope", 4, func(k *tsigKey) *string { return &k.Scope }, func(s string) bool { return s == "POOL" || s == "ZONE" }},
	{"resource_id", 36, func(k *tsigKey) *string { return &k.ResourceID },
		func(s string) bool { _, ok := parseID(s); return ok }},
}

func readTSIGKey(in *input, isNew bool) func(*tsigKey) {
	given := map[string]string{}
	for _, f := range tsigKeyFields {
		if isNew || in.has(f.key) {
			in.require(f.key)
		}
		s := in.text(f.key, f.most)
		if s == nil {
			continue
		}
		if !f.fits(*s) {
			in.note(f.key, fmt.Sprintf("'%s' is not a valid %s", short([]byte(*s)), f.key), "format", f.key)
		}
		given[f.key] = *s
	}
	lists := map[string][]string{}
	for _, l := range tsigKeyLists {
		if in.has(l.key) {
			lists[l.key] = readTSIGKeyList(in, l.key, l.fits)
		}
	}
	return func(k *tsigKey) {
		for _, f := range tsigKeyFields {
			if s, ok := given[f.key]; ok {
				*f.of(k) = s
			}
		}
		for _, l := range tsigKeyLists {
			if list, ok := lists[l.key]; ok {
				*l.of(k) = list
			}
		}
	}
}

// tsigKeyLists lists the limits of a key.
var tsigKeyLists = []struct {
	key  string
	of   func(*tsigKey) *[]string
	fits func(string) bool
}{
	{"zones", func(k *tsigKey) *[]string { return &k.Zones },
		func(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }},
	{"names", func(k *tsigKey) *[]string { return &k.Names },
		func(s string) bool { _, err := transfer.ParseNamePattern(s); return s != "" && err == nil }},
	{"types", func(k *tsigKey) *[]string { return &k.Types },
		func(s string) bool { t, err := rr.ParseType(s); return err == nil && t.IsData() && t != rr.TypeALIAS }},
}

// maxTSIGKeyList is the maximum length of a limit. The server compares every record of an update with all patterns.
const maxTSIGKeyList = 100

func readTSIGKeyList(in *input, key string, fits func(string) bool) []string {
	list := in.texts(key)
	if len(list) > maxTSIGKeyList {
		in.note(key, fmt.Sprintf("%d are too many", len(list)), "maxItems", maxTSIGKeyList)
		return nil
	}
	for i, s := range list {
		if !fits(s) {
			in.noteItem(key, i, fmt.Sprintf("'%s' is not valid in %s", short([]byte(s)), key), "format", key)
		}
	}
	return list
}

// checkTSIGKey refuses a key for a zone that does not exist.
func checkTSIGKey(v store.View, k tsigKey) error {
	if k.Scope == "ZONE" && len(k.Zones) > 0 {
		return invalid(problem{[]any{"zones"}, "'zones' is for a key of scope POOL", "not_allowed", nil})
	}
	if k.Scope == "ZONE" {
		return checkZoneID(v, k.ResourceID, "resource_id")
	}
	for i, id := range k.Zones {
		if err := checkZoneID(v, id, "zones", i); err != nil {
			return err
		}
	}
	return nil
}

// checkZoneID refuses the id of a zone that does not exist. Overlays count as none: no key is for them.
func checkZoneID(v store.View, s string, path ...any) error {
	id, err := uuid.Parse(s)
	if err != nil {
		return err
	}
	z, err := v.Zone(id)
	if errors.Is(err, store.ErrNotFound) || err == nil && z.Kind == zone.Overlay {
		return invalid(problem{path, fmt.Sprintf("there is no zone '%s'", s), "zone", nil})
	}
	return err
}

// isKeyName reports whether s is a domain name, with or without the final dot: users type key names in both forms.
func isKeyName(s string) bool {
	_, ok := parseHost(strings.TrimSuffix(s, ".")+".", false)
	return ok
}

// isSecret reports whether s is a secret that a transfer can use: base64 of at least one byte.
func isSecret(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(b) > 0
}

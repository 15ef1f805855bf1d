package designate

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// TLD is a top-level domain below which zones may stand.
type TLD struct {
	Meta
	Name        string  `json:"name"`
	Description *string `json:"description"`
}

// Blacklist is a pattern of names that no zone may have.
type Blacklist struct {
	Meta
	Pattern     string  `json:"pattern"`
	Description *string `json:"description"`
}

// TSIGKey is a key for transfers.
type TSIGKey struct {
	Meta
	Name       string `json:"name"`
	Algorithm  string `json:"algorithm"`
	Secret     string `json:"secret"`
	Scope      string `json:"scope"`
	ResourceID string `json:"resource_id"`
}

func byAge[T any](created func(T) Time) func(a, b T) int {
	return func(a, b T) int { return time.Time(created(a)).Compare(time.Time(created(b))) }
}

var tlds = resource[TLD, *TLD]{
	kind: store.KindTLD, title: "TLD", path: "/v2/tlds", keys: []string{"name", "description"}, read: readTLD,
	same: func(a, b TLD) bool { return strings.EqualFold(a.Name, b.Name) },
	listing: listing[TLD]{
		name: "tlds",
		id:   func(t TLD) string { return t.ID },
		keys: []string{"created_at", "id", "updated_at", "name"},
		filters: map[string]func(TLD) string{
			"name": func(t TLD) string { return t.Name }, "description": func(t TLD) string { return value(t.Description) },
		},
		sorts: map[string]func(a, b TLD) int{
			"created_at": byAge(func(t TLD) Time { return t.CreatedAt }),
			"updated_at": byAge(func(t TLD) Time { return t.UpdatedAt }),
			"id":         func(a, b TLD) int { return compare(a.ID, b.ID) },
			"name":       func(a, b TLD) int { return compare(a.Name, b.Name) },
		},
	},
}

func readTLD(in *input, t *TLD) {
	if t.ID == "" || in.has("name") {
		in.require("name")
	}
	if s := in.text("name", 255); s != nil {
		if _, ok := parseHost(*s+".", false); !ok {
			in.note("name", fmt.Sprintf("'%s' is not a 'tldname'", short([]byte(*s))), "format", "tldname")
		}
		t.Name = *s
	}
	if in.has("description") {
		t.Description = in.text("description", maxDescription)
	}
}

var blacklists = resource[Blacklist, *Blacklist]{
	kind: store.KindBlacklist, title: "Blacklist", path: "/v2/blacklists", keys: []string{"pattern", "description"},
	read: readBlacklist, same: func(a, b Blacklist) bool { return a.Pattern == b.Pattern },
	listing: listing[Blacklist]{
		name: "blacklists",
		id:   func(b Blacklist) string { return b.ID },
		keys: []string{"created_at", "id", "updated_at", "pattern"},
		filters: map[string]func(Blacklist) string{
			"pattern": func(b Blacklist) string { return b.Pattern },
		},
		sorts: map[string]func(a, b Blacklist) int{
			"created_at": byAge(func(b Blacklist) Time { return b.CreatedAt }),
			"updated_at": byAge(func(b Blacklist) Time { return b.UpdatedAt }),
			"id":         func(a, b Blacklist) int { return compare(a.ID, b.ID) },
			"pattern":    func(a, b Blacklist) int { return compare(a.Pattern, b.Pattern) },
		},
	},
}

func readBlacklist(in *input, b *Blacklist) {
	if b.ID == "" || in.has("pattern") {
		in.require("pattern")
	}
	if s := in.text("pattern", 255); s != nil {
		if _, err := regexp.Compile(*s); err != nil {
			in.note("pattern", fmt.Sprintf("'%s' is not a 'regex': %v", *s, err), "format", "regex")
		}
		b.Pattern = *s
	}
	if in.has("description") {
		b.Description = in.text("description", maxDescription)
	}
}

var tsigAlgorithms = []string{"hmac-md5", "hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"}

var tsigKeys = resource[TSIGKey, *TSIGKey]{
	kind: store.KindTSIGKey, title: "TSIG key", path: "/v2/tsigkeys", read: readTSIGKey,
	keys: []string{"name", "algorithm", "secret", "scope", "resource_id"},
	same: func(a, b TSIGKey) bool { // on the wire both spellings are one key
		return strings.EqualFold(strings.TrimSuffix(a.Name, "."), strings.TrimSuffix(b.Name, "."))
	},
	listing: listing[TSIGKey]{
		name: "tsigkeys",
		id:   func(k TSIGKey) string { return k.ID },
		keys: []string{"created_at", "id", "updated_at", "name"},
		filters: map[string]func(TSIGKey) string{
			"name":      func(k TSIGKey) string { return k.Name },
			"algorithm": func(k TSIGKey) string { return k.Algorithm },
			"scope":     func(k TSIGKey) string { return k.Scope },
		},
		sorts: map[string]func(a, b TSIGKey) int{
			"created_at": byAge(func(k TSIGKey) Time { return k.CreatedAt }),
			"updated_at": byAge(func(k TSIGKey) Time { return k.UpdatedAt }),
			"id":         func(a, b TSIGKey) int { return compare(a.ID, b.ID) },
			"name":       func(a, b TSIGKey) int { return compare(a.Name, b.Name) },
		},
	},
}

func readTSIGKey(in *input, k *TSIGKey) {
	all := []string{"name", "algorithm", "secret", "scope", "resource_id"}
	for _, key := range all {
		if k.ID == "" || in.has(key) {
			in.require(key)
		}
	}
	for _, f := range []struct {
		key  string
		most int
		to   *string
		fits func(string) bool
	}{
		{"name", 160, &k.Name, func(s string) bool { _, ok := parseHost(strings.TrimSuffix(s, ".")+".", false); return ok }},
		{"algorithm", 16, &k.Algorithm, func(s string) bool { return slices.Contains(tsigAlgorithms, s) }},
		{"secret", 160, &k.Secret, isSecret},
		{"scope", 4, &k.Scope, func(s string) bool { return s == "POOL" || s == "ZONE" }},
		{"resource_id", 36, &k.ResourceID, func(s string) bool { _, err := parseID(s); return err == nil }},
	} {
		s := in.text(f.key, f.most)
		if s == nil {
			continue
		}
		if !f.fits(*s) {
			in.note(f.key, fmt.Sprintf("'%s' is not a valid %s", short([]byte(*s)), f.key), "format", f.key)
		}
		*f.to = *s
	}
}

// isSecret takes what a transfer can use: base64 of at least one octet.
func isSecret(s string) bool {
	b, err := base64.StdEncoding.DecodeString(s)
	return err == nil && len(b) > 0
}

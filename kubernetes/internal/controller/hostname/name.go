package hostname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The beginnings of names that have a hash. Hostnames that begin with one of them get a hash too, so that no hostname
// has the name of another one's report.
const (
	wildcardPrefix = "wildcard-"
	hashPrefix     = "hostname-"
)

// Name returns the name of the report of a hostname: the hostname itself, or a name with its hash if the hostname
// cannot be the name of an object, as that of a wildcard.
func Name(host string) string {
	plain := len(validation.IsDNS1123Subdomain(host)) == 0
	if plain && !strings.HasPrefix(host, wildcardPrefix) && !strings.HasPrefix(host, hashPrefix) {
		return host
	}
	sum := sha256.Sum256([]byte(host))
	hash := hex.EncodeToString(sum[:8])
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		if name := wildcardPrefix + hash + "." + rest; len(validation.IsDNS1123Subdomain(name)) == 0 {
			return name // the domain makes the name readable
		}
	}
	return hashPrefix + hash
}

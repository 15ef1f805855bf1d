package powerdns

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// wireKey is a TSIG key.
type wireKey struct {
	Algorithm string `json:"algorithm"`
	ID        string `json:"id"`
	Key       string `json:"key"`
	Name      string `json:"name"`
	Type      string `json:"type"`
}

func keyOf(k designate.Key, secret bool) wireKey {
	w := wireKey{Algorithm: k.Algorithm, ID: idOfName(k.Name), Name: withoutDot(k.Name), Type: "TSIGKey"}
	// PowerDNS has the member in lists too, with an empty value. Clients decode both with one type.
	if secret {
		w.Key = k.Secret
	}
	return w
}

// listKeys leaves out the secrets, as PowerDNS does: a list often ends in a log.
func (c *call) listKeys() (reply, error) {
	out := []wireKey{}
	err := c.view(func(v store.View) error {
		keys, err := c.rules.Keys(v)
		out = make([]wireKey, 0, len(keys))
		for _, k := range keys {
			out = append(out, keyOf(k, false))
		}
		return err
	})
	return ok(out), err
}

// algorithms are those of PowerDNS that the zones API can store.
// RFC 8945 §6 forbids hmac-md5 for new keys. It is accepted because clients copy the keys of older servers here;
// the DNS server refuses messages that it signs.
var algorithms = []string{"hmac-md5", "hmac-sha1", "hmac-sha224", "hmac-sha256", "hmac-sha384", "hmac-sha512"}

func readAlgorithm(s string) (string, error) {
	a := strings.TrimSuffix(strings.ToLower(s), ".")
	if !slices.Contains(algorithms, a) {
		return "", refuse("Unknown TSIG algorithm: %s", strings.TrimSuffix(s, "."))
	}
	return a, nil
}

func (c *call) createKey() (reply, error) {
	o, err := c.body()
	if err != nil {
		return reply{}, err
	}
	k, err := readNewKey(o)
	if err != nil {
		return reply{}, err
	}
	err = c.commit(func(tx *publish.Tx) error {
		if err := c.checkFree(tx.View, k.Name); err != nil {
			return err
		}
		return c.rules.PutKey(tx, k)
	})
	return reply{status: http.StatusCreated, body: keyOf(k, true)}, err
}

// readNewKey reads the body of a new key. Without a secret, the key gets a random one of 64 bytes.
func readNewKey(o object) (k designate.Key, err error) {
	name, err := o.text("name")
	if err != nil {
		return k, err
	}
	algorithm, err := o.text("algorithm")
	if err != nil {
		return k, err
	}
	if k.Name, err = dnsname.Parse(name); err != nil {
		return k, refuse("Unable to parse DNS Name '%s'", name)
	}
	if k.Algorithm, err = readAlgorithm(algorithm); err != nil {
		return k, err
	}
	if k.Secret, _ = o.optionalText("key"); k.Secret == "" {
		// 64 bytes is the block size of SHA-256. Longer secrets would be hashed first (RFC 2104 §3).
		b := make([]byte, 64)
		_, _ = rand.Read(b) // never fails
		k.Secret = base64.StdEncoding.EncodeToString(b)
	}
	if _, err := base64.StdEncoding.DecodeString(k.Secret); err != nil {
		// The message has the secret, as that of PowerDNS does. Only the client that sent it sees the message.
		return k, refuse("TSIG content '%s' cannot be base64-decoded", k.Secret)
	}
	return k, nil
}

// checkFree refuses the name of an existing key.
func (c *call) checkFree(v store.View, n dnsname.Name) error {
	keys, err := c.rules.Keys(v)
	if err == nil && slices.ContainsFunc(keys, func(k designate.Key) bool { return k.Name == n }) {
		err = &fault{http.StatusConflict, "A TSIG key with the name '" + withoutDot(n) + "' already exists"}
	}
	return err
}

// key returns the key of the path.
func (c *call) key(v store.View) (designate.Key, error) {
	n, err := nameOfID(c.r.PathValue("id"))
	if err != nil {
		return designate.Key{}, err
	}
	keys, err := c.rules.Keys(v)
	// The store finds keys by id, and PowerDNS by name. There are few keys, so a linear search is enough.
	i := slices.IndexFunc(keys, func(k designate.Key) bool { return k.Name == n })
	if err == nil && i < 0 {
		err = &fault{http.StatusNotFound, "TSIG key with name '" + withoutDot(n) + "' not found"}
	}
	if err != nil {
		return designate.Key{}, err
	}
	return keys[i], nil
}

func (c *call) showKey() (reply, error) {
	var k designate.Key
	err := c.view(func(v store.View) (err error) {
		k, err = c.key(v)
		return err
	})
	return ok(keyOf(k, true)), err
}

func (c *call) updateKey() (reply, error) {
	o, err := c.body()
	if err != nil {
		return reply{}, err
	}
	var k designate.Key
	err = c.commit(func(tx *publish.Tx) (err error) {
		if k, err = c.key(tx.View); err != nil {
			return err
		}
		was := k.Name
		if err := applyKey(o, &k); err != nil {
			return err
		}
		// A key keeps its id when it gets another name, so its limits to zones stay.
		if k.Name != was {
			if err := c.checkFree(tx.View, k.Name); err != nil {
				return err
			}
		}
		return c.rules.PutKey(tx, k)
	})
	return ok(keyOf(k, true)), err
}

// applyKey changes only what the body has. Unlike PATCH of the zones API, PowerDNS uses PUT for this.
func applyKey(o object, k *designate.Key) (err error) {
	if name, ok := o.optionalText("name"); ok {
		if k.Name, err = dnsname.Parse(name); err != nil {
			return refuse("Unable to parse DNS Name '%s'", name)
		}
	}
	if algorithm, ok := o.optionalText("algorithm"); ok {
		if k.Algorithm, err = readAlgorithm(algorithm); err != nil {
			return err
		}
	}
	if secret, ok := o.optionalText("key"); ok {
		if _, err := base64.StdEncoding.DecodeString(secret); err != nil {
			return refuse("Can not base64 decode key content '%s'", secret)
		}
		k.Secret = secret
	}
	return nil
}

func (c *call) deleteKey() (reply, error) {
	return noContent, c.commit(func(tx *publish.Tx) error {
		k, err := c.key(tx.View)
		if err != nil {
			return err
		}
		return c.rules.DeleteKey(tx, k.ID)
	})
}

// listSigningKeys returns an empty list: this server does not sign zones.
func (c *call) listSigningKeys() (reply, error) {
	_, err := c.viewZone(c.zone)
	return ok([]struct{}{}), err
}

// createSigningKey refuses: a client that believes that its zone is signed would publish a DS, and the zone would fail.
func (c *call) createSigningKey() (reply, error) {
	z, err := c.viewZone(c.zone)
	if err != nil {
		return reply{}, err
	}
	return reply{}, refuse("Zone '%s' cannot be signed: this server does not sign zones", z.Name)
}

func (c *call) showSigningKey() (reply, error) {
	if _, err := c.viewZone(c.zone); err != nil {
		return reply{}, err
	}
	return reply{}, status(http.StatusNotFound)
}

package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// HashParams are the costs of argon2id. They are kept with each hash, so that changing them leaves old passwords good.
type HashParams struct {
	Memory uint32 // KiB
	Passes uint32
	Lanes  uint8
}

// ErrBusy says that too many passwords wait to be checked.
var ErrBusy = errors.New("too many logins at once")

// hasher hashes passwords, a few at a time.
type hasher struct {
	params HashParams
	slots  chan struct{} // one for each hash under way
	queue  chan struct{} // one for each login under way or waiting
	dummy  string        // what a password of nobody is compared with, so that unknown names take as long as known ones
}

const (
	// hashers is how many passwords are hashed at a time. Each takes 19 MiB, and the collector keeps as much again for
	// a while: a storm of logins was seen at 90 MiB for the whole process, however many there were.
	hashers = 2

	// waiting is how many logins may wait for a slot. At some 25 ms a hash, the last of 32 behind two slots waits half
	// a second.
	waiting = 32
)

func newHasher(p HashParams) *hasher {
	h := &hasher{params: p, slots: make(chan struct{}, hashers), queue: make(chan struct{}, hashers+waiting)}
	h.dummy = encodeHash(p, make([]byte, 16), make([]byte, 32)) // no password is known to hash to zeros
	return h
}

// take waits for a slot, and returns how to give it back.
func (h *hasher) take(ctx context.Context) (func(), error) {
	select {
	case h.queue <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots; <-h.queue }, nil
	case <-ctx.Done():
		<-h.queue
		return nil, ctx.Err()
	}
}

// hash is the text that is kept of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	done, err := h.take(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	salt := make([]byte, 16)
	rand.Read(salt) //nolint:errcheck // never fails
	p := h.params
	return encodeHash(p, salt, argon2.IDKey([]byte(password), salt, p.Passes, p.Memory, p.Lanes, 32)), nil
}

// checkPassword reports whether a password is the one kept as encoded. The caller holds a slot of the hasher.
func checkPassword(password, encoded string) (bool, error) {
	p, salt, want, err := decodeHash(encoded)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password), salt, p.Passes, p.Memory, p.Lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

var b64 = base64.RawStdEncoding

// encodeHash writes the usual text form, which other programs can read.
func encodeHash(p HashParams, salt, sum []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.Memory, p.Passes, p.Lanes,
		b64.EncodeToString(salt), b64.EncodeToString(sum))
}

var errHash = errors.New("not the hash of a password")

func decodeHash(s string) (p HashParams, salt, sum []byte, err error) {
	f := strings.Split(s, "$")
	if len(f) != 6 || f[1] != "argon2id" || f[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, nil, nil, errHash
	}
	if _, err := fmt.Sscanf(f[3], "m=%d,t=%d,p=%d", &p.Memory, &p.Passes, &p.Lanes); err != nil {
		return p, nil, nil, errHash
	}
	salt, err1 := b64.DecodeString(f[4])
	sum, err2 := b64.DecodeString(f[5])
	// Bounds on what a damaged row can make us spend: 1 GiB, 64 passes.
	if err1 != nil || err2 != nil || p.Memory == 0 || p.Memory > 1<<20 || p.Passes == 0 || p.Passes > 64 || p.Lanes == 0 ||
		len(salt) < 8 || len(sum) < 16 || len(sum) > 64 {
		return p, nil, nil, errHash
	}
	return p, salt, sum, nil
}

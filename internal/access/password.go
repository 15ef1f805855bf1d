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

// HashParams are the costs of argon2id. They are stored with each hash, so old passwords stay valid when the costs
// change.
type HashParams struct {
	Memory uint32 // KiB
	Passes uint32
	Lanes  uint8
}

// ErrBusy reports that too many logins wait for a password check.
var ErrBusy = errors.New("too many logins at once")

// hasher hashes passwords, a few at a time.
type hasher struct {
	params HashParams
	slots  chan struct{} // one element for each hash in progress
	queue  chan struct{} // one element for each login in progress or waiting
	dummy  string        // hash to compare with for unknown users, so that they take as long as known ones
}

const (
	// maxHashing is how many passwords are hashed at a time. Each takes 19 MiB, and the garbage collector keeps as much
	// again for a while: the whole process reached 90 MiB under a storm of logins, however many there were.
	maxHashing = 2

	// maxWaiting is how many logins may wait for a slot. At about 25 ms per hash, the last of 32 logins behind two slots
	// waits half a second.
	maxWaiting = 32
)

func newHasher(p HashParams) *hasher {
	h := &hasher{params: p, slots: make(chan struct{}, maxHashing), queue: make(chan struct{}, maxHashing+maxWaiting)}
	h.dummy = encodeHash(p, make([]byte, 16), make([]byte, 32)) // no known password has a hash of zeros
	return h
}

// acquire waits for a slot, and returns a function that releases it.
func (h *hasher) acquire(ctx context.Context) (func(), error) {
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

// hash returns the encoded hash of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	done, err := h.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	salt := make([]byte, 16)
	rand.Read(salt)
	p := h.params
	return encodeHash(p, salt, argon2.IDKey([]byte(password), salt, p.Passes, p.Memory, p.Lanes, 32)), nil
}

// checkPassword reports whether a password matches an encoded hash. The caller holds a slot of the hasher.
func checkPassword(password, encoded string) (bool, error) {
	p, salt, want, err := decodeHash(encoded)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password), salt, p.Passes, p.Memory, p.Lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

var b64 = base64.RawStdEncoding

// encodeHash returns the usual text form of an argon2id hash, which other programs can read.
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
	// Limits for a damaged row: 1 GiB, 64 passes.
	if err1 != nil || err2 != nil || p.Memory == 0 || p.Memory > 1<<20 || p.Passes == 0 || p.Passes > 64 || p.Lanes == 0 ||
		len(salt) < 8 || len(sum) < 16 || len(sum) > 64 {
		return p, nil, nil, errHash
	}
	return p, salt, sum, nil
}

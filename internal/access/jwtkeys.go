package access

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"slices"
)

// publicKey is a key that verifies signatures of an issuer.
type publicKey struct {
	id        string // kid; empty when not given, as in PEM files
	algorithm string // the only algorithm of the key; empty means all that its type supports
	key       any    // *rsa.PublicKey, *ecdsa.PublicKey of P-256, or ed25519.PublicKey
}

// verifies reports whether the key can verify signatures of an algorithm.
func (k publicKey) verifies(algorithm string) bool {
	if k.algorithm != "" && k.algorithm != algorithm {
		return false
	}
	switch k.key.(type) {
	case *rsa.PublicKey:
		return algorithm == "RS256" || algorithm == "PS256"
	case *ecdsa.PublicKey:
		return algorithm == "ES256"
	case ed25519.PublicKey:
		return algorithm == "EdDSA"
	}
	return false
}

const (
	maxKeyFile = 256 << 10
	maxKeys    = 32 // a JWT without a kid is checked with each key
	minRSA     = 2048
)

// errPrivate reports a file that the issuer must not share.
var errPrivate = errors.New("contains a private key, which only the issuer may have: use its public key")

// readKeys reads a file of public keys: PEM (keys or certificates), or a JWKS (RFC 7517 §5).
func readKeys(file string) ([]publicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	if len(b) > maxKeyFile {
		return nil, fmt.Errorf("keys: %s is larger than %d bytes", file, maxKeyFile)
	}
	var keys []publicKey
	if text := bytes.TrimSpace(b); bytes.HasPrefix(text, []byte("{")) {
		keys, err = parseJWKS(text)
	} else {
		keys, err = parsePEM(b)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("keys: %s: %w", file, err)
	case len(keys) == 0:
		return nil, fmt.Errorf("keys: %s has no usable public key: use RSA of %d bits or more, P-256 or Ed25519, "+
			"as PEM or JWKS",
			file, minRSA)
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("keys: %s has %d keys, more than %d", file, len(keys), maxKeys)
	}
	return keys, nil
}

func parsePEM(b []byte) (keys []publicKey, err error) {
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		var key any
		switch block.Type {
		case "PUBLIC KEY":
			key, err = x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			key, err = x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			var c *x509.Certificate
			if c, err = x509.ParseCertificate(block.Bytes); err == nil {
				key = c.PublicKey
			}
		case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY":
			err = errPrivate
		default:
			continue
		}
		if err == nil {
			err = checkKey(key)
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, publicKey{key: key})
	}
	return keys, nil
}

// checkKey returns an error for a key that cannot be used or is too weak.
func checkKey(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA {
			return fmt.Errorf("has an RSA key of %d bits; use %d or more", k.N.BitLen(), minRSA)
		}
		return nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return errors.New("has a key that is not RSA, P-256 or Ed25519")
}

// jwk is a key of a JWKS (RFC 7517 §4, RFC 7518 §6, RFC 8037 §2).
type jwk struct {
	Type    string          `json:"kty"`
	ID      string          `json:"kid"`
	Use     string          `json:"use"`
	Alg     string          `json:"alg"`
	Curve   string          `json:"crv"`
	X       string          `json:"x"`
	Y       string          `json:"y"`
	N       string          `json:"n"`
	E       string          `json:"e"`
	Private json.RawMessage `json:"d"`
}

// parseJWKS parses the keys of a JWKS that can verify one of Algorithms. It skips other keys, as RFC 7517 §5 says: an
// issuer may have keys for encryption, or for newer algorithms, in the same file.
func parseJWKS(b []byte) (keys []publicKey, err error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, errors.New("is not a JWKS: {\"keys\": [...]}")
	}
	for _, k := range set.Keys {
		if k.Private != nil {
			return nil, errPrivate
		}
		if k.Use != "" && k.Use != "sig" || k.Alg != "" && !slices.Contains(Algorithms, k.Alg) {
			continue
		}
		key, err := k.public()
		if err != nil {
			return nil, fmt.Errorf("key %.64q: %w", k.ID, err)
		}
		if key != nil {
			keys = append(keys, publicKey{k.ID, k.Alg, key})
		}
	}
	return keys, nil
}

// public returns the public key, or nil when its type is not supported.
func (k jwk) public() (any, error) {
	var n, e, x, y field
	err := errors.Join(n.decode("n", k.N), e.decode("e", k.E), x.decode("x", k.X), y.decode("y", k.Y))
	if err != nil {
		return nil, err
	}
	switch {
	case k.Type == "RSA":
		if len(e) == 0 || len(e) > 4 {
			return nil, errors.New("e must be a number of 1 to 4 bytes")
		}
		key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
		return key, checkKey(key)
	case k.Type == "EC" && k.Curve == "P-256":
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, x, y))
	case k.Type == "OKP" && k.Curve == "Ed25519":
		if len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("x must have %d bytes", ed25519.PublicKeySize)
		}
		return ed25519.PublicKey(x), nil
	}
	return nil, nil
}

// field is a base64url number of a JWK.
type field []byte

func (f *field) decode(name, text string) (err error) {
	if *f, err = base64.RawURLEncoding.DecodeString(text); err != nil {
		return fmt.Errorf("%s is not base64url", name)
	}
	return nil
}

package real

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// updated are the zones of BIND that tests change.
var updated = map[string]func() string{"live.com": liveZone, "new.com": newZone, "near.com": nearZone}

// sign creates keys for the root, com and the zones that tests change, and signs the root and com with NSEC. BIND
// signs the other zones, and again whenever they change. For unsigned zones the parent has no DS.
func (env *Environment) sign() error {
	if err := os.MkdirAll(env.keys(), 0o755); err != nil {
		return err
	}
	env.signed = map[string]string{}
	for zone := range updated {
		key, err := env.keygen("-k", "default", zone)
		if err != nil {
			return err
		}
		if err := env.dsset(zone, key); err != nil {
			return err
		}
	}
	for _, zone := range []string{"com.", "."} { // com first: its DS records are in the root
		for _, args := range [][]string{{"-f", "KSK"}, nil} {
			if _, err := env.keygen(append(append([]string{"-a", "ECDSAP256SHA256"}, args...), zone)...); err != nil {
				return err
			}
		}
		if err := env.signZone(zone); err != nil {
			return err
		}
	}
	return env.writeAnchor()
}

func (env *Environment) keys() string { return filepath.Join(env.Dir, "keys") }

// keygen creates a key and returns the path of the public key.
func (env *Environment) keygen(args ...string) (string, error) {
	out, err := output(context.Background(), "dnssec-keygen", append([]string{"-q", "-K", env.keys()}, args...)...)
	return filepath.Join(env.keys(), strings.TrimSpace(out)+".key"), err
}

// dsset writes the DS record of a key to the file that the signer of the parent reads.
func (env *Environment) dsset(zone, key string) error {
	ds, err := output(context.Background(), "dnssec-dsfromkey", "-2", key)
	if err != nil {
		return err
	}
	_, err = env.file(filepath.Join("keys", "dsset-"+zone+"."), ds)
	return err
}

func (env *Environment) signZone(zone string) error {
	text := map[string]func() string{"com.": comZone, ".": rootZone}[zone]()
	in, err := env.file(filepath.Join("keys", "zone."+zone), "$ORIGIN "+zone+"\n"+text)
	if err != nil {
		return err
	}
	if _, err := output(context.Background(), "dnssec-signzone", "-S", "-g", "-K", env.keys(), "-d", env.keys(), "-o",
		zone, "-f", in+".signed", in); err != nil {
		return err
	}
	signed, err := os.ReadFile(in + ".signed")
	env.signed[zone] = string(signed)
	return err
}

// writeAnchor makes the key of the root the trust anchor.
func (env *Environment) writeAnchor() error {
	text, err := os.ReadFile(filepath.Join(env.keys(), "dsset-."))
	if err != nil {
		return err
	}
	return env.setAnchor(string(text))
}

// setAnchor makes a DS record the trust anchor.
func (env *Environment) setAnchor(text string) error {
	rec, err := dns.NewRR(text)
	if err != nil {
		return err
	}
	ds, ok := rec.(*dns.DS)
	if !ok {
		return fmt.Errorf("the root has no DS record: %s", text)
	}
	env.anchor = ds
	env.Anchors, err = env.file("anchors", ds.String()+"\n")
	return err
}

// waitSigned waits until BIND has signed its zones: a resolver that asks earlier caches that they are bogus.
func (env *Environment) waitSigned() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for zone := range updated {
		m := new(dns.Msg)
		m.SetQuestion(zone+".", dns.TypeSOA)
		m.SetEdns0(1232, true)
		for {
			in, _, err := (&dns.Client{Timeout: time.Second}).ExchangeContext(ctx, m, beta+":53")
			if err == nil && len(in.Answer) > 1 {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("%s is not signed: %v, %v\n%s", zone, in, err, env.Logs())
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

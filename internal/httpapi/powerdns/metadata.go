package powerdns

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// wireMetadata is metadata of one kind.
type wireMetadata struct {
	Kind     string   `json:"kind"`
	Metadata []string `json:"metadata"`
	Type     string   `json:"type"`
}

func metadataOf(kind string, values []string) wireMetadata {
	if values == nil {
		values = []string{}
	}
	return wireMetadata{kind, values, "Metadata"}
}

// readableKinds are the kinds that PowerDNS knows. Zones have values only of those that a client may write.
var readableKinds = []string{"ALLOW-AXFR-FROM", "AXFR-SOURCE", "ALLOW-DNSUPDATE-FROM", "TSIG-ALLOW-DNSUPDATE",
	"FORWARD-DNSUPDATE", "SOA-EDIT-DNSUPDATE", "NOTIFY-DNSUPDATE", "ALSO-NOTIFY", "AXFR-MASTER-TSIG",
	"GSS-ALLOW-AXFR-PRINCIPAL", "GSS-ACCEPTOR-PRINCIPAL", "IXFR", "LUA-AXFR-SCRIPT",
	"PUBLISH-CDNSKEY", "PUBLISH-CDS", "SLAVE-RENOTIFY", "SOA-EDIT", "TSIG-ALLOW-AXFR"}

// signingKinds do not exist on a server that does not sign zones.
var signingKinds = []string{"NSEC3NARROW", "NSEC3PARAM", "PRESIGNED"}

// isOwnKind reports whether a kind of metadata is one that only clients read.
func isOwnKind(kind string) bool { return strings.HasPrefix(kind, "X-") }

// checkKind refuses kinds of metadata that would have an effect in PowerDNS and have none here: a client must not
// believe that it has restricted or allowed something. SOA-EDIT has no effect either, but harms nobody: the server sets
// serials.
func checkKind(kind string) error {
	if isOwnKind(kind) || kind == metaSOAEdit || kind == "SOA-EDIT-DNSUPDATE" {
		return nil
	}
	return refuse("Unsupported metadata kind '%s'", kind)
}

// maxMetadata bounds the metadata of a zone in bytes.
const maxMetadata = 16 << 10

func (s *settings) checkSize() error {
	n := 0
	for kind, values := range s.Metadata {
		n += len(kind)
		for _, v := range values {
			// 8 bytes are the overhead of a value in the stored JSON. Without it, empty values would have no bound.
			n += len(v) + 8
		}
	}
	if n > maxMetadata {
		return refuse("The metadata of the zone is larger than %d bytes", maxMetadata)
	}
	return nil
}

// viewSettings returns the settings of the zone of the path.
func (c *call) viewSettings() (s settings, err error) {
	err = c.view(func(v store.View) error {
		z, err := c.zone(v)
		if err == nil {
			s, err = settingsOf(v, z.ID)
		}
		return err
	})
	return s, err
}

func (c *call) listMetadata() (reply, error) {
	s, err := c.viewSettings()
	out := make([]wireMetadata, 0, len(s.Metadata))
	for _, kind := range slices.Sorted(maps.Keys(s.Metadata)) {
		out = append(out, metadataOf(kind, s.Metadata[kind]))
	}
	return ok(out), err
}

func (c *call) showMetadata() (reply, error) {
	s, err := c.viewSettings()
	if err != nil {
		return reply{}, err
	}
	kind := c.r.PathValue("kind")
	// 404 and not 422: PowerDNS knows the kind, and an unsigned zone has no value of it.
	if slices.Contains(signingKinds, kind) {
		return reply{}, status(http.StatusNotFound)
	}
	if !isOwnKind(kind) && !slices.Contains(readableKinds, kind) {
		return reply{}, refuse("Unsupported metadata kind '%s'", kind)
	}
	return ok(metadataOf(kind, s.Metadata[kind])), nil
}

// changeMetadata changes the metadata of one kind and returns the new values.
func (c *call) changeMetadata(kind string, change func(have []string) []string) (wireMetadata, error) {
	var out wireMetadata
	err := c.commit(func(tx *publish.Tx) error {
		tx.Note("change metadata")
		z, err := c.ownZone(tx.View)
		if err != nil {
			return err
		}
		if err := c.ifMatch(tx.View, z); err != nil {
			return err
		}
		s, err := settingsOf(tx.View, z.ID)
		if err != nil {
			return err
		}
		values := change(s.Metadata[kind])
		// PowerDNS does not list a kind without values.
		if s.Metadata[kind] = values; len(values) == 0 {
			delete(s.Metadata, kind)
		}
		out = metadataOf(kind, values)
		if err := s.checkSize(); err != nil {
			return err
		}
		return putSettings(tx, z.ID, s)
	})
	return out, err
}

// readMetadata reads the values in a body.
func readMetadata(o object) ([]string, error) {
	if _, ok := o.list("metadata"); !ok {
		return nil, refuse("metadata is not specified or not an array")
	}
	values, ok := o.texts("metadata")
	if !ok {
		return nil, refuse("metadata must be strings")
	}
	return values, nil
}

func (c *call) addMetadata() (reply, error) {
	if _, err := c.viewZone(c.ownZone); err != nil {
		return reply{}, err
	}
	o, err := c.body()
	if err != nil {
		return reply{}, err
	}
	// The zone was checked first: PowerDNS answers 404 for a missing zone, whatever the body is.
	kind, err := o.text("kind")
	if err != nil {
		return reply{}, refuse("kind is not specified or not a string")
	}
	if err := checkKind(kind); err != nil {
		return reply{}, err
	}
	values, err := readMetadata(o)
	if err != nil {
		return reply{}, err
	}
	out, err := c.changeMetadata(kind, func(have []string) []string {
		have = slices.Clone(have)
		for _, v := range values {
			// PowerDNS stores a value once, so a client may repeat its request after a timeout.
			if !slices.Contains(have, v) {
				have = append(have, v)
			}
		}
		return have
	})
	return reply{status: http.StatusCreated, body: out}, err
}

func (c *call) putMetadata() (reply, error) {
	if _, err := c.viewZone(c.ownZone); err != nil {
		return reply{}, err
	}
	o, err := c.body()
	if err != nil {
		return reply{}, err
	}
	if err := checkKind(c.r.PathValue("kind")); err != nil {
		return reply{}, err
	}
	values, err := readMetadata(o)
	if err != nil {
		return reply{}, err
	}
	out, err := c.changeMetadata(c.r.PathValue("kind"), func([]string) []string { return values })
	return ok(out), err
}

func (c *call) deleteMetadata() (reply, error) {
	if _, err := c.viewZone(c.ownZone); err != nil {
		return reply{}, err
	}
	if err := checkKind(c.r.PathValue("kind")); err != nil {
		return reply{}, err
	}
	_, err := c.changeMetadata(c.r.PathValue("kind"), func([]string) []string { return nil })
	return reply{status: http.StatusOK}, err
}

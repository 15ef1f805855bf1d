package powerdns

import (
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// settings are the fields of a zone that only this API has. Most of them have no effect here and are kept for clients
// that read them back.
type settings struct {
	Master   bool                `json:"master"` // the kind is Master and not Native; both are PRIMARY zones here
	Account  string              `json:"account"`
	Metadata map[string][]string `json:"metadata"` // values by kind
}

// The kinds of metadata that are also fields of a zone.
const (
	metaSOAEdit    = "SOA-EDIT"
	metaSOAEditAPI = "SOA-EDIT-API"
	metaRectify    = "API-RECTIFY"
)

func newSettings() settings {
	// PowerDNS gives this value to zones that its API creates. Clients that compare all fields would see a
	// difference.
	return settings{Metadata: map[string][]string{metaSOAEditAPI: {"DEFAULT"}}}
}

// first returns the first value of a kind of metadata, or "".
func (s settings) first(kind string) string {
	if values := s.Metadata[kind]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// settingsOf returns the settings of a zone, or the defaults when a client never set them.
func settingsOf(v store.View, id uuid.UUID) (settings, error) {
	s := settings{Metadata: map[string][]string{}}
	err := v.Object(store.KindPowerDNS, id.String(), &s)
	if errors.Is(err, store.ErrNotFound) {
		return newSettings(), nil
	}
	return s, err
}

func putSettings(tx *publish.Tx, id uuid.UUID, s settings) error {
	return tx.PutObject(store.KindPowerDNS, id.String(), s)
}

// The kinds of PowerDNS that zones have here.
const (
	kindNative = "Native"
	kindMaster = "Master"
	kindSlave  = "Slave"
)

// readKind returns the kind of a zone. As in PowerDNS, an unknown word means Native.
func readKind(s string) (kind zone.Kind, master bool, err error) {
	switch strings.ToUpper(s) {
	case "SLAVE", "SECONDARY":
		return zone.Secondary, false, nil
	case "MASTER", "PRIMARY":
		return zone.Primary, true, nil
	case "PRODUCER", "CONSUMER":
		return "", false, refuse("Zones of kind %s are not supported", s)
	}
	return zone.Primary, false, nil
}

func kindOf(z zone.Zone, s settings) string {
	switch {
	case z.Kind == zone.Secondary:
		return kindSlave
	case s.Master:
		return kindMaster
	}
	return kindNative
}

const maxSetting = 160 // characters of a text in the settings

// applySettings reads the settings in the body of a request into s, and the masters into z. It refuses what this server
// cannot do: a client must not believe that a zone is signed.
func (c *call) applySettings(o object, z *zone.Zone, s *settings) error {
	if text, ok := o.optionalText("kind"); ok {
		kind, master, err := readKind(text)
		if err != nil {
			return err
		}
		// A zone that becomes a secondary would lose its records at the next transfer. The client has to delete it
		// first.
		if kind != z.Kind {
			return refuse("The kind of zone '%s' cannot change to %s", z.Name, text)
		}
		s.Master = master
	}
	for key, kind := range map[string]string{"account": "", "soa_edit": metaSOAEdit, "soa_edit_api": metaSOAEditAPI} {
		text, ok := o.optionalText(key)
		switch {
		case len(text) > maxSetting:
			return refuse("Key '%s' is longer than %d bytes", key, maxSetting)
		case ok && kind == "":
			s.Account = text
		case ok:
			s.Metadata[kind] = []string{text}
		}
	}
	if rectify, ok := o["api_rectify"].(bool); ok {
		s.Metadata[metaRectify] = []string{map[bool]string{false: "0", true: "1"}[rectify]}
	}
	if sign, ok := o["dnssec"].(bool); ok && sign {
		return refuse("Zone '%s' cannot be signed: this server does not sign zones", z.Name)
	}
	// An empty value means "no NSEC3", which is always true here. Clients send it with every zone.
	if param, _ := o.optionalText("nsec3param"); param != "" {
		return refuse("NSEC3PARAM value provided for zone '%s', but zone is not DNSSEC secured.", z.Name)
	}
	if catalog, _ := o.optionalText("catalog"); catalog != "" {
		return refuse("Catalog zones are not supported")
	}
	for _, key := range []string{"master_tsig_key_ids", "slave_tsig_key_ids"} {
		if list, _ := o.list(key); len(list) > 0 {
			return refuse("Key '%s' is not supported: TSIG keys are for all zones here", key)
		}
	}
	return c.applyMasters(o, z)
}

func (c *call) applyMasters(o object, z *zone.Zone) error {
	if _, ok := o.list("masters"); !ok {
		return nil
	}
	masters, _ := o.texts("masters")
	for _, m := range masters {
		if m == "" {
			return refuse("Master can not be an empty string")
		}
		if _, err := transfer.ParseMaster(m); err != nil {
			return refuse("Master (%s) is not an IP address: %s", m, err)
		}
	}
	switch {
	case z.Kind != zone.Secondary && len(masters) > 0:
		return refuse("Zone '%s' is not of kind Slave and cannot have masters", z.Name)
	case z.Kind != zone.Secondary:
		return nil
	case len(masters) == 0:
		return refuse("A zone of kind Slave needs masters")
	}
	if err := c.rules.CheckMasters(masters); err != nil {
		return err
	}
	c.rules.SetMasters(z, masters)
	return nil
}

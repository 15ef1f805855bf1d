package designate

import (
	"time"

	"github.com/nameplane/nameplane/internal/zone"
)

// timestamp is a time in the format of Designate: with microseconds, and without the letter Z, which some clients
// refuse. The zero time is null.
type timestamp time.Time

const timeLayout = `"2006-01-02T15:04:05.000000"`

// MarshalJSON implements json.Marshaler.
func (t timestamp) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("null"), nil
	}
	return time.Time(t).UTC().AppendFormat(nil, timeLayout), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *timestamp) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = timestamp{}
		return nil
	}
	v, err := time.Parse(timeLayout, string(b))
	*t = timestamp(v)
	return err
}

// links holds the URLs of a resource or list.
type links struct {
	Self   string `json:"self"`
	Next   string `json:"next,omitempty"`
	Export string `json:"export,omitempty"`
	Zone   string `json:"zone,omitempty"`
}

// listMetadata is the metadata of a list.
type listMetadata struct {
	TotalCount *int `json:"total_count,omitempty"` // nil: the client does not want it
}

// wireZone is a zone in requests and replies. The order of its members is Designate's.
type wireZone struct {
	ID            string            `json:"id"`
	PoolID        string            `json:"pool_id"`
	ProjectID     string            `json:"project_id"`
	Name          string            `json:"name"`
	Email         string            `json:"email"`
	Description   *string           `json:"description"`
	TTL           uint32            `json:"ttl"`
	Serial        uint32            `json:"serial"`
	Status        string            `json:"status"`
	Action        string            `json:"action"`
	Version       int               `json:"version"`
	Attributes    map[string]string `json:"attributes"`
	Type          string            `json:"type"`
	Masters       []string          `json:"masters"`
	CreatedAt     timestamp         `json:"created_at"`
	UpdatedAt     timestamp         `json:"updated_at"`
	TransferredAt timestamp         `json:"transferred_at"`
	Shared        bool              `json:"shared"`
	Secondaries   []secondaryState  `json:"secondaries,omitempty"`
	Copy          *copyState        `json:"copy,omitempty"`
	Links         *links            `json:"links,omitempty"`
}

// wireRecordSet is a record set in requests and replies. The order of its members is Designate's.
type wireRecordSet struct {
	ID          string    `json:"id"`
	ZoneID      string    `json:"zone_id"`
	ProjectID   string    `json:"project_id"`
	Name        string    `json:"name"`
	ZoneName    string    `json:"zone_name"`
	Type        string    `json:"type"`
	Records     []string  `json:"records"`
	Description *string   `json:"description"`
	TTL         *uint32   `json:"ttl"`
	Status      string    `json:"status"`
	Action      string    `json:"action"`
	Version     int       `json:"version"`
	CreatedAt   timestamp `json:"created_at"`
	UpdatedAt   timestamp `json:"updated_at"`

	Alias *aliasState `json:"alias,omitempty"` // not in Designate; only in replies with a single ALIAS
	Links *links      `json:"links,omitempty"`
}

// wireChanges is the reply to a batch of changes.
type wireChanges struct {
	RecordSets []wireRecordSet `json:"recordsets"`
	Zone       wireZone        `json:"zone"`
}

// Statuses and actions. A committed change is served at once, so most resources are ACTIVE with the action NONE.
const (
	statusActive   = "ACTIVE"
	statusPending  = "PENDING"
	statusError    = "ERROR"
	statusComplete = "COMPLETE" // only tasks and transfers have it
	actionNone     = "NONE"
	actionCreate   = "CREATE"
	actionUpdate   = "UPDATE"
	actionDelete   = "DELETE"
)

// zoneOnWire returns the JSON form of a zone without links and without the state of other servers. Empty lists are [],
// not null: clients of Designate iterate over them.
func zoneOnWire(z zone.Zone, shared bool) wireZone {
	w := wireZone{ID: z.ID.String(), PoolID: z.Pool.String(), ProjectID: z.Project, Name: z.Spelled(), Email: z.Email,
		TTL: z.TTL, Serial: z.Serial, Status: statusActive, Action: actionNone, Description: z.Description,
		Masters: z.Masters, Type: string(z.Kind), Version: z.Version, CreatedAt: timestamp(z.Created),
		UpdatedAt: timestamp(z.Updated), Attributes: z.Attributes, Shared: shared}
	if w.Masters == nil {
		w.Masters = []string{}
	}
	if w.Attributes == nil {
		w.Attributes = map[string]string{}
	}
	return w
}

func recordSetOnWire(z zone.Zone, s zone.RecordSet) wireRecordSet {
	return wireRecordSet{ID: s.ID.String(), ZoneID: z.ID.String(), ZoneName: z.Spelled(), ProjectID: z.Project,
		Name: s.Spelled(), Type: s.Type.String(), Records: s.Texts(), TTL: s.TTL,
		Description: s.Description, Status: statusActive, Action: actionNone, Version: s.Version,
		CreatedAt: timestamp(s.Created), UpdatedAt: timestamp(s.Updated)}
}

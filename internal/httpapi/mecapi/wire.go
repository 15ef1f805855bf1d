package mecapi

import (
	"time"

	"github.com/nameplane/nameplane/internal/mec"
)

// wireRule is MEC 011's DnsRule. A rule without ttl, which never expires, is told without it.
type wireRule struct {
	ID          string     `json:"dnsRuleId"`
	Domain      string     `json:"domainName"`
	AddrType    string     `json:"ipAddressType"`
	Addr        string     `json:"ipAddress"`
	TTL         *uint32    `json:"ttl,omitempty"`
	State       string     `json:"state"`
	LoadBalance bool       `json:"loadBalance,omitempty"`   // ours
	ExpiresAt   *time.Time `json:"expiresAt,omitempty"`     // ours
	SilencedBy  string     `json:"silencedBy,omitempty"`    // ours: the zone that is asked before the rule
	Grant       string     `json:"grantedDomain,omitempty"` // ours: where the application may choose the name
}

func fromRule(r mec.Rule, extensions bool) wireRule {
	w := wireRule{ID: r.ID, Domain: r.Domain, AddrType: r.AddrType(), Addr: r.Addr.String(), TTL: r.TTL, State: string(r.State)}
	if extensions {
		w.LoadBalance = r.LoadBalance
		if !r.ExpiresAt.IsZero() {
			w.ExpiresAt = &r.ExpiresAt
		}
		if !r.Grant.IsZero() {
			w.Grant = r.Grant.String()
		}
	}
	return w
}

// extensions reports whether this door takes and shows what is not in ETSI's schema: to the platform always.
func (c *call) extensions() bool { return c.name == "mm5" || c.EdgeGallery }

// wire is a rule as this door shows it.
func (c *call) wire(r mec.Rule) wireRule {
	w := fromRule(r, c.extensions())
	if z := c.Service.SilencedBy(r.Name); c.extensions() && !z.IsZero() {
		w.SilencedBy = z.String()
	}
	return w
}

func (c *call) wireAll(list []mec.Rule) []wireRule {
	out := make([]wireRule, len(list))
	for i, r := range list {
		out[i] = c.wire(r)
	}
	return out
}

// ruleInput is a DnsRule as clients write it; what they leave out is nil.
type ruleInput struct {
	ID          *string `json:"dnsRuleId"`
	Domain      *string `json:"domainName"`
	AddrType    *string `json:"ipAddressType"`
	Addr        *string `json:"ipAddress"`
	TTL         *int64  `json:"ttl"`
	State       *string `json:"state"`
	LoadBalance *bool   `json:"loadBalance"`
	ExpiresAt   *string `json:"expiresAt"`
	Grant       *string `json:"grantedDomain"`
}

// onlyState reports whether nothing else is said.
func (in ruleInput) onlyState() bool {
	return in == ruleInput{State: in.State} && in.State != nil
}

// rule is a whole rule as a client wrote it.
func (in ruleInput) rule() (mec.Rule, error) {
	d := mec.Draft{ID: val(in.ID), Domain: val(in.Domain), AddrType: val(in.AddrType), Addr: val(in.Addr), TTL: in.TTL,
		State: val(in.State), LoadBalance: val(in.LoadBalance), Grant: val(in.Grant)}
	if in.ExpiresAt != nil {
		t, err := time.Parse(time.RFC3339, *in.ExpiresAt)
		if err != nil {
			return mec.Rule{}, &mec.FieldError{Field: "expiresAt", Msg: "must be a time such as 2030-01-31T12:00:00Z"}
		}
		d.ExpiresAt = t
	}
	return mec.ParseRule(d)
}

func val[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// link is MEC 011's LinkType.
type link struct {
	Href string `json:"href"`
}

// subscription is our counterpart of MEC 011's AppTerminationNotificationSubscription. What comes after the links is ours.
type subscription struct {
	Type     string            `json:"subscriptionType"`
	Callback string            `json:"callbackReference"`
	App      string            `json:"appInstanceId"`
	Links    subscriptionLinks `json:"_links"`

	State     string `json:"state"`               // ACTIVE, or FAILED when it was given up
	Delivered uint64 `json:"lastSequence"`        // of the last notification that arrived, or that was there before
	Missed    uint64 `json:"missed,omitempty"`    // notifications that were gone before they could be sent
	Failures  int    `json:"failures,omitempty"`  // attempts in a row
	LastError string `json:"lastError,omitempty"` // of the newest failure
}

type subscriptionLinks struct {
	Self link `json:"self"`
}

// subscriptionInput is a subscription as clients write it.
type subscriptionInput struct {
	Type     *string `json:"subscriptionType"`
	Callback *string `json:"callbackReference"`
	App      *string `json:"appInstanceId"`
}

// linkList is MEC 011's MecAppSuptApiSubscriptionLinkList. Version 2.1.1 calls the type of a link subscriptionType, version
// 2.2.1 rel; each reads its own.
type linkList struct {
	Links struct {
		Self          link               `json:"self"`
		Subscriptions []subscriptionLink `json:"subscriptions"`
	} `json:"_links"`
}

type subscriptionLink struct {
	Href string `json:"href"`
	Type string `json:"subscriptionType"`
	Rel  string `json:"rel"`
}

// The types of what MEC 011 does not have.
const (
	subscriptionType = "DnsRuleChangeNotificationSubscription"
	notificationType = "DnsRuleChangeNotification"
)

// notification tells of one change of one rule, to a callback or in a stream.
type notification struct {
	Type     string             `json:"notificationType"`
	App      string             `json:"appInstanceId"`
	Change   string             `json:"changeType"` // CREATED, UPDATED, DELETED, EXPIRED
	Sequence uint64             `json:"sequence"`
	Time     timeStamp          `json:"timeStamp"`
	Rule     wireRule           `json:"dnsRule"` // as it is now, or was last
	Links    *notificationLinks `json:"_links,omitempty"`
}

// timeStamp is MEC 011's.
type timeStamp struct {
	Seconds     int64 `json:"seconds"`
	NanoSeconds int   `json:"nanoSeconds"`
}

type notificationLinks struct {
	Subscription link `json:"subscription"`
}

func fromEvent(e mec.Event, extensions bool) notification {
	return notification{Type: notificationType, App: e.Rule.App, Change: string(e.Kind), Sequence: e.Seq,
		Time: timeStamp{e.Time.Unix(), e.Time.Nanosecond()}, Rule: fromRule(e.Rule, extensions)}
}

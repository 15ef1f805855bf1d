package mecapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

const (
	ruleListPath    = "/mepcfg/mec_app_config/v1/rules/{app}/dns_rules"
	configPath      = "/mepcfg/app_lcm/v1/applications/{app}/appd_configuration"
	taskPath        = "/mepcfg/app_lcm/v1/tasks/{task}/appd_configuration"
	terminationPath = "/mep/mec_app_support/v1/applications/{app}/AppInstanceTermination"
	capabilityPath  = "/mepcfg/mec_platform_config/v1/capabilities"

	unprocessable = http.StatusUnprocessableEntity
	badRequest    = http.StatusBadRequest
)

// edgeGalleryRuleRoutes is the Mm5 API of EdgeGallery 0.9 and 1.0: one call for each rule, and the platform chooses the
// ids.
var edgeGalleryRuleRoutes = []Route{
	{http.MethodGet, ruleListPath, "List the DNS rules of an application (EdgeGallery 0.9)", (*call).listRules, 0, 0},
	{http.MethodPost, ruleListPath, "Create a DNS rule (EdgeGallery 0.9)", (*call).createEdgeGalleryRule, mm5Body,
		unprocessable},
	{http.MethodGet, ruleListPath + "/{rule}", "Show a DNS rule (EdgeGallery 0.9)", (*call).showRule, 0, 0},
	{http.MethodPut, ruleListPath + "/{rule}", "Switch a DNS rule (EdgeGallery 0.9)", (*call).putEdgeGalleryRule, mm5Body,
		unprocessable},
	{http.MethodDelete, ruleListPath + "/{rule}", "Delete a DNS rule (EdgeGallery 0.9)", (*call).deleteEdgeGalleryRule, 0,
		0},
}

// edgeGalleryTaskRoutes is the Mm5 API of EdgeGallery since 1.0.1: a task sets the whole configuration of an
// application.
var edgeGalleryTaskRoutes = []Route{
	{http.MethodGet, configPath, "Show the configuration of an application (EdgeGallery)", (*call).showConfig, 0, 0},
	{http.MethodPost, configPath, "Configure an application (EdgeGallery)", (*call).createConfig, mm5Body, badRequest},
	{http.MethodPut, configPath, "Change the configuration of an application (EdgeGallery)", (*call).updateConfig, mm5Body,
		badRequest},
	{http.MethodDelete, configPath, "Delete the configuration of an application (EdgeGallery)", (*call).deleteConfig, 0,
		0},
	{http.MethodGet, taskPath, "Show the progress of a task (EdgeGallery)", (*call).showTask, 0, 0},
	{http.MethodDelete, terminationPath, "Terminate an application (EdgeGallery)", (*call).terminateEdgeGallery, 0, 0},
	{http.MethodGet, capabilityPath, "List the capabilities of the platform (EdgeGallery)", (*call).listCapabilities, 0,
		0},
	{http.MethodGet, capabilityPath + "/{capability}", "Show a capability of the platform (EdgeGallery)",
		(*call).showCapability, 0, 0},
}

// createEdgeGalleryRule creates a rule with a new id. Like EdgeGallery, it refuses a second rule for the same name and
// address family with 422.
func (c *call) createEdgeGalleryRule() (reply, error) {
	var in ruleInput
	if err := c.decode(&in); err != nil {
		return reply{}, err
	}
	in.ID = new(uuid.NewString())
	if _, err := mec.ParseState(val(in.State)); err != nil {
		return reply{}, err
	}
	r, err := in.rule(c.Service.Special())
	if err != nil {
		return reply{}, err
	}
	r.App = c.app
	r, err = c.Service.Create(c.r.Context(), c.actor(), r, func(have []mec.Rule) error {
		for _, h := range have {
			if h.Name == r.Name && h.Type() == r.Type() {
				return &mechttp.Fault{Status: unprocessable, Detail: "Resource already exists: rule " + h.ID + " is for this name"}
			}
		}
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	c.warn(r)
	return c.ruleReply(http.StatusOK, r), nil
}

func (c *call) putEdgeGalleryRule() (reply, error) { return c.update(stateOnly) }

// deleteEdgeGalleryRule returns the deleted rule, as EdgeGallery does.
func (c *call) deleteEdgeGalleryRule() (reply, error) {
	r, err := c.Service.Delete(c.r.Context(), c.actor(), c.app, c.ruleID(), c.ifMatch)
	return ok(c.wire(r)), err
}

// Bounds of a configuration. They are EdgeGallery's.
const (
	maxAppName      = 63
	maxRuleID       = 63
	maxDNSRules     = 32
	maxTrafficRules = 16
)

// appdInput is the configuration of an application. Traffic rules are checked, so that a wrong one is reported, but
// they are not stored: this server does not steer traffic.
type appdInput struct {
	TrafficRules []trafficRule     `json:"appTrafficRule"`
	DNSRules     []json.RawMessage `json:"appDNSRule"`
	SupportMp1   bool              `json:"appSupportMp1"`
	Name         string            `json:"appName"`
}

// trafficRule has the members of TrafficRuleDescriptor in ETSI MEC 010-2. Only their types are checked.
type trafficRule struct {
	ID         *string           `json:"trafficRuleId"`
	FilterType string            `json:"filterType"`
	Priority   int64             `json:"priority"`
	Filters    []json.RawMessage `json:"trafficFilter"`
	Action     string            `json:"action"`
	State      string            `json:"state"`
	Interfaces []json.RawMessage `json:"dstInterface"`
}

// appdConfig is a configuration in replies.
type appdConfig struct {
	TrafficRules []trafficRule `json:"appTrafficRule"`
	DNSRules     []wireRule    `json:"appDNSRule"`
	SupportMp1   bool          `json:"appSupportMp1"`
	Name         string        `json:"appName"`
}

// appdExtra holds the members of a configuration that are stored only for replies.
type appdExtra struct {
	SupportMp1 bool `json:"mp1,omitempty"`
}

// config reads and checks a configuration.
func (in appdInput) config(special specialaddr.Table) (mec.Config, error) {
	bad := func(field, format string, a ...any) (mec.Config, error) {
		return mec.Config{}, &mec.FieldError{Field: field, Msg: fmt.Sprintf(format, a...)}
	}
	if n := len(in.Name); n < 1 || n > maxAppName {
		return bad("appName", "must have 1 to %d bytes", maxAppName)
	}
	if len(in.DNSRules) > maxDNSRules {
		return bad("appDNSRule", "has more than %d rules", maxDNSRules)
	}
	if len(in.TrafficRules) > maxTrafficRules {
		return bad("appTrafficRule", "has more than %d rules", maxTrafficRules)
	}
	for i, t := range in.TrafficRules {
		if n := len(val(t.ID)); n < 1 || n > maxRuleID {
			return bad(fmt.Sprintf("appTrafficRule[%d].trafficRuleId", i), "must have 1 to %d bytes", maxRuleID)
		}
	}
	list, err := parseRules("appDNSRule", in.DNSRules, special)
	if err != nil {
		return mec.Config{}, err
	}
	for i, r := range list {
		if len(r.ID) > maxRuleID {
			return bad(fmt.Sprintf("appDNSRule[%d].dnsRuleId", i), "must have 1 to %d bytes", maxRuleID)
		}
		if r.TTL != nil && *r.TTL == 0 { // EdgeGallery's MEPM sends 0 for a rule without a TTL
			list[i].TTL = nil
		}
	}
	extra, err := json.Marshal(appdExtra{in.SupportMp1})
	return mec.Config{Name: in.Name, Rules: list, Extra: extra}, err
}

func (c *call) createConfig() (reply, error) { return c.configure(mec.TaskCreate) }
func (c *call) updateConfig() (reply, error) { return c.configure(mec.TaskUpdate) }

func (c *call) deleteConfig() (reply, error) {
	t, err := c.Service.Configure(c.r.Context(), c.actor(), c.app, mec.TaskDelete, mec.Config{})
	return ok(fromTask(t)), err
}

// configure creates a task. Errors in the body are returned at once. Conflicts with rules of other applications fail
// the task.
func (c *call) configure(kind mec.TaskKind) (reply, error) {
	var in appdInput
	if err := c.decode(&in); err != nil {
		return reply{}, err
	}
	cfg, err := in.config(c.Service.Special())
	if err != nil {
		return reply{}, err
	}
	c.warn(cfg.Rules...)
	t, err := c.Service.Configure(c.r.Context(), c.actor(), c.app, kind, cfg)
	return ok(fromTask(t)), err
}

func (c *call) showConfig() (reply, error) {
	if err := c.reserveRules(); err != nil {
		return reply{}, err
	}
	cfg, err := c.Service.Configuration(c.app)
	if err != nil {
		return reply{}, err
	}
	var extra appdExtra
	if len(cfg.Extra) > 0 {
		if err := json.Unmarshal(cfg.Extra, &extra); err != nil {
			return reply{}, err
		}
	}
	return ok(appdConfig{[]trafficRule{}, c.wireAll(cfg.Rules), extra.SupportMp1, cfg.Name}), nil
}

// wireTask is a task in the form of EdgeGallery, including the capital letter of "Detailed".
type wireTask struct {
	ID     string `json:"taskId"`
	App    string `json:"appInstanceId"`
	Result string `json:"configResult"`
	Phase  string `json:"configPhase"` // percent
	Detail string `json:"Detailed"`
}

func fromTask(t mec.Task) wireTask {
	return wireTask{t.ID, t.App, string(t.State), strconv.Itoa(t.Progress), t.Detail}
}

func (c *call) showTask() (reply, error) {
	t, err := c.Service.Task(c.r.PathValue("task"))
	return ok(fromTask(t)), err
}

// terminateEdgeGallery deletes everything that belongs to an application. Like EdgeGallery, it returns 200 for an
// unknown application too.
func (c *call) terminateEdgeGallery() (reply, error) {
	if _, err := c.revoke(c.app); err != nil {
		return reply{}, err
	}
	_, err := c.Service.Terminate(c.r.Context(), c.actor(), c.app)
	return ok(""), err
}

// capability is a service of the platform. There is one: the DNS rules of this server.
type capability struct {
	ID        string     `json:"capabilityId"`
	Name      string     `json:"capabilityName"`
	Status    string     `json:"status"`
	Version   string     `json:"version"`
	Consumers []consumer `json:"consumers"`
}

type consumer struct {
	App string `json:"applicationInstanceId"`
}

const dnsCapability = "dns"

// maxConsumers bounds the applications in a reply: there may be very many.
const (
	maxConsumers   = 1000
	consumerMemory = 512 // bytes of memory that an application takes in the reply
)

// capabilityDNS returns the DNS capability, with the applications that have rules among the first maxConsumers.
func (c *call) capabilityDNS() (capability, error) {
	out := capability{dnsCapability, "DNS rules", "ACTIVE", "v1", []consumer{}}
	if err := httpapi.Reserve(c.r.Context(), maxConsumers*consumerMemory); err != nil {
		return out, err
	}
	apps, err := c.Service.Apps("", maxConsumers)
	for _, a := range apps {
		if a.Rules > 0 {
			out.Consumers = append(out.Consumers, consumer{a.ID})
		}
	}
	return out, err
}

func (c *call) listCapabilities() (reply, error) {
	one, err := c.capabilityDNS()
	return ok([]capability{one}), err
}

func (c *call) showCapability() (reply, error) {
	if id := c.r.PathValue("capability"); id != dnsCapability {
		return reply{}, &mechttp.Fault{Status: http.StatusNotFound,
			Detail: fmt.Sprintf("there is no capability %.140q here", id)}
	}
	one, err := c.capabilityDNS()
	return ok(one), err
}

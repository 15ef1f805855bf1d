package mecapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
)

const (
	oldRules     = "/mepcfg/mec_app_config/v1/rules/{app}/dns_rules"
	appd         = "/mepcfg/app_lcm/v1/applications/{app}/appd_configuration"
	taskPath     = "/mepcfg/app_lcm/v1/tasks/{task}/appd_configuration"
	ended        = "/mep/mec_app_support/v1/applications/{app}/AppInstanceTermination"
	capabilities = "/mepcfg/mec_platform_config/v1/capabilities"

	unprocessable = http.StatusUnprocessableEntity
	badRequest    = http.StatusBadRequest
)

// edgeGalleryRuleRoutes are Mm5 of EdgeGallery 0.9 and 1.0: rule by rule, with ids of the platform's own making.
var edgeGalleryRuleRoutes = []Route{
	{http.MethodGet, oldRules, "List the DNS rules of an application (EdgeGallery 0.9)", (*call).listRules, 0, 0},
	{http.MethodPost, oldRules, "Create a DNS rule (EdgeGallery 0.9)", (*call).createOld, mm5Body, unprocessable},
	{http.MethodGet, oldRules + "/{rule}", "Show a DNS rule (EdgeGallery 0.9)", (*call).showRule, 0, 0},
	{http.MethodPut, oldRules + "/{rule}", "Switch a DNS rule (EdgeGallery 0.9)", (*call).putOld, mm5Body, unprocessable},
	{http.MethodDelete, oldRules + "/{rule}", "Delete a DNS rule (EdgeGallery 0.9)", (*call).deleteOld, 0, 0},
}

// edgeGalleryTaskRoutes are Mm5 of EdgeGallery since 1.0.1: the whole configuration of an application, as a task.
var edgeGalleryTaskRoutes = []Route{
	{http.MethodGet, appd, "Show the configuration of an application (EdgeGallery)", (*call).showConfig, 0, 0},
	{http.MethodPost, appd, "Configure an application (EdgeGallery)", (*call).createConfig, mm5Body, badRequest},
	{http.MethodPut, appd, "Change the configuration of an application (EdgeGallery)", (*call).updateConfig, mm5Body, badRequest},
	{http.MethodDelete, appd, "Delete the configuration of an application (EdgeGallery)", (*call).deleteConfig, 0, 0},
	{http.MethodGet, taskPath, "Show how a task goes (EdgeGallery)", (*call).showTask, 0, 0},
	{http.MethodDelete, ended, "Terminate an application (EdgeGallery)", (*call).terminateOld, 0, 0},
	{http.MethodGet, capabilities, "List the capabilities of the platform (EdgeGallery)", (*call).listCapabilities, 0, 0},
	{http.MethodGet, capabilities + "/{capability}", "Show a capability of the platform (EdgeGallery)", (*call).showCapability, 0, 0},
}

// createOld makes a rule with an id of our own. A second rule for the same name and family is refused, as it was there.
func (c *call) createOld() (reply, error) {
	var in ruleInput
	if err := c.decode(&in); err != nil {
		return reply{}, err
	}
	in.ID = new(uuid.NewString())
	if _, err := mec.ParseState(val(in.State)); err != nil {
		return reply{}, err
	}
	r, err := in.rule()
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
	return c.told(http.StatusOK, r), nil
}

func (c *call) putOld() (reply, error) { return c.update(stateOnly) }

// deleteOld answers with what the rule was.
func (c *call) deleteOld() (reply, error) {
	r, err := c.Service.Delete(c.r.Context(), c.actor(), c.app, c.ruleID(), c.ifMatch)
	return ok(c.wire(r)), err
}

// Bounds of a configuration, as EdgeGallery has them.
const (
	maxAppName      = 63
	maxRuleID       = 63
	maxDNSRules     = 32
	maxTrafficRules = 16
)

// appdInput is the configuration of an application. Traffic rules are read, so that a wrong one is told, and not kept: nothing
// here steers traffic.
type appdInput struct {
	TrafficRules []trafficRule     `json:"appTrafficRule"`
	DNSRules     []json.RawMessage `json:"appDNSRule"`
	SupportMp1   bool              `json:"appSupportMp1"`
	Name         string            `json:"appName"`
}

// trafficRule is MEC 010-2's TrafficRuleDescriptor, as far as its shape goes.
type trafficRule struct {
	ID         *string           `json:"trafficRuleId"`
	FilterType string            `json:"filterType"`
	Priority   int64             `json:"priority"`
	Filters    []json.RawMessage `json:"trafficFilter"`
	Action     string            `json:"action"`
	State      string            `json:"state"`
	Interfaces []json.RawMessage `json:"dstInterface"`
}

// appdConfig is what a configuration is told as.
type appdConfig struct {
	TrafficRules []trafficRule `json:"appTrafficRule"`
	DNSRules     []wireRule    `json:"appDNSRule"`
	SupportMp1   bool          `json:"appSupportMp1"`
	Name         string        `json:"appName"`
}

// appdExtra is what is kept of a configuration for the reply alone.
type appdExtra struct {
	SupportMp1 bool `json:"mp1,omitempty"`
}

// config reads and checks a configuration.
func (in appdInput) config() (mec.Config, error) {
	bad := func(field, format string, a ...any) (mec.Config, error) {
		return mec.Config{}, &mec.FieldError{Field: field, Msg: fmt.Sprintf(format, a...)}
	}
	if n := len(in.Name); n < 1 || n > maxAppName {
		return bad("appName", "must have 1 to %d octets", maxAppName)
	}
	if len(in.DNSRules) > maxDNSRules {
		return bad("appDNSRule", "has more than %d rules", maxDNSRules)
	}
	if len(in.TrafficRules) > maxTrafficRules {
		return bad("appTrafficRule", "has more than %d rules", maxTrafficRules)
	}
	for i, t := range in.TrafficRules {
		if n := len(val(t.ID)); n < 1 || n > maxRuleID {
			return bad(fmt.Sprintf("appTrafficRule[%d].trafficRuleId", i), "must have 1 to %d octets", maxRuleID)
		}
	}
	list, err := parseRules("appDNSRule", in.DNSRules)
	if err != nil {
		return mec.Config{}, err
	}
	for i, r := range list {
		if len(r.ID) > maxRuleID {
			return bad(fmt.Sprintf("appDNSRule[%d].dnsRuleId", i), "must have 1 to %d octets", maxRuleID)
		}
		if r.TTL != nil && *r.TTL == 0 { // its MEPM says so of a rule without one
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

// configure begins a task. What is wrong with the body is told at once, what is wrong with the rules beside others' in the
// task.
func (c *call) configure(kind mec.TaskKind) (reply, error) {
	var in appdInput
	if err := c.decode(&in); err != nil {
		return reply{}, err
	}
	cfg, err := in.config()
	if err != nil {
		return reply{}, err
	}
	c.warn(cfg.Rules...)
	t, err := c.Service.Configure(c.r.Context(), c.actor(), c.app, kind, cfg)
	return ok(fromTask(t)), err
}

func (c *call) showConfig() (reply, error) {
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

// wireTask is EdgeGallery's, capital letter and all.
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

// terminateOld removes everything of an application. EdgeGallery answers so for an unknown one too.
func (c *call) terminateOld() (reply, error) {
	if _, err := c.revoke(c.app); err != nil {
		return reply{}, err
	}
	_, err := c.Service.Terminate(c.r.Context(), c.actor(), c.app)
	return ok(""), err
}

// capability is a service of the platform. There is one: what this program does.
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

// maxConsumers is how many applications a capability names.
const maxConsumers = 1000

// capabilityDNS tells of the first of the applications that have rules, of which there may be very many.
func (c *call) capabilityDNS() (capability, error) {
	out := capability{dnsCapability, "DNS rules", "ACTIVE", "v1", []consumer{}}
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
		return reply{}, &mechttp.Fault{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no capability %.140q here", id)}
	}
	one, err := c.capabilityDNS()
	return ok(one), err
}

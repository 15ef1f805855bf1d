package dnsnameresolver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
)

// api is the part of an API server that the plugin uses: objects, watches, patches with tests, and the rejections that
// matter.
type api struct {
	t        testing.TB
	server   *httptest.Server
	mu       sync.Mutex
	version  int
	objects  map[string]*v1alpha1.DNSNameResolver // by namespace/name
	log      []event
	moved    chan struct{}
	writes   int
	refusals int
	events   []string
	lists    map[string]list // other objects, by plural
	denied   []string        // plurals that are forbidden
	names    *regexp.Regexp  // pattern of allowed names in the status
	noPatch  bool
	noPut    bool
	down     bool
	delay    time.Duration
	between  func() // called before a write is applied
	skew     time.Duration
}

type event struct {
	version int
	kind    string
	object  *v1alpha1.DNSNameResolver
}

func newAPI(t testing.TB) *api {
	a := &api{t: t, objects: map[string]*v1alpha1.DNSNameResolver{}, moved: make(chan struct{}),
		names: regexp.MustCompile(`^(\*\*?\.)?([-a-z0-9_]{1,63}\.){2,}$`)}
	a.lists = map[string]list{"endpointslices": {version: "discovery.k8s.io/v1", kind: "EndpointSlice",
		items: []string{`,"addressType":"IPv4","endpoints":[{"addresses":["127.0.0.1"]}]`}}}
	a.server = httptest.NewServer(a)
	t.Cleanup(func() { a.server.CloseClientConnections(); a.server.Close() })
	return a
}

func (a *api) store() *store {
	s, err := newStoreFor(&rest.Config{Host: a.server.URL})
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

func (a *api) putLocked(o *v1alpha1.DNSNameResolver, kind string) {
	a.version++
	o = o.DeepCopy()
	o.ResourceVersion = strconv.Itoa(a.version)
	key := o.Namespace + "/" + o.Name
	if kind == "DELETED" {
		delete(a.objects, key)
	} else {
		a.objects[key] = o
	}
	a.log = append(a.log, event{a.version, kind, o})
	close(a.moved)
	a.moved = make(chan struct{})
}

// create creates an object for a pattern and derives its name from the pattern.
func (a *api) create(pattern string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := strings.NewReplacer("*", "x", ".", "-").Replace(pattern) + "1"
	a.putLocked(&v1alpha1.DNSNameResolver{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "DNSNameResolver"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "egress", Name: name, UID: types.UID(fmt.Sprint("uid", a.version))},
		Spec:       v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(pattern)},
	}, "ADDED")
	return name
}

func (a *api) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.putLocked(a.objects["egress/"+name], "DELETED")
}

func (a *api) get(name string) *v1alpha1.DNSNameResolver {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.objects["egress/"+name].DeepCopy()
}

// edit changes an object as another client.
func (a *api) edit(name string, f func(*v1alpha1.DNSNameResolver)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.editLocked(name, f)
}

func (a *api) editLocked(name string, f func(*v1alpha1.DNSNameResolver)) {
	o := a.objects["egress/"+name].DeepCopy()
	f(o)
	a.putLocked(o, "MODIFIED")
}

func (a *api) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *api) counts() (writes, refusals int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes, a.refusals
}

// ServeHTTP serves the API.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	down, delay := a.down, a.delay
	w.Header().Set("Date", time.Now().Add(a.skew).UTC().Format(http.TimeFormat))
	a.mu.Unlock()
	if down {
		a.fail(w, http.StatusServiceUnavailable, "ServiceUnavailable", "down")
		return
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/network.openshift.io/v1alpha1/"), "/")
	switch {
	case strings.HasSuffix(r.URL.Path, "/events"):
		var e struct{ Reason, Message string }
		_ = json.NewDecoder(r.Body).Decode(&e)
		a.set(func() { a.events = append(a.events, e.Reason+": "+e.Message) })
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"egress"}}`)
	case a.isList(path[len(path)-1]):
		a.lists[path[len(path)-1]].serve(w, r)
	case slices.Contains(a.denied, path[len(path)-1]):
		a.fail(w, http.StatusForbidden, "Forbidden", r.URL.Path)
	case path[len(path)-1] == fetch.Resource && r.URL.Query().Get("watch") != "":
		a.watch(w, r)
	case path[len(path)-1] == fetch.Resource:
		a.list(w)
	case len(path) >= 4 && path[0] == "namespaces" && path[2] == fetch.Resource:
		time.Sleep(delay)
		a.one(w, r, path[1]+"/"+path[3])
	default:
		a.fail(w, http.StatusNotFound, "NotFound", r.URL.Path)
	}
}

// list is a set of objects that never change. Each value is the JSON that follows the name.
type list struct {
	version, kind string
	items         []string
	delay         time.Duration
}

func (a *api) isList(plural string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lists[plural].kind != ""
}

func (l list) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	object := func(i int, annotations, rest string) string {
		const format = `{"kind":%q,"apiVersion":%q,"metadata":` +
			`{"name":"o%d","namespace":"egress","resourceVersion":"1"%s}%s}`
		return fmt.Sprintf(format, l.kind, l.version, i, annotations, rest)
	}
	var all []string
	for i, rest := range l.items {
		all = append(all, object(i, "", rest))
	}
	time.Sleep(l.delay)
	if r.URL.Query().Get("watch") == "" {
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[%s]}`, l.kind, l.version,
			strings.Join(all, ","))
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, o := range all {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", o)
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":%s}`+"\n",
			object(0, `,"annotations":{"k8s.io/initial-events-end":"true"}`, ""))
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func (a *api) fail(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
		Code: int32(code), Reason: metav1.StatusReason(reason), Message: message}
	if cause := metav1.CauseTypeFieldValueInvalid; reason == "Invalid" {
		if strings.HasSuffix(message, "twice") {
			cause = metav1.CauseTypeFieldValueDuplicate
		}
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause, Message: message}}}
	}
	_ = json.NewEncoder(w).Encode(status)
}

func (a *api) list(w http.ResponseWriter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := v1alpha1.DNSNameResolverList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
		Kind: "DNSNameResolverList"}}
	l.ResourceVersion = strconv.Itoa(a.version)
	for _, o := range a.objects {
		l.Items = append(l.Items, *o)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(l)
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if a.mu.Lock(); from > a.version {
		a.mu.Unlock()
		a.fail(w, http.StatusGone, "Expired", "no such version")
		return
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	send := func(kind string, o *v1alpha1.DNSNameResolver) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": o})
		w.(http.Flusher).Flush()
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		a.mu.Lock()
		from = a.version
		for _, o := range a.objects {
			send("ADDED", o)
		}
		end := &v1alpha1.DNSNameResolver{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(),
			Kind: "DNSNameResolver"}}
		end.ResourceVersion, end.Annotations = strconv.Itoa(from),
			map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		send("BOOKMARK", end)
		a.mu.Unlock()
	}
	for {
		a.mu.Lock()
		log, moved := a.log, a.moved
		a.mu.Unlock()
		for _, e := range log {
			if e.version > from {
				send(e.kind, e.object)
				from = e.version
			}
		}
		select {
		case <-moved:
		case <-r.Context().Done():
			return
		}
	}
}

func (a *api) one(w http.ResponseWriter, r *http.Request, key string) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method != http.MethodGet && a.between != nil {
		f := a.between
		a.between = nil
		f()
	}
	o := a.objects[key]
	if o == nil {
		a.fail(w, http.StatusNotFound, "NotFound", key)
		return
	}
	if r.Method != http.MethodGet {
		code, reason, err := a.writeLocked(o, r.Method, r.Header.Get("Content-Type"), body)
		if err != nil {
			a.refusals++
			a.fail(w, code, reason, err.Error())
			return
		}
		a.writes++
		o = a.objects[key]
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o)
}

// applyLocked implements server-side apply by a manager that has applied nothing before: the result is the union of
// stored and applied fields, by names and addresses.
func (a *api) applyLocked(o *v1alpha1.DNSNameResolver, body []byte) (int, string, error) {
	var in v1alpha1.DNSNameResolver
	if err := json.Unmarshal(body, &in); err != nil {
		return http.StatusBadRequest, "BadRequest", err
	}
	if in.UID != o.UID {
		return http.StatusConflict, "Conflict", fmt.Errorf("another object")
	}
	next := o.DeepCopy()
	for _, n := range in.Status.ResolvedNames {
		i := slices.IndexFunc(next.Status.ResolvedNames,
			func(x v1alpha1.DNSNameResolverResolvedName) bool { return x.DNSName == n.DNSName })
		if i < 0 {
			next.Status.ResolvedNames = append(next.Status.ResolvedNames, n)
			continue
		}
		next.Status.ResolvedNames[i].Conditions = n.Conditions
		for _, addr := range n.ResolvedAddresses {
			had := next.Status.ResolvedNames[i].ResolvedAddresses
			if !slices.ContainsFunc(had, func(x v1alpha1.DNSNameResolverResolvedAddress) bool { return x.IP == addr.IP }) {
				next.Status.ResolvedNames[i].ResolvedAddresses = append(had, addr)
			}
		}
	}
	a.putLocked(next, "MODIFIED")
	return 0, "", nil
}

func (a *api) writeLocked(o *v1alpha1.DNSNameResolver, method, kind string, body []byte) (int, string, error) {
	next := &v1alpha1.DNSNameResolver{}
	switch {
	case kind == string(types.ApplyPatchType) && !a.noPatch:
		return a.applyLocked(o, body)
	case method == http.MethodPatch && a.noPatch:
		return http.StatusForbidden, "Forbidden", fmt.Errorf("no patches")
	case method == http.MethodPut && a.noPut:
		return http.StatusForbidden, "Forbidden", fmt.Errorf("no replacements")
	case method == http.MethodPatch:
		p, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return http.StatusBadRequest, "BadRequest", err
		}
		old, _ := json.Marshal(o)
		fresh, err := p.Apply(old)
		if err != nil {
			return http.StatusUnprocessableEntity, "", err
		}
		body = fresh
	}
	if err := json.Unmarshal(body, next); err != nil {
		return http.StatusBadRequest, "BadRequest", err
	}
	if method == http.MethodPut && next.ResourceVersion != o.ResourceVersion {
		return http.StatusConflict, "Conflict", fmt.Errorf("the object has been modified")
	}
	seen := map[v1alpha1.DNSName]bool{}
	for _, n := range next.Status.ResolvedNames {
		if seen[n.DNSName] {
			return http.StatusUnprocessableEntity, "Invalid", fmt.Errorf("%s is there twice", n.DNSName)
		}
		if !a.names.MatchString(string(n.DNSName)) {
			return http.StatusUnprocessableEntity, "Invalid", fmt.Errorf("%s is no name", n.DNSName)
		}
		seen[n.DNSName] = true
	}
	a.putLocked(next, "MODIFIED")
	return 0, "", nil
}

// statusText formats a status: names with their addresses, failures and reason.
func statusText(o *v1alpha1.DNSNameResolver) string {
	var out []string
	for _, n := range o.Status.ResolvedNames {
		line := string(n.DNSName)
		for _, x := range n.ResolvedAddresses {
			line += " " + x.IP
		}
		if n.ResolutionFailures > 0 {
			line += fmt.Sprintf(" failures=%d", n.ResolutionFailures)
		}
		for _, c := range n.Conditions {
			line += fmt.Sprintf(" %s=%s/%s", c.Type, c.Status, c.Reason)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// sorted is statusText with the names in order.
func sorted(o *v1alpha1.DNSNameResolver) string {
	s := strings.Split(statusText(o), "; ")
	slices.Sort(s)
	return strings.Join(s, "; ")
}

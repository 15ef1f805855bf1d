package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request is a request that the API server handled. Watches are recorded when they end.
type Request struct {
	At          time.Time
	User        string // system:serviceaccount:NAMESPACE:NAME, or admin
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection
	Namespace   string
	Resource    string // dnsnameresolvers
	Subresource string // status
	Name        string // empty for a create that was forbidden
	Code        int    // HTTP status: 409 is a conflict, 403 is forbidden by RBAC
}

// Write reports whether the request was to change something, whatever its result.
func (r Request) Write() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// entry is a line of the audit log, with the fields of interest.
type entry struct {
	Verb  string
	Stage string
	User  struct{ Username string }
	Ref   struct{ Resource, Subresource, Namespace, Name string } `json:"objectRef"`
	Reply struct{ Code int }                                      `json:"responseStatus"`
	At    time.Time                                               `json:"stageTimestamp"`
}

// Requests returns all requests for resources since the start, except those of the API server to itself.
func (c *Cluster) Requests() ([]Request, error) {
	f, err := os.Open(c.audit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []Request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return out, fmt.Errorf("%s: %w", c.audit, err)
		}
		out = append(out, Request{At: e.At, User: e.User.Username, Verb: e.Verb, Namespace: e.Ref.Namespace,
			Resource: e.Ref.Resource, Subresource: e.Ref.Subresource, Name: e.Ref.Name, Code: e.Reply.Code})
	}
	return out, lines.Err()
}

// Writes returns the requests since a time that were to change a resource.
func (c *Cluster) Writes(resource string, since time.Time) ([]Request, error) {
	all, err := c.Requests()
	return slices.DeleteFunc(all, func(r Request) bool {
		return !r.Write() || r.Resource != resource || r.At.Before(since)
	}), err
}

// Revision returns etcd's revision, which counts all changes including the API server's own leases.
func (c *Cluster) Revision() (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	list := &corev1.NamespaceList{}
	if err := c.Client.List(ctx, list, client.Limit(1)); err != nil {
		return 0, err
	}
	return strconv.ParseInt(list.ResourceVersion, 10, 64)
}

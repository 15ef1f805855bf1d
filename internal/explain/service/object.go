package service

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// ParseObject reads one object of a cluster, in JSON or YAML. Unlike Parse it accepts an object that publishes no
// hostname, such as a Service, because the caller knows the other objects. It also accepts a hostname that is an
// address: the API server did, and check SVC16 reports it.
func ParseObject(text []byte) (*Objects, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if err := noAliases(&doc); err != nil {
		return nil, err
	}
	var h head
	if err := doc.Decode(&h); err != nil {
		return nil, lineError(&doc, "object", err)
	}
	if !slices.Contains(versions[h.Kind], h.Version) || h.Meta.Name == "" {
		return nil, fmt.Errorf("%s %s of version %s is not known", h.Kind, h.Meta.Name, h.Version)
	}
	out := &Objects{}
	return out, out.decode(h.Kind, doc.Content[0])
}

// Len returns the number of objects.
func (o *Objects) Len() int {
	return len(o.Classes) + len(o.Gateways) + len(o.ListenerSets) + len(o.Routes) + len(o.Grants) + len(o.Policies) +
		len(o.Ingresses) + len(o.Services) + len(o.Slices) + len(o.Certificates) + len(o.Namespaces)
}

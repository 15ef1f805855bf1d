package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// noAddresses refuses hostnames that are addresses, which no record or certificate can have. It reads only the
// specification of objects: a status can have addresses.
func noAddresses(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	kind := ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "kind" {
			kind = n.Content[i+1].Value
		}
	}
	publishes := kind == "Gateway" || kind == "Ingress" || strings.HasSuffix(kind, "Route") ||
		strings.HasSuffix(kind, "ListenerSet")
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch value := n.Content[i+1]; n.Content[i].Value {
		case "items":
			for _, item := range value.Content {
				if err := noAddresses(item); err != nil {
					return err
				}
			}
		case "spec":
			if !publishes {
				continue
			}
			if err := eachHostname(value, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// hostFields are the fields of routes, listeners and Ingresses that have hostnames.
var hostFields = []string{"hostname", "hostnames", "host", "hosts"}

// eachHostname returns an error for the first hostname below a node that is an address. key is the field of the node.
func eachHostname(n *yaml.Node, key string) error {
	if n.Kind == yaml.ScalarNode {
		_, err := netip.ParseAddr(strings.Trim(n.Value, "[]"))
		if err != nil || !slices.Contains(hostFields, key) {
			return nil
		}
		return fmt.Errorf("line %d: the %s %s is an address; write a name", n.Line, strings.TrimSuffix(key, "s"), n.Value)
	}
	for i, c := range n.Content {
		of := key
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue // a key
			}
			of = n.Content[i-1].Value
		}
		if err := eachHostname(c, of); err != nil {
			return err
		}
	}
	return nil
}

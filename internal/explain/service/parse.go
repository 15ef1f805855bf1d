package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxInput limits the size of the input. Ten thousand small routes have 1.9 MiB.
const MaxInput = 16 << 20

// The API groups of the objects.
const (
	GatewayGroup     = "gateway.networking.k8s.io"
	experimentsGroup = "gateway.networking.x-k8s.io"
)

// versions are the versions of each kind that Parse reads. The fields of the types are the same in all of them.
var versions = map[string][]string{
	"GatewayClass":     {GatewayGroup + "/v1", GatewayGroup + "/v1beta1"},
	"Gateway":          {GatewayGroup + "/v1", GatewayGroup + "/v1beta1"},
	"HTTPRoute":        {GatewayGroup + "/v1", GatewayGroup + "/v1beta1"},
	"GRPCRoute":        {GatewayGroup + "/v1", GatewayGroup + "/v1alpha2"},
	"TLSRoute":         {GatewayGroup + "/v1", GatewayGroup + "/v1alpha3", GatewayGroup + "/v1alpha2"},
	"ListenerSet":      {GatewayGroup + "/v1"},
	"XListenerSet":     {experimentsGroup + "/v1alpha1"},
	"ReferenceGrant":   {GatewayGroup + "/v1", GatewayGroup + "/v1beta1"},
	"BackendTLSPolicy": {GatewayGroup + "/v1", GatewayGroup + "/v1alpha3"},
	"Ingress":          {"networking.k8s.io/v1"},
	"Service":          {"v1"},
	"EndpointSlice":    {"discovery.k8s.io/v1"},
	"Certificate":      {"cert-manager.io/v1"},
	"Challenge":        {"acme.cert-manager.io/v1"},
	"Namespace":        {"v1"},
}

// Parse reads objects from YAML or JSON: one object, several documents, or the list that kubectl prints. Its errors
// name the line.
func Parse(in io.Reader) (*Objects, error) {
	text, err := io.ReadAll(io.LimitReader(in, MaxInput+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxInput {
		return nil, fmt.Errorf("the input is larger than %d MiB; select the objects of one service, for example with "+
			"kubectl get --namespace", MaxInput>>20)
	}
	if i := unreadable(text); i >= 0 {
		return nil, fmt.Errorf("line %d: the input is not text in UTF-8", 1+bytes.Count(text[:i], []byte("\n")))
	}
	out := &Objects{}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, yamlError(err, text)
		}
		if err := noAliases(&doc); err != nil {
			return nil, err
		}
		if err := noAddresses(doc.Content[0]); err != nil {
			return nil, err
		}
		if err := out.add(doc.Content[0]); err != nil {
			return nil, err
		}
	}
	slices.Sort(out.Ignored)
	slices.Sort(out.Given)
	out.Ignored, out.Given = slices.Compact(out.Ignored), slices.Compact(out.Given)
	if out.empty() {
		return nil, fmt.Errorf("the input has no object of a service; the kinds are %s", strings.Join(kinds(), ", "))
	}
	return out, nil
}

// unreadable returns the index of the first byte that cannot be in YAML, or -1: of a control character, or one that is
// not UTF-8.
func unreadable(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r) {
			return i
		}
		i += size
	}
	return -1
}

// yamlError returns an error of the library with its line. The one about nesting has none: it is the deepest line.
func yamlError(err error, text []byte) error {
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasPrefix(said, "line ") {
		return errors.New(said)
	}
	line, deepest, depth, most := 1, 1, 0, 0
	for _, b := range text {
		switch b {
		case '\n':
			line++
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > most {
			most, deepest = depth, line
		}
	}
	return fmt.Errorf("line %d: %s", deepest, said)
}

// noAliases refuses anchors and aliases. kubectl never prints them, and a thousand aliases of a long list would take a
// thousand times its memory.
func noAliases(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fmt.Errorf("line %d: anchors and aliases are not supported; write the value", n.Line)
	}
	for _, c := range n.Content {
		if err := noAliases(c); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether no object of the kinds that publish a hostname was read.
func (o *Objects) empty() bool {
	return len(o.Classes)+len(o.Gateways)+len(o.ListenerSets)+len(o.Routes)+len(o.Ingresses) == 0
}

func kinds() []string {
	var out []string
	for kind := range versions {
		if kind != "XListenerSet" {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	return out
}

// head is the beginning of every object.
type head struct {
	Version string      `yaml:"apiVersion"`
	Kind    string      `yaml:"kind"`
	Items   []yaml.Node `yaml:"items"`
	Meta    struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
}

// add adds the object of a node, or all objects of a list.
func (o *Objects) add(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil // an empty document
	}
	var h head
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: expected an object with apiVersion, kind and metadata", n.Line)
	}
	if err := n.Decode(&h); err != nil {
		return lineError(n, "object", err)
	}
	if h.Kind == "List" || strings.HasSuffix(h.Kind, "List") && h.Items != nil {
		for i := range h.Items {
			if err := o.add(&h.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	known := versions[h.Kind]
	group := func(v string) string { before, _, _ := strings.Cut(v, "/"); return before }
	switch {
	case h.Kind == "":
		return fmt.Errorf("line %d: the object has no kind", n.Line)
	case !slices.ContainsFunc(known, func(v string) bool { return group(v) == group(h.Version) }):
		o.Ignored = append(o.Ignored, h.Kind)
		return nil
	case !slices.Contains(known, h.Version):
		return fmt.Errorf("line %d: %s %s has version %s, which is not known; the known versions are %s", n.Line, h.Kind,
			h.Meta.Name, h.Version, strings.Join(known, ", "))
	case h.Meta.Name == "":
		return fmt.Errorf("line %d: the %s has no name", n.Line, h.Kind)
	}
	o.Given = append(o.Given, h.Kind)
	return o.decode(h.Kind, n)
}

// decode decodes an object into the list of its kind.
func (o *Objects) decode(kind string, n *yaml.Node) error {
	switch kind {
	case "GatewayClass":
		return appendTo(&o.Classes, n)
	case "Gateway":
		return appendTo(&o.Gateways, n)
	case "ListenerSet", "XListenerSet":
		return appendTo(&o.ListenerSets, n)
	case "HTTPRoute", "GRPCRoute", "TLSRoute":
		return appendTo(&o.Routes, n)
	case "ReferenceGrant":
		return appendTo(&o.Grants, n)
	case "BackendTLSPolicy":
		return appendTo(&o.Policies, n)
	case "Ingress":
		return appendTo(&o.Ingresses, n)
	case "Service":
		return appendTo(&o.Services, n)
	case "EndpointSlice":
		return appendTo(&o.Slices, n)
	case "Certificate":
		return appendTo(&o.Certificates, n)
	case "Challenge":
		return appendTo(&o.Challenges, n)
	}
	return appendTo(&o.Namespaces, n)
}

// header gives appendTo access to the Head of every kind.
func (h *Head) header() *Head { return h }

// appendTo decodes an object and appends it. kubectl applies an object without a namespace to the namespace default.
func appendTo[T any, P interface {
	*T
	header() *Head
}](all *[]T, n *yaml.Node) error {
	var x T
	if err := n.Decode(&x); err != nil {
		return lineError(n, "object", err)
	}
	h := P(&x).header()
	h.Line = n.Line
	if h.Namespace == "" && h.Kind != "GatewayClass" && h.Kind != "Namespace" {
		h.Namespace = "default"
	}
	*all = append(*all, x)
	return nil
}

// lineError returns the first mistake of a document. The library puts each on a line of its own, with its position.
func lineError(n *yaml.Node, what string, err error) error {
	var mistakes *yaml.TypeError
	if errors.As(err, &mistakes) && len(mistakes.Errors) > 0 {
		text, _, _ := strings.Cut(mistakes.Errors[0], " into ") // the rest is a type of this program
		return errors.New(text)
	}
	return fmt.Errorf("line %d: %s: %s", n.Line, what, strings.TrimPrefix(err.Error(), "yaml: "))
}

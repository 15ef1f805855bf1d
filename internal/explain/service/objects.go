// Package service reads the Kubernetes objects that publish a service, and derives from them which hostnames it has,
// which records they need, and which mistake made a record differ.
//
// Start with Objects in this file: Parse in parse.go reads it from YAML or JSON. Hostnames in hostnames.go matches
// listeners with routes, as the Gateway API defines it, and rivals.go finds routes and listeners that take requests
// from others. Expected in expected.go computes the records of a hostname, and Diagnose in slip.go compares them with
// the records of the zone. Ownership in ownership.go says whether a domain still counts as verified.
//
// The types hold the fields that the checks read, in the form of the Kubernetes API. They are written here because the
// nameplane program links no Kubernetes libraries.
package service

import "time"

// Objects are the objects of one service, by kind.
type Objects struct {
	Classes      []Class       `json:"classes,omitempty"`
	Gateways     []Gateway     `json:"gateways,omitempty"`
	ListenerSets []ListenerSet `json:"listenerSets,omitempty"`
	Routes       []Route       `json:"routes,omitempty"` // HTTPRoute, GRPCRoute and TLSRoute
	Grants       []Grant       `json:"grants,omitempty"`
	Policies     []Policy      `json:"policies,omitempty"`
	Ingresses    []Ingress     `json:"ingresses,omitempty"`
	Services     []Service     `json:"services,omitempty"`
	Slices       []Slice       `json:"slices,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	Challenges   []Challenge   `json:"challenges,omitempty"`
	Namespaces   []Namespace   `json:"namespaces,omitempty"`

	// Given are the kinds of the input, also those of which Related kept no object.
	Given []string `json:"given,omitempty"`
	// Ignored are the kinds of other objects of the input, such as "Secret". They are not read.
	Ignored []string `json:"ignored,omitempty"`
}

// Meta is the part of an object's metadata that the checks read.
type Meta struct {
	Namespace   string            `json:"namespace,omitempty" yaml:"namespace"`
	Name        string            `json:"name" yaml:"name"`
	Generation  int64             `json:"generation,omitempty" yaml:"generation"`
	Created     time.Time         `json:"created,omitzero" yaml:"creationTimestamp"`
	Labels      map[string]string `json:"labels,omitempty" yaml:"labels"`
	Annotations map[string]string `json:"annotations,omitempty" yaml:"annotations"`
	Managed     []Managed         `json:"managedFields,omitempty" yaml:"managedFields"`
}

// Managed says when a program changed a part of an object.
type Managed struct {
	Subresource string    `json:"subresource,omitempty" yaml:"subresource"`
	Time        time.Time `json:"time,omitzero" yaml:"time"`
}

// Changed returns when the specification of the object was last changed, or the zero time if the object does not say.
func (m Meta) Changed() (at time.Time) {
	if m.Generation <= 1 {
		at = m.Created
	}
	for _, x := range m.Managed {
		if x.Subresource != "status" && x.Time.After(at) {
			at = x.Time
		}
	}
	return at
}

// Head identifies an object. Line is its position in the input; 0 if it came from a cluster.
type Head struct {
	Kind string `json:"kind" yaml:"kind"`
	Meta `yaml:"metadata"`
	Line int `json:"line,omitempty" yaml:"-"`
}

// String returns the object as kubectl names it, such as "HTTPRoute shop/web".
func (h Head) String() string {
	if h.Namespace == "" {
		return h.Kind + " " + h.Name
	}
	return h.Kind + " " + h.Namespace + "/" + h.Name
}

// Condition is one condition of a status.
type Condition struct {
	Type       string    `json:"type" yaml:"type"`
	Status     string    `json:"status" yaml:"status"` // True, False or Unknown
	Reason     string    `json:"reason,omitempty" yaml:"reason"`
	Message    string    `json:"message,omitempty" yaml:"message"`
	Generation int64     `json:"observedGeneration,omitempty" yaml:"observedGeneration"`
	Changed    time.Time `json:"lastTransitionTime,omitzero" yaml:"lastTransitionTime"`
}

// Class is a GatewayClass.
type Class struct {
	Head `yaml:",inline"`
	Spec struct {
		Controller string `json:"controllerName" yaml:"controllerName"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		Conditions []Condition `json:"conditions,omitempty" yaml:"conditions"`
	} `json:"status" yaml:"status"`
}

// Gateway is a Gateway.
type Gateway struct {
	Head `yaml:",inline"`
	Spec struct {
		Class     string     `json:"gatewayClassName" yaml:"gatewayClassName"`
		Listeners []Listener `json:"listeners,omitempty" yaml:"listeners"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		Conditions []Condition      `json:"conditions,omitempty" yaml:"conditions"`
		Addresses  []Address        `json:"addresses,omitempty" yaml:"addresses"`
		Listeners  []ListenerStatus `json:"listeners,omitempty" yaml:"listeners"`
	} `json:"status" yaml:"status"`
}

// ListenerSet is a ListenerSet: more listeners for a Gateway.
type ListenerSet struct {
	Head `yaml:",inline"`
	Spec struct {
		Parent    ObjectRef  `json:"parentRef" yaml:"parentRef"`
		Listeners []Listener `json:"listeners,omitempty" yaml:"listeners"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		Conditions []Condition      `json:"conditions,omitempty" yaml:"conditions"`
		Listeners  []ListenerStatus `json:"listeners,omitempty" yaml:"listeners"`
	} `json:"status" yaml:"status"`
}

// Listener is a port of a Gateway.
type Listener struct {
	Name     string `json:"name" yaml:"name"`
	Hostname string `json:"hostname,omitempty" yaml:"hostname"`
	Port     int    `json:"port" yaml:"port"`
	Protocol string `json:"protocol" yaml:"protocol"` // HTTP, HTTPS, TLS, TCP or UDP
	TLS      *struct {
		Mode         string      `json:"mode,omitempty" yaml:"mode"`
		Certificates []ObjectRef `json:"certificateRefs,omitempty" yaml:"certificateRefs"`
	} `json:"tls,omitempty" yaml:"tls"`
	Allowed struct {
		Namespaces struct {
			From     string    `json:"from,omitempty" yaml:"from"` // All, Same, Selector or None; empty: Same
			Selector *Selector `json:"selector,omitempty" yaml:"selector"`
		} `json:"namespaces" yaml:"namespaces"`
		Kinds []struct {
			Group *string `json:"group,omitempty" yaml:"group"`
			Kind  string  `json:"kind" yaml:"kind"`
		} `json:"kinds,omitempty" yaml:"kinds"`
	} `json:"allowedRoutes" yaml:"allowedRoutes"`
}

// ListenerStatus is the status of a listener.
type ListenerStatus struct {
	Name       string      `json:"name" yaml:"name"`
	Attached   int         `json:"attachedRoutes" yaml:"attachedRoutes"`
	Conditions []Condition `json:"conditions,omitempty" yaml:"conditions"`
}

// Selector is a label selector.
type Selector struct {
	Labels      map[string]string `json:"matchLabels,omitempty" yaml:"matchLabels"`
	Expressions []struct {
		Key      string   `json:"key" yaml:"key"`
		Operator string   `json:"operator" yaml:"operator"`
		Values   []string `json:"values,omitempty" yaml:"values"`
	} `json:"matchExpressions,omitempty" yaml:"matchExpressions"`
}

// Address is an address of a Gateway.
type Address struct {
	Type  string `json:"type,omitempty" yaml:"type"` // IPAddress, Hostname or the name of a provider's own type
	Value string `json:"value" yaml:"value"`
}

// ObjectRef names another object. Empty fields have the default of the field that holds the reference.
type ObjectRef struct {
	Group     *string `json:"group,omitempty" yaml:"group"`
	Kind      string  `json:"kind,omitempty" yaml:"kind"`
	Namespace string  `json:"namespace,omitempty" yaml:"namespace"`
	Name      string  `json:"name" yaml:"name"`
	Section   string  `json:"sectionName,omitempty" yaml:"sectionName"`
	Port      int     `json:"port,omitempty" yaml:"port"`
}

// Route is an HTTPRoute, GRPCRoute or TLSRoute.
type Route struct {
	Head `yaml:",inline"`
	Spec struct {
		Parents   []ObjectRef `json:"parentRefs,omitempty" yaml:"parentRefs"`
		Hostnames []string    `json:"hostnames,omitempty" yaml:"hostnames"`
		Rules     []Rule      `json:"rules,omitempty" yaml:"rules"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		Parents []ParentStatus `json:"parents,omitempty" yaml:"parents"`
	} `json:"status" yaml:"status"`
}

// Rule is a rule of a route.
type Rule struct {
	Matches []struct {
		Path *struct {
			Type  string `json:"type,omitempty" yaml:"type"`
			Value string `json:"value,omitempty" yaml:"value"`
		} `json:"path,omitempty" yaml:"path"`
		Method  any          `json:"method,omitempty" yaml:"method"` // a word; in a GRPCRoute an object
		Headers []FieldMatch `json:"headers,omitempty" yaml:"headers"`
		Params  []FieldMatch `json:"queryParams,omitempty" yaml:"queryParams"`
	} `json:"matches,omitempty" yaml:"matches"`
	Backends []ObjectRef `json:"backendRefs,omitempty" yaml:"backendRefs"`
}

// FieldMatch is a header or a query parameter that a rule wants.
type FieldMatch struct {
	Type  string `json:"type,omitempty" yaml:"type"`
	Name  string `json:"name" yaml:"name"`
	Value string `json:"value,omitempty" yaml:"value"`
}

// ParentStatus is the status of a route at one of its parents, written by one controller.
type ParentStatus struct {
	Parent     ObjectRef   `json:"parentRef" yaml:"parentRef"`
	Controller string      `json:"controllerName" yaml:"controllerName"`
	Conditions []Condition `json:"conditions,omitempty" yaml:"conditions"`
}

// Grant is a ReferenceGrant.
type Grant struct {
	Head `yaml:",inline"`
	Spec struct {
		From []struct {
			Group     string `json:"group" yaml:"group"`
			Kind      string `json:"kind" yaml:"kind"`
			Namespace string `json:"namespace" yaml:"namespace"`
		} `json:"from" yaml:"from"`
		To []struct {
			Group string `json:"group" yaml:"group"`
			Kind  string `json:"kind" yaml:"kind"`
			Name  string `json:"name,omitempty" yaml:"name"`
		} `json:"to" yaml:"to"`
	} `json:"spec" yaml:"spec"`
}

// Policy is a BackendTLSPolicy.
type Policy struct {
	Head `yaml:",inline"`
	Spec struct {
		Targets []ObjectRef `json:"targetRefs,omitempty" yaml:"targetRefs"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		Ancestors []struct {
			Ancestor   ObjectRef   `json:"ancestorRef" yaml:"ancestorRef"`
			Controller string      `json:"controllerName" yaml:"controllerName"`
			Conditions []Condition `json:"conditions,omitempty" yaml:"conditions"`
		} `json:"ancestors,omitempty" yaml:"ancestors"`
	} `json:"status" yaml:"status"`
}

// Ingress is an Ingress of networking.k8s.io.
type Ingress struct {
	Head `yaml:",inline"`
	Spec struct {
		Class string       `json:"ingressClassName,omitempty" yaml:"ingressClassName"`
		TLS   []IngressTLS `json:"tls,omitempty" yaml:"tls"`
		Rules []struct {
			Host string `json:"host,omitempty" yaml:"host"`
			HTTP *struct {
				Paths []struct {
					Path    string `json:"path,omitempty" yaml:"path"`
					Backend struct {
						Service *struct {
							Name string `json:"name" yaml:"name"`
							Port struct {
								Name   string `json:"name,omitempty" yaml:"name"`
								Number int    `json:"number,omitempty" yaml:"number"`
							} `json:"port" yaml:"port"`
						} `json:"service,omitempty" yaml:"service"`
					} `json:"backend" yaml:"backend"`
				} `json:"paths,omitempty" yaml:"paths"`
			} `json:"http,omitempty" yaml:"http"`
		} `json:"rules,omitempty" yaml:"rules"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		LoadBalancer struct {
			Ingress []struct {
				IP       string `json:"ip,omitempty" yaml:"ip"`
				Hostname string `json:"hostname,omitempty" yaml:"hostname"`
			} `json:"ingress,omitempty" yaml:"ingress"`
		} `json:"loadBalancer" yaml:"loadBalancer"`
	} `json:"status" yaml:"status"`
}

// IngressTLS names the hosts of an Ingress that have TLS.
type IngressTLS struct {
	Hosts  []string `json:"hosts,omitempty" yaml:"hosts"`
	Secret string   `json:"secretName,omitempty" yaml:"secretName"`
}

// Service is a Service.
type Service struct {
	Head `yaml:",inline"`
	Spec struct {
		Type  string `json:"type,omitempty" yaml:"type"`
		Ports []struct {
			Name   string `json:"name,omitempty" yaml:"name"`
			Port   int    `json:"port" yaml:"port"`
			Target any    `json:"targetPort,omitempty" yaml:"targetPort"` // a number or the name of a port
		} `json:"ports,omitempty" yaml:"ports"`
	} `json:"spec" yaml:"spec"`
}

// Slice is an EndpointSlice.
type Slice struct {
	Head  `yaml:",inline"`
	Ports []struct {
		Name string `json:"name,omitempty" yaml:"name"`
		Port int    `json:"port,omitempty" yaml:"port"`
	} `json:"ports,omitempty" yaml:"ports"`
	Endpoints []struct {
		Addresses  []string `json:"addresses,omitempty" yaml:"addresses"`
		Conditions struct {
			Ready       *bool `json:"ready,omitempty" yaml:"ready"` // nil means ready
			Terminating *bool `json:"terminating,omitempty" yaml:"terminating"`
		} `json:"conditions" yaml:"conditions"`
	} `json:"endpoints,omitempty" yaml:"endpoints"`
}

// Certificate is a Certificate of cert-manager.
type Certificate struct {
	Head `yaml:",inline"`
	Spec struct {
		Names  []string `json:"dnsNames,omitempty" yaml:"dnsNames"`
		Secret string   `json:"secretName,omitempty" yaml:"secretName"`
	} `json:"spec" yaml:"spec"`
	Status struct {
		Conditions []Condition `json:"conditions,omitempty" yaml:"conditions"`
		NotBefore  time.Time   `json:"notBefore,omitzero" yaml:"notBefore"`
		NotAfter   time.Time   `json:"notAfter,omitzero" yaml:"notAfter"`
	} `json:"status" yaml:"status"`
}

// Challenge is a Challenge of cert-manager: the test of one hostname by a CA.
type Challenge struct {
	Head `yaml:",inline"`
	Spec struct {
		Host string `json:"dnsName" yaml:"dnsName"`
		Type string `json:"type" yaml:"type"` // HTTP-01 or DNS-01
	} `json:"spec" yaml:"spec"`
	Status struct {
		State  string `json:"state,omitempty" yaml:"state"`
		Reason string `json:"reason,omitempty" yaml:"reason"`
	} `json:"status" yaml:"status"`
}

// Namespace is a Namespace. Listeners select routes by its labels.
type Namespace struct {
	Head `yaml:",inline"`
}

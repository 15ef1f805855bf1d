package deploy

// The types below are the objects in kubernetes/ with the fields that are used there. They are decoded strictly: an
// unknown or misplaced field fails the test.

type meta struct {
	Name      string            `yaml:"name"`
	Namespace string            `yaml:"namespace"`
	Labels    map[string]string `yaml:"labels"`
}

// head holds the fields that every object has.
type head struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   meta   `yaml:"metadata"`
}

type namespace struct {
	head `yaml:",inline"`
}

type configMap struct {
	head `yaml:",inline"`
	Data map[string]string `yaml:"data"`
}

type resources struct {
	Requests map[string]string `yaml:"requests"`
	Limits   map[string]string `yaml:"limits"`
}

type claim struct {
	head `yaml:",inline"`
	Spec struct {
		AccessModes []string  `yaml:"accessModes"`
		Resources   resources `yaml:"resources"`
	} `yaml:"spec"`
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type deployment struct {
	head `yaml:",inline"`
	Spec struct {
		Replicas int `yaml:"replicas"`
		Strategy struct {
			Type string `yaml:"type"`
		} `yaml:"strategy"`
		Selector selector `yaml:"selector"`
		Template struct {
			Metadata meta `yaml:"metadata"`
			Spec     pod  `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type pod struct {
	AutomountToken  bool `yaml:"automountServiceAccountToken"`
	ServiceLinks    bool `yaml:"enableServiceLinks"`
	Grace           int  `yaml:"terminationGracePeriodSeconds"`
	SecurityContext struct {
		RunAsNonRoot   bool `yaml:"runAsNonRoot"`
		RunAsUser      int  `yaml:"runAsUser"`
		RunAsGroup     int  `yaml:"runAsGroup"`
		FSGroup        int  `yaml:"fsGroup"`
		SeccompProfile struct {
			Type string `yaml:"type"`
		} `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []container `yaml:"containers"`
	Volumes    []volume    `yaml:"volumes"`
}

type container struct {
	Name            string          `yaml:"name"`
	Image           string          `yaml:"image"`
	Args            []string        `yaml:"args"`
	Ports           []containerPort `yaml:"ports"`
	StartupProbe    probe           `yaml:"startupProbe"`
	ReadinessProbe  probe           `yaml:"readinessProbe"`
	LivenessProbe   probe           `yaml:"livenessProbe"`
	Resources       resources       `yaml:"resources"`
	SecurityContext struct {
		Escalation   bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRoot bool `yaml:"readOnlyRootFilesystem"`
		Capabilities struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Mounts []mount `yaml:"volumeMounts"`
}

type containerPort struct {
	Name     string `yaml:"name"`
	Port     int    `yaml:"containerPort"`
	Protocol string `yaml:"protocol"`
}

type probe struct {
	HTTPGet struct {
		Path   string `yaml:"path"`
		Port   string `yaml:"port"`
		Scheme string `yaml:"scheme"`
	} `yaml:"httpGet"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type mount struct {
	Name     string `yaml:"name"`
	Path     string `yaml:"mountPath"`
	ReadOnly bool   `yaml:"readOnly"`
}

type volume struct {
	Name  string `yaml:"name"`
	Claim struct {
		Name string `yaml:"claimName"`
	} `yaml:"persistentVolumeClaim"`
	ConfigMap struct {
		Name string `yaml:"name"`
	} `yaml:"configMap"`
	Secret struct {
		Name string `yaml:"secretName"`
		Mode int    `yaml:"defaultMode"`
	} `yaml:"secret"`
}

type service struct {
	head `yaml:",inline"`
	Spec struct {
		Type     string            `yaml:"type"`
		Traffic  string            `yaml:"externalTrafficPolicy"`
		Selector map[string]string `yaml:"selector"`
		Ports    []struct {
			Name     string `yaml:"name"`
			Port     int    `yaml:"port"`
			Target   string `yaml:"targetPort"`
			Protocol string `yaml:"protocol"`
		} `yaml:"ports"`
	} `yaml:"spec"`
}

type policy struct {
	head `yaml:",inline"`
	Spec struct {
		PodSelector selector `yaml:"podSelector"`
		Types       []string `yaml:"policyTypes"`
		Ingress     []struct {
			From []struct {
				Namespaces selector `yaml:"namespaceSelector"`
			} `yaml:"from"`
			Ports []policyPort `yaml:"ports"`
		} `yaml:"ingress"`
		Egress []struct {
			Ports []policyPort `yaml:"ports"`
		} `yaml:"egress"`
	} `yaml:"spec"`
}

type policyPort struct {
	Port     string `yaml:"port"` // a name, or a number
	Protocol string `yaml:"protocol"`
}

type kustomization struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Resources  []string `yaml:"resources"`
}

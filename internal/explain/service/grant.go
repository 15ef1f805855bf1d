package service

import (
	"encoding/json"
	"strings"
)

// NewGrant returns a ReferenceGrant that allows objects of a kind and namespace to use one Service or Secret of another
// namespace. It is JSON in one line, which kubectl apply reads as YAML.
func NewGrant(kind, namespace string, to ObjectRef) string {
	type meta struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	type from struct {
		Group     string `json:"group"`
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
	}
	type target struct {
		Group string `json:"group"`
		Kind  string `json:"kind"`
		Name  string `json:"name"`
	}
	type spec struct {
		From []from   `json:"from"`
		To   []target `json:"to"`
	}
	text, err := json.Marshal(struct {
		Version string `json:"apiVersion"`
		Kind    string `json:"kind"`
		Meta    meta   `json:"metadata"`
		Spec    spec   `json:"spec"`
	}{GatewayGroup + "/v1beta1", "ReferenceGrant",
		meta{strings.ToLower(kind) + "-" + namespace + "-" + to.Name, to.Namespace},
		spec{[]from{{GatewayGroup, kind, namespace}}, []target{{"", to.Kind, to.Name}}}})
	if err != nil {
		return "" // texts always have a JSON form
	}
	return string(text)
}

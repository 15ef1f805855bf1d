package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Limit is a whole number greater than 0, or Unlimited. In the file that is the word unlimited: a number that means
// something else than its value, such as -1, is refused.
type Limit int

// Unlimited is the value of a Limit without a limit. It is the value that package publish uses.
const Unlimited Limit = -1

// UnmarshalYAML decodes a limit.
func (l *Limit) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Value == "unlimited" {
		*l = Unlimited
		return nil
	}
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v <= 0 {
		return wrongValue(n, "must be a whole number greater than 0, or the word unlimited")
	}
	*l = Limit(v)
	return nil
}

// Timeout is a time, or Never. In the file that is the word never.
type Timeout time.Duration

// Never is the value of a Timeout that does not end.
const Never Timeout = 0

// UnmarshalYAML decodes a time.
func (t *Timeout) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Value == "never" {
		*t = Never
		return nil
	}
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v <= 0 {
		return wrongValue(n, "must be a time with its unit, such as 72h, or the word never")
	}
	*t = Timeout(v)
	return nil
}

// wrongValue returns an error with the position of a value. describe adds the name of the file.
func wrongValue(n *yaml.Node, reason string) error {
	text := strings.TrimSpace(fmt.Sprintf("%.60s %s", n.Value, reason)) // a list has no Value
	return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, text)}}
}

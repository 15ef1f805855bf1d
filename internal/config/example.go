package config

import _ "embed"

//go:embed example.yaml
var example string

// Example returns a file with every setting, its default and its description.
func Example() string { return example }

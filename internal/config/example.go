package config

import _ "embed"

//go:embed example.yaml
var example string

// Example is a file with every setting, its default and what it is for.
func Example() string { return example }

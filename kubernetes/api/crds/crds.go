// Package crds carries the generated custom resource definitions, so that a program can print or apply them.
package crds

import (
	"bytes"
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files are the definitions, one in each file.
func Files() fs.FS { return files }

// YAML is all of them in one stream.
func YAML() []byte {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	var out bytes.Buffer
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it was listed above
		}
		out.Write(text)
	}
	return out.Bytes()
}

// The patterns of names in rules and in specs begin so. That of names in a status begins otherwise: it has "**." already.
const (
	wildcard = `pattern: ^(\*\.)?(`
	deep     = `pattern: ^(\*\*?\.)?(`
)

// DeepYAML is YAML with patterns that also take "**.", which no stock definition does.
func DeepYAML() []byte { return bytes.ReplaceAll(YAML(), []byte(wildcard), []byte(deep)) }

// Package openapi serves the OpenAPI description of all HTTP APIs.
//
// Start with spec/: people write these files, one for each tag and some for definitions that tags share. Handler merges
// them into one document. Tests in test/clients/openapi compare the document with the APIs.
package openapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"sync"
	"time"
)

//go:embed spec/*.json
var spec embed.FS

// object is a JSON object whose values are not parsed.
type object = map[string]json.RawMessage

// Handler serves the document with the version of the program.
func Handler(version string) http.Handler {
	// Most servers never serve the document, so the first request builds it.
	document := sync.OnceValues(func() ([]byte, string) {
		b, err := merge(spec, version)
		if err != nil {
			panic(err) // a bug: the files are embedded, and a test merges them
		}
		sum := sha256.Sum256(b)
		return b, `"` + hex.EncodeToString(sum[:12]) + `"`
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, tag := document()
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache") // clients may cache the document, but must revalidate it
		for _, name := range []string{"Range", "If-Match"} {
			r.Header.Del(name) // nobody needs a part of the document, and nobody can change it
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	})
}

// merge merges the files into one document: their paths, and each kind of their components. A name in two files is an
// error, because one of the two would be lost. All other members are in one file only. Values are not parsed, so their
// members keep the order in which people wrote them.
func merge(files fs.FS, version string) ([]byte, error) {
	names, err := fs.Glob(files, "spec/*.json")
	if err != nil {
		return nil, err
	}
	doc, paths, components := object{}, object{}, map[string]object{}
	for _, name := range names {
		if err := addFile(files, name, doc, paths, components); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := setVersion(doc, version); err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		OpenAPI    json.RawMessage   `json:"openapi"` // first, as readers expect
		Info       json.RawMessage   `json:"info"`
		Servers    json.RawMessage   `json:"servers"`
		Security   json.RawMessage   `json:"security"`
		Tags       json.RawMessage   `json:"tags"`
		Paths      object            `json:"paths"`
		Components map[string]object `json:"components"`
	}{doc["openapi"], doc["info"], doc["servers"], doc["security"], doc["tags"], paths, components})
}

func addFile(files fs.FS, name string, doc, paths object, components map[string]object) error {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	var part struct {
		Paths      object            `json:"paths"`
		Components map[string]object `json:"components"`
	}
	var rest object
	if err := json.Unmarshal(b, &part); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &rest); err != nil {
		return err
	}
	delete(rest, "paths")
	delete(rest, "components")
	if err := add(doc, rest); err != nil {
		return err
	}
	if err := add(paths, part.Paths); err != nil {
		return err
	}
	for kind, named := range part.Components {
		if components[kind] == nil {
			components[kind] = object{}
		}
		if err := add(components[kind], named); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func add(to, from object) error {
	for name, v := range from {
		if _, ok := to[name]; ok {
			return fmt.Errorf("%s is also in another file", name)
		}
		to[name] = v
	}
	return nil
}

// setVersion sets the version of the program. The file has a placeholder, so that a release changes no file.
func setVersion(doc object, version string) error {
	var info map[string]any
	if err := json.Unmarshal(doc["info"], &info); err != nil {
		return fmt.Errorf("info: %w", err)
	}
	info["version"] = version
	b, err := json.Marshal(info)
	doc["info"] = b
	return err
}

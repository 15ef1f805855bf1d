// Package openapi serves the description of the whole HTTP API. It is written by hand in spec/, one file for each tag and
// some for what the tags share; tests hold it against the doors.
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

// object is a JSON object of which only the top is read.
type object = map[string]json.RawMessage

// Handler serves the document, as that of a version of the program.
func Handler(version string) http.Handler {
	// Few servers are ever asked for it, so it is put together when the first asks.
	document := sync.OnceValues(func() ([]byte, string) {
		b, err := merge(spec, version)
		if err != nil {
			panic(err) // the files are part of the program, and a test reads them
		}
		sum := sha256.Sum256(b)
		return b, `"` + hex.EncodeToString(sum[:12]) + `"`
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, tag := document()
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache") // may be kept, but is asked about
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	})
}

// merge makes one document of the files. Their paths and components are put together; a name that two of them have is a
// mistake. Everything else is in one file only.
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
			return fmt.Errorf("%s is in another file too", name)
		}
		to[name] = v
	}
	return nil
}

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

package gather

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
)

// maxFile limits the size of a file of facts. A scan needs about 200 KiB.
const maxFile = 32 << 20

// Save writes facts in a form from which every report about them can be generated again.
func Save(w io.Writer, f *explain.Facts) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("save facts of %s: %w", f.Name, err)
	}
	if len(text) >= maxFile {
		return fmt.Errorf("save facts of %s: %w", f.Name, errSize)
	}
	if _, err := w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("save facts of %s: %w", f.Name, err)
	}
	return nil
}

var errSize = fmt.Errorf("the facts are larger than %d MiB", maxFile>>20)

// Load reads facts that Save wrote.
func Load(rd io.Reader) (*explain.Facts, error) {
	text, err := io.ReadAll(io.LimitReader(rd, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("load facts: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("load facts: %w", errSize)
	}
	return parse(text)
}

// LoadAll reads the facts of several names, which Save wrote one after the other. The limit is for all of them
// together: the input comes from a file that somebody else may have written.
func LoadAll(rd io.Reader) (out []*explain.Facts, err error) {
	dec := json.NewDecoder(io.LimitReader(rd, maxFile))
	for {
		var text json.RawMessage
		if err := dec.Decode(&text); errors.Is(err, io.EOF) && len(out) > 0 {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("load facts: %w", err)
		}
		f, err := parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
}

// parse reads the facts of one name.
func parse(text []byte) (*explain.Facts, error) {
	f, err := explain.Unmarshal(text)
	if err != nil {
		return nil, fmt.Errorf("load facts: %w", err)
	}
	return f, check(f)
}

var errEvidence = errors.New("load facts: evidence refers to an exchange that the file does not have")

// check refuses references to exchanges that do not exist, so that callers can follow them without checks.
func check(f *explain.Facts) error {
	for _, evidence := range evidenceOf(f) {
		if slices.ContainsFunc(*evidence, func(id int) bool { return id < 0 || id >= len(f.Exchanges) }) {
			return errEvidence
		}
	}
	return nil
}

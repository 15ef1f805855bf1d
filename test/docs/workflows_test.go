package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow has the parts of a workflow that name work.
type workflow struct {
	Name string
	On   yaml.Node
	Jobs map[string]struct {
		RunsOn  string `yaml:"runs-on"`
		Timeout int    `yaml:"timeout-minutes"`
		Steps   []struct{ Uses, Run string }
	}
}

var makeStep = regexp.MustCompile(`^(?:sudo -E env "PATH=\$PATH" )?make ([a-z-]+)$`)

// TestWorkflows checks that the workflows only call targets of the Makefile, so that everybody can run what CI runs.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no workflows: %v", err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if w.Name == "" || w.On.IsZero() || len(w.Jobs) == 0 {
			t.Errorf("%s lacks a name, an event or jobs", file)
		}
		for name, job := range w.Jobs {
			if job.RunsOn == "" || job.Timeout == 0 || len(job.Steps) == 0 {
				t.Errorf("%s: job %s lacks a machine, a time limit or steps", file, name)
			}
			for _, step := range job.Steps {
				target := makeStep.FindStringSubmatch(step.Run)
				switch {
				case step.Uses != "":
				case target == nil:
					t.Errorf("%s: job %s runs %q, which is not a make target", file, name, step.Run)
				case !strings.Contains(string(makefile), "\n"+target[1]+":"):
					t.Errorf("%s: job %s runs make %s, which the Makefile does not have", file, name, target[1])
				}
			}
		}
	}
}

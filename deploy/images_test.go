package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?(?:image: |FROM )(\S+)`)
	ownImage  = regexp.MustCompile(`^nameplane(-[a-z]+)?(:latest)?$`)
)

// TestImages checks that every image of others has a digest, or is on the page about threats and its file says how to
// pin it.
func TestImages(t *testing.T) {
	threats := string(read(t, "../docs/explanation/threats.md"))
	seen := 0
	for _, dir := range []string{".", "../examples"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" && d.Name() != "Dockerfile" {
				return err
			}
			b, err := os.ReadFile(path)
			for _, m := range imageLine.FindAllStringSubmatch(string(b), -1) {
				image := m[1]
				if seen++; image == "scratch" || ownImage.MatchString(image) || strings.Contains(image, "@sha256:") {
					continue
				}
				if !strings.Contains(threats, "`"+image+"`") || !strings.Contains(string(b), "imagetools inspect") {
					t.Errorf("%s: the image %s has no digest, or the page about threats and the file do not explain why",
						path, image)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 8 {
		t.Errorf("there are only %d images: the pattern does not find them", seen)
	}
}

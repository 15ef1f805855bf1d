package config_test

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/config"
)

func TestExplain(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte("explain: {public: true, registry: false, lab: ./lab}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if e := c.Explain; !e.Enabled || !e.Public || e.Registry || e.Lab != "./lab" {
		t.Errorf("explain is %+v", e)
	}
	if e := config.Default().Explain; e.Public || e.AllowPrivate {
		t.Errorf("by default explain is %+v", e)
	}
	for text, want := range map[string]string{
		"public: true, allow_private: true": "explain.allow_private: cannot be used with explain.public",
	} {
		if _, err := config.Parse("c.yaml", []byte("explain: {"+text+"}\n")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

package config

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Size is a number of bytes: 4096, 64KiB, 1MiB, 1GiB.
type Size int64

var sizeUnits = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// UnmarshalYAML decodes a size.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	text, factor := n.Value, int64(1)
	for _, u := range sizeUnits {
		if t, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = strings.TrimSpace(t), u.factor
		}
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if n.Kind != yaml.ScalarNode || err != nil || v < 0 || v > math.MaxInt64/factor {
		return wrongValue(n, "must be a number of bytes such as 65536, 64KiB, 1MiB or 1GiB")
	}
	*s = Size(v * factor)
	return nil
}

package archtest

import (
	"go/ast"
	"go/token"
	"net/netip"
	"slices"
	"strconv"
	"testing"
)

// judgements are functions of net and netip that classify special-purpose addresses, each by other rules. IsLoopback
// and IsUnspecified are not listed: they are right for the addresses of our own listeners and clients.
var judgements = []string{"IsPrivate", "IsLinkLocalUnicast", "IsLinkLocalMulticast", "IsInterfaceLocalMulticast",
	"IsMulticast", "IsGlobalUnicast"}

// defaults are prefixes that do not list special addresses: they are defaults of flags.
var defaults = []string{"10.128.0.0/14"}

// TestSpecialAddresses checks that only internal/specialaddr lists special-purpose addresses. No other package may
// list prefixes or call these functions of netip.
func TestSpecialAddresses(t *testing.T) {
	found := 0
	for _, s := range sources(t) {
		if s.isTest() || layerOf(s.pkg) == len(layers) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			why := ""
			switch n := n.(type) {
			case *ast.BasicLit:
				text, _ := strconv.Unquote(n.Value)
				_, err := netip.ParsePrefix(text)
				if n.Kind == token.STRING && err == nil && !slices.Contains(defaults, text) {
					why = "lists the prefix " + text
				}
			case *ast.SelectorExpr:
				if slices.Contains(judgements, n.Sel.Name) {
					why = "calls " + n.Sel.Name
				}
			}
			switch {
			case why == "":
			case s.pkg == "internal/specialaddr":
				found++
			default:
				t.Errorf("%s %s: use internal/specialaddr", s.fset.Position(n.Pos()), why)
			}
			return true
		})
	}
	if found < 50 {
		t.Errorf("internal/specialaddr lists %d prefixes: does this test still find them?", found)
	}
}

package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// TestKinds checks that internal/store/kinds.go is the only list of object kinds. Every constant must be a key of its
// map, in which duplicates do not compile, and no other package may write a kind as a string.
func TestKinds(t *testing.T) {
	var declared, listed []string
	for _, s := range sources(t) {
		switch {
		case s.path == "internal/store/kinds.go":
			declared, listed = kindsOf(s.file)
		case !s.isTest() && s.pkg != "internal/store":
			ast.Inspect(s.file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && writesKind(call) {
					t.Errorf("%s: a kind of objects is written as a string: list it in internal/store/kinds.go",
						s.fset.Position(call.Pos()))
				}
				return true
			})
		}
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if len(declared) < 30 || !slices.Equal(declared, listed) {
		t.Errorf("internal/store/kinds.go declares %v and lists %v", declared, listed)
	}
}

// kindsOf returns the constants of type Kind, and the keys of the map of all kinds.
func kindsOf(f *ast.File) (declared, listed []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && n.Tok == token.CONST {
					declared = append(declared, v.Names[0].Name)
				}
			}
		case *ast.KeyValueExpr:
			listed = append(listed, n.Key.(*ast.Ident).Name)
		}
		return true
	})
	return declared, listed
}

// writesKind reports whether a call converts to store.Kind, or passes a string literal where a kind is expected.
func writesKind(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	if pkg, ok := f.X.(*ast.Ident); ok && pkg.Name == "store" && f.Sel.Name == "Kind" {
		return true
	}
	_, literal := call.Args[0].(*ast.BasicLit)
	methods := []string{"PutObject", "DeleteObject", "Object", "EachObject", "EachObjectAfter", "ObjectVersion"}
	return literal && slices.Contains(methods, f.Sel.Name)
}

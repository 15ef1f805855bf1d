//go:build !soak

package hostile

// bombs is the size of the bombs of an administrator, and the number of other bombs. With the tag soak it is four times
// as large.
const bombs = 1

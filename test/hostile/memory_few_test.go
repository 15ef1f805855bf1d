//go:build !soak

package hostile

// bombs is how large the bombs of an administrator, and how many of the others, are: with the tag soak four times this.
const bombs = 1

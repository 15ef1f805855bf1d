//go:build soak

package hostile

const bombs = 4

//go:build soak

package hostile

const storeTrials = 500

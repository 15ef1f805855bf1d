//go:build !soak

package hostile

// storeTrials is the number of damaged stores; with the tag soak there are 500.
const storeTrials = 40

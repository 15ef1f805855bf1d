//go:build !soak

package hostile

// storeTrials is the number of damaged stores. With the tag soak it is 500.
const storeTrials = 40

//go:build !linux

package main

// freeProgram is for Linux.
func freeProgram() {}

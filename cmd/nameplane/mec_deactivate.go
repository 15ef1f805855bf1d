package main

import "github.com/spf13/cobra"

// newMecDeactivate is for maintenance: the rule stays stored, so that mec activate restores it without the descriptor.
func newMecDeactivate(conn *connection) *cobra.Command {
	return newMecState(conn, "deactivate", "INACTIVE")
}

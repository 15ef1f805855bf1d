package main

import "github.com/spf13/cobra"

func newMecDeactivate(conn *connection) *cobra.Command {
	return newMecState(conn, "deactivate", "INACTIVE")
}

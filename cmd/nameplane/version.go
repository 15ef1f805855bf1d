package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// build describes this program: version, commit and toolchain.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// newVersionCommand reads the information that the Go linker stores. There is no -ldflags variable that a build could
// forget.
func newVersionCommand() *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: `Print the version of this program, the commit if it is known, and the Go release that
built it. The command sends no request to a server.`,
		Example: `  nameplane version
  nameplane version -o json`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild(debug.ReadBuildInfo())
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), b)
			}
			commit := b.Commit
			// A build from a tree with changes has the commit of its parent. Without the remark, a bug report would name the
			// wrong source.
			if b.Modified {
				commit += " with changes"
			}
			return cli.PrintPairs(cmd.OutOrStdout(), [][2]string{
				{"nameplane", b.Version}, {"commit", commit}, {"time", b.Time}, {"go", b.Go}, {"platform", b.Platform},
			})
		},
	}
	out.AddFlag(c)
	return c
}

// thisBuild returns the build of this program, from the information that the Go linker stored in it.
func thisBuild(info *debug.BuildInfo, ok bool) build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	// A program that was built without modules has no build information. Go version and platform are always known.
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version = ""

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), versionLine())
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("sim %s (%s %s/%s)", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionText names the source that the binary was built from.
func versionText() string {
	if version != "" {
		return version
	}
	text := "devel"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	if revision := setting["vcs.revision"]; len(revision) >= 12 {
		text += " " + revision[:12]
	}
	if setting["vcs.modified"] == "true" {
		text += ", modified"
	}
	return text
}

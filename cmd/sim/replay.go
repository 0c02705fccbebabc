package main

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// howFlags say how a verb is carried out, not what it finds: a page that names the
// command that makes it again is the same page wherever it was made.
var howFlags = []string{"parallel", "workers", "nats", "token-file", "creds", "tls-ca", "tls-cert", "tls-key", "listen", "ack-wait", "store", "out", "quiet", "json-progress"}

// replay writes the command that finds the same again.
func replay(cmd *cobra.Command, args []string) string {
	words := append([]string{cmd.Name()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch list, ok := f.Value.(pflag.SliceValue); {
		case slices.Contains(howFlags, f.Name):
		case ok:
			for _, v := range list.GetSlice() {
				words = append(words, "--"+f.Name, v)
			}
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name+"="+f.Value.String())
		default:
			words = append(words, "--"+f.Name, f.Value.String())
		}
	})
	return commandLine(words)
}

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"slosim/experiments"
	"slosim/models"
)

// lists are what sim list can show.
var lists = []struct {
	name  string
	print func(io.Writer) error
}{
	{"models", listModels},
	{"gpus", listGPUs},
	{"experiments", listExperiments},
}

func newList() *cobra.Command {
	return &cobra.Command{
		Use:   "list models|gpus|experiments",
		Short: "List the catalogues and the shipped experiments",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			const allowed = "models, gpus, experiments"
			if len(args) != 1 {
				return fmt.Errorf("list needs one word\n  allowed: %s", allowed)
			}
			names := make([]string, len(lists))
			for i, l := range lists {
				if names[i] = l.name; l.name == args[0] {
					return l.print(cmd.OutOrStdout())
				}
			}
			return fmt.Errorf("nothing to list under %q%s", args[0], choices(args[0], names, allowed))
		},
	}
}

// aligned writes rows of tab-separated cells in columns.
func aligned(w io.Writer, rows func(row func(format string, args ...any))) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows(func(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) })
	return t.Flush()
}

func listModels(w io.Writer) error {
	return aligned(w, func(row func(string, ...any)) {
		row("model\tparams\tweights bf16\tKV per token bf16\tmax_model_len")
		for _, m := range models.LLMs() {
			row("%s\t%.1f B\t%.1f GB\t%.0f KiB\t%d", m.Name, float64(m.Params())/1e9, float64(m.WeightBytes(models.BF16))/1e9,
				float64(m.KVBytesPerToken(models.BF16))/1024, m.MaxModelLen)
		}
	})
}

func listGPUs(w io.Writer) error {
	return aligned(w, func(row func(string, ...any)) {
		row("gpu\tmemory\tbf16 dense\tfp8 dense\tHBM\tpower\tmax clock")
		for _, g := range models.GPUs() {
			fp8 := "-"
			if g.PeakFP8TFLOPS > 0 {
				fp8 = fmt.Sprintf("%.0f TFLOPS", g.PeakFP8TFLOPS)
			}
			row("%s\t%.1f GiB\t%.0f TFLOPS\t%s\t%.0f GB/s\t%.0f W\t%d MHz", g.Name, float64(g.MemoryMiB)/1024, g.PeakBF16TFLOPS, fp8, g.BandwidthGBs, g.TDPW, g.MaxClockMHz)
		}
	})
}

func listExperiments(w io.Writer) error {
	list, err := experiments.List()
	if err != nil {
		return err
	}
	return aligned(w, func(row func(string, ...any)) {
		for _, x := range list {
			row("%s\t%s", x.Name, x.Title)
			row("\t%s", x.Question)
		}
	})
}

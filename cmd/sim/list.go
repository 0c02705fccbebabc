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
	err := aligned(w, func(row func(string, ...any)) {
		row("model\tparams\tactive\tweights\tdtype\tKV per token bf16\tattention\texperts\tmax_model_len")
		for _, m := range models.LLMs() {
			dtype := m.NativeDtype()
			row("%s\t%.1f B\t%.1f B\t%.1f GB\t%s\t%.0f KiB\t%s\t%s\t%d", m.Name, float64(m.Params())/1e9, float64(m.ActiveParams())/1e9,
				float64(m.WeightBytes(dtype))/1e9, dtype, float64(m.KVBytesPerToken(models.BF16))/1024, m.AttentionKind(), m.ExpertKind(), m.MaxModelLen)
		}
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "\nAny other: model = \"path/to/config.json\" of a Hugging Face checkpoint.")
	return err
}

// orUnknown writes a figure that may not be published.
func orUnknown(value float64, unit string) string {
	if value == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.0f %s", value, unit)
}

// orNone writes a rate that a GPU may not have.
func orNone(value float64) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", value)
}

func listGPUs(w io.Writer) error {
	err := aligned(w, func(row func(string, ...any)) {
		row("gpu\tmemory\tbf16\tfp8\tint8\tfp4\tHBM GB/s\tlinks\tpower\tmax clock\tslows down at\tkernels")
		for _, g := range models.GPUs() {
			links := fmt.Sprintf("%s, PCIe %.0f GB/s", g.Topology, g.PCIeGBs)
			if g.NVLinkGBs > 0 {
				links = fmt.Sprintf("%s of %d, %.0f GB/s", g.Topology, g.NodeGPUs, g.NVLinkGBs)
			}
			kernels := "measured"
			if !g.Measured() {
				kernels = "unfitted, ±30 %: as " + g.Like
			}
			row("%s\t%.1f GiB\t%.0f\t%s\t%s\t%s\t%.0f\t%s\t%.0f W\t%d MHz\t%s\t%s", g.Name, float64(g.MemoryMiB)/1024, g.PeakBF16TFLOPS,
				orNone(g.PeakFP8TFLOPS), orNone(g.PeakINT8TOPS), orNone(g.PeakFP4TFLOPS), g.BandwidthGBs, links, g.TDPW, g.MaxClockMHz, orUnknown(g.MaxTempC, "C"), kernels)
		}
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "\nPeaks are dense TFLOPS; links one direction per GPU. Where a figure is unknown, what needs it is refused: thermal = true.")
	return err
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

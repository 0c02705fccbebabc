package calibrate

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Header says what a calibration file is of.
type Header struct {
	Engine, Since, GPU, Command string
	Frontend                    string // of trtllm, if it is not its own server
	Models                      string // "dense" or "moe": the models that the constants are for; "" = all
	FittedOn                    []string
}

// Write writes the calibration file.
func (f *Fit) Write(w io.Writer, h Header) {
	fmt.Fprintln(w, "# Constants fitted to measured runs by sim calibrate. Values that the data do not\n# identify stay near where the fit began; they are marked.")
	fmt.Fprintf(w, "engine = %q\n", h.Engine)
	if h.Since != "" {
		fmt.Fprintf(w, "since = %q\n", h.Since)
	}
	if h.GPU != "" {
		fmt.Fprintf(w, "gpu = %q\n", h.GPU)
	}
	if h.Frontend != "" && h.Frontend != "trtllm-serve" {
		fmt.Fprintf(w, "frontend = %q\n", h.Frontend)
	}
	if h.Models != "" {
		fmt.Fprintf(w, "models = %q\n", h.Models)
	}
	fmt.Fprintf(w, "command = %q\n", h.Command)
	fmt.Fprint(w, "fitted_on = [")
	for i, run := range h.FittedOn {
		if i > 0 {
			fmt.Fprint(w, ", ")
		}
		fmt.Fprintf(w, "%q", run)
	}
	fmt.Fprintln(w, "]")
	fmt.Fprintf(w, "fit_error = %.4f", f.Within)
	if !math.IsNaN(f.CrossValidated) {
		fmt.Fprintf(w, "\ncrossvalidated_error = %.4f", f.CrossValidated)
	}
	for _, section := range []struct {
		name string
		host bool
	}{{"host", true}, {"speed", false}} {
		head := fmt.Sprintf("\n\n[%s]\n", section.name)
		for _, p := range f.Params {
			if (p.host != nil) != section.host {
				continue
			}
			if p.Name == "speed" {
				fmt.Fprintf(w, "%scompute = %s\nmemory = %s%s\n", head, p.text(p.Value), p.text(p.Value), p.remark())
			} else {
				fmt.Fprintf(w, "%s%s = %s%s\n", head, p.Name, p.text(p.Value), p.remark())
			}
			head = ""
		}
		for _, h := range f.Held {
			if (h.host != nil) == section.host {
				fmt.Fprintf(w, "%s%s = %s  # held\n", head, h.Name, (&Fitted{Parameter: h.Parameter}).text(h.Value))
				head = ""
			}
		}
	}
}

// text writes a value as TOML.
func (p *Fitted) text(v float64) string {
	if p.Unit == "" {
		return fmt.Sprintf("%.4f", v)
	}
	return fmt.Sprintf(`"%s%s"`, strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", v), "0"), "."), p.Unit)
}

func (p *Fitted) remark() string {
	text := fmt.Sprintf("  # ± %.3g%s, began at %.4g", p.Error, p.Unit, p.Start)
	if p.AtBound {
		text += "; at its bound"
	}
	if !p.Identified {
		text += "; not identified by these data"
	}
	return text
}

// Print writes the fit for a person.
func (f *Fit) Print(w io.Writer) {
	fmt.Fprintf(w, "%d figures, %d simulations\n\n", f.Figures, f.Evaluations)
	fmt.Fprintf(w, "  %-16s %12s %12s %10s\n", "constant", "fitted", "began at", "±")
	for _, p := range f.Params {
		note := ""
		if p.AtBound {
			note += "  at its bound"
		}
		if !p.Identified {
			note += "  not identified by these data"
		}
		fmt.Fprintf(w, "  %-16s %12s %12s %10.3g%s\n", p.Name, strings.Trim(p.text(p.Value), `"`), strings.Trim(p.text(p.Start), `"`), p.Error, note)
	}
	fmt.Fprintf(w, "\n  mean absolute error: %.2f %% before, %.2f %% fitted", 100*f.Before, 100*f.Within)
	if !math.IsNaN(f.CrossValidated) {
		fmt.Fprintf(w, ", %.2f %% on what was left out (%d folds)", 100*f.CrossValidated, f.Folds)
	}
	fmt.Fprintf(w, "\n\n  %-60s %9s %9s %9s\n", "figure", "before", "fitted", "noise")
	for _, r := range f.Rows {
		fmt.Fprintf(w, "  %-60s %+8.1f%% %+8.1f%% %8.1f%%\n", r.Name, 100*r.Before, 100*r.After, 100*r.Noise)
	}
}

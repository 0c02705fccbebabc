// Sim simulates an LLM inference cluster and tells whether it keeps its promises.
// Each verb has a file of its own; what a verb does is in the packages below.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slosim/internal/config"
)

// Exit statuses, the same for every verb.
const (
	exitDone        = 0
	exitGate        = 1   // the result reached the --gate
	exitInput       = 2   // bad input
	exitInternal    = 3   // internal error, or done in part
	exitInterrupted = 130 // Ctrl-C
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// exit is an error that decides the exit status; a nil err says nothing more.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// run carries out the command line and returns the exit status.
func run(args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			code = crashed(stderr, args, p)
		}
	}()
	ctx, stop := interruptible(stderr)
	defer stop()

	out := &output{w: stdout}
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if lost := out.lost(); lost != nil {
		err = &exit{exitInternal, lost}
	}
	if err == nil || out.err != nil && errors.Is(err, out.err) { // nobody reads any more
		return exitDone
	}
	code = exitInput // what cobra itself finds is a faulty command line
	var e *exit
	if errors.As(err, &e) {
		code, err = e.code, e.err
	}
	if err != nil {
		fmt.Fprintln(stderr, message(err))
	}
	return code
}

// message writes an error for the person; input errors bring their own place.
func message(err error) string {
	var list config.Errors
	var one *config.Error
	if errors.As(err, &list) || errors.As(err, &one) {
		return err.Error()
	}
	return "sim: error: " + err.Error()
}

// crashed reports a broken invariant with the command that replays it.
func crashed(stderr io.Writer, args []string, p any) int {
	fmt.Fprintf(stderr, "sim: internal error: %v\n", p)
	fmt.Fprintf(stderr, "  This is a fault of sim, not of your input. It happens again with:\n    %s\n", commandLine(args))
	if os.Getenv("SIM_STACK") == "" {
		fmt.Fprintln(stderr, "  With SIM_STACK=1 in the environment it also prints where.")
	} else {
		stderr.Write(debug.Stack())
	}
	return exitInternal
}

// interruptible returns a context that the first Ctrl-C cancels; the second one
// ends the program at once.
func interruptible(stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		fmt.Fprintln(stderr, "\nsim: interrupted; writing what there is. Once more to quit at once.")
		cancel()
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel() }
}

// newRoot builds the command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sim",
		Short: "Simulate an LLM inference cluster: do its latency promises hold?",
		Long: `Simulate an LLM inference cluster: do its latency promises hold, and when is
the error budget gone?

Exit status: 0 done; 1 the result reached --gate; 2 bad input; 3 internal error
or done in part; 130 interrupted.`,
		Example:       "  sim run experiments/prompt-growth.toml\n  sim explain prompt-growth pool.main.engine",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          knownVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Version = versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(unknownFlag)
	root.AddCommand(newRun(), newReview(), newCompare(), newAccuracy(), newCalibrate(), newCheck(), newExplain(), newPreview(), newSLO(), newReady(), newCoverage(), newTrace(), newValidate(), newCurve(), newLadder(), newPlan(), newSweep(), newWorker(), newList(), newVersion())
	return root
}

// knownVerb reports a first word that is no verb.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	return fmt.Errorf("unknown verb %q%s", args[0], choices(args[0], verbs, strings.Join(verbs, ", ")))
}

// unknownFlag adds the nearest flag to pflag's message.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%w\n  see: %s --help", err, cmd.CommandPath())
	}
	var names, shown []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names = append(names, f.Name)
		shown = append(shown, "--"+f.Name)
	})
	name := strings.TrimLeft(unknown.GetSpecifiedName(), "-")
	text := fmt.Sprintf("unknown flag --%s of %s", name, cmd.CommandPath())
	if near := config.Nearest(name, names); near != "" {
		return fmt.Errorf("%s\n  allowed: %s\n  did you mean --%s?", text, strings.Join(shown, ", "), near)
	}
	return fmt.Errorf("%s\n  allowed: %s", text, strings.Join(shown, ", "))
}

// choices writes what is allowed and the nearest name, for the end of a message.
func choices(word string, names []string, allowed string) string {
	text := "\n  allowed: " + allowed
	if near := config.Nearest(word, names); near != "" {
		text += fmt.Sprintf("\n  did you mean %q?", near)
	}
	return text
}

// oneFile wants the experiment's file as the only argument, or up to max.
func oneFile(max int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs an experiment file\n  for example: %s experiments/prompt-growth.toml\n  shipped experiments: sim list experiments", cmd.CommandPath(), cmd.CommandPath())
		case len(args) > max:
			return fmt.Errorf("%s: %q is one argument too many\n  usage: %s", cmd.CommandPath(), args[max], cmd.UseLine())
		}
		return nil
	}
}

// warn prints what is likely wrong in a valid experiment.
func warn(w io.Writer, p config.Provenance) {
	for _, e := range p.Warnings {
		fmt.Fprintf(w, "%s\n\n", e)
	}
}

// setFlag adds --set to a verb.
func setFlag(cmd *cobra.Command, sets *[]string) {
	cmd.Flags().StringArrayVar(sets, "set", nil, "override a setting: `path=value`, for example pool.main.replicas=8 (repeatable)")
}

// commandLine writes a command as a shell takes it.
func commandLine(args []string) string {
	words := []string{"sim"}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n\"'`$&|;<>()*?[]{}#~\\!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"slosim/internal/progress"
	"slosim/internal/queue"
	"slosim/internal/trials"
)

// workerFlags are the flags of sim worker.
type workerFlags struct {
	serverFlags
	progressFlags
	parallel int
	idle     time.Duration
	cache    string
	child    bool
}

func newWorker() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker --nats URL",
		Short: "Simulate for a sweep, plan, review or validation that runs elsewhere",
		Long: `Join a NATS server and simulate what sim sweep, plan, ladder, curve, review and
validate hand out there with --nats URL (or --workers N --listen HOST:PORT), until
there has been nothing to do for the --idle time.

The worker must be the same binary as the coordinator, and is refused otherwise.
Traces come from the server; everything else that an experiment needs is in the task.

Exit status: 0 nothing more to do; 2 wrong flags, credentials or version; 3 the server
was not reached for the --idle time, or this machine cannot work, for example with a
full disk: its task goes to another worker; 130 interrupted, likewise.`,
		Example: "  sim worker --nats tls://nats.example:4222 --creds team.creds\n  sim worker --nats nats://desk:4222 --token-file token --parallel 16",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.serverFlags.add(cmd, "`url` of the server, such as tls://nats.example:4222")
	f.progressFlags.add(cmd, "no progress")
	cmd.Flags().IntVar(&f.parallel, "parallel", 0, "simulations side by side (default: one per core)")
	cmd.Flags().DurationVar(&f.idle, "idle", 2*time.Minute, "end after so long without a coordinator or a task; 0 = never")
	cmd.Flags().StringVar(&f.cache, "cache", "", "folder for traces (default: the user's cache folder)")
	cmd.Flags().BoolVar(&f.child, "until-input-ends", false, "end when standard input does")
	cmd.Flags().Lookup("until-input-ends").Hidden = true
	return cmd
}

func (f *workerFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	switch {
	case f.url == "":
		return &exit{exitInput, errors.New("sim worker needs the server that hands out work\n  for example: sim worker --nats nats://host:4222 --token-file token")}
	case f.parallel < 0 || f.parallel > 4096:
		return flagError("parallel", f.parallel, "0 (one per core) to 4096")
	case f.idle < 0:
		return flagError("idle", f.idle, "0 (never) or more, for example 10m")
	}
	if f.parallel == 0 {
		f.parallel = runtime.GOMAXPROCS(0)
	}
	if f.cache == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		f.cache = filepath.Join(cache, "sim", "files")
	}
	s, err := f.server("sim worker")
	if err != nil {
		return &exit{exitInput, err}
	}
	if f.child {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		go queue.UntilClosed(os.Stdin, end)
	}
	m := progress.New(stderr, f.mode()) // no clock: an idle worker is silent
	var done, failed atomic.Int64
	err = queue.Serve(ctx, s, trials.Work, queue.WorkerOptions{
		Version: trials.Version(versionText()), Slots: f.parallel, Idle: f.idle, Files: f.cache, Log: m.Say,
		Done: func(_ string, err error) {
			if err != nil {
				failed.Add(1)
			}
			m.Update(progress.State{Stage: "worker", Done: int(done.Add(1)), Unit: "simulations", Failed: int(failed.Load())})
		},
	})
	m.Done()
	var version *queue.ErrVersion
	switch {
	case ctx.Err() != nil && f.child:
		return nil
	case ctx.Err() != nil:
		return &exit{exitInterrupted, fmt.Errorf("interrupted after %d simulations; what was begun goes to another worker", done.Load())}
	case errors.As(err, &version), errors.Is(err, queue.ErrAuthorization):
		return &exit{exitInput, err}
	case err != nil:
		return &exit{exitInternal, err}
	}
	if !f.quiet {
		fmt.Fprintf(stdout, "%d simulations, nothing more to do\n", done.Load())
	}
	return nil
}

//go:build unix

package queue

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C at the terminal from reaching a worker before the coordinator
// has dealt with it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

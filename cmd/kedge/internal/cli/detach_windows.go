package cli

import (
	"os/exec"
	"syscall"
)

// detach keeps an interrupt of kedge from the program.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

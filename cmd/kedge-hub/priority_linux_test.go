package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// All threads of a process yield, also those that begin later. The test lowers the priority of a process of its own.
func TestLowerPriority_isThatOfAllThreads(t *testing.T) {
	t.Parallel()
	const child = "KEDGE_TEST_LOWERS_PRIORITY"
	if os.Getenv(child) == "" {
		program, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), program, "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	lowerPriority()
	const threads = 20
	began, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	for range threads {
		go func() {
			runtime.LockOSThread()
			began <- struct{}{}
			<-end
		}()
	}
	for range threads {
		<-began
	}
	held, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	require.Greater(t, len(held), threads)
	for _, thread := range held {
		id, err := strconv.Atoi(thread.Name())
		require.NoError(t, err)
		// The system call returns 20 minus the nice value.
		got, err := syscall.Getpriority(syscall.PRIO_PROCESS, id)
		require.NoError(t, err)
		require.Equal(t, 20-lowNice, got)
	}
}

package main

import (
	"os"
	"strconv"
	"syscall"
)

// lowNice is the nice value of work that must not hold up a hub on the same machine. The process still
// gets a tenth of what another one gets on a busy core.
const lowNice = 10

// lowerPriority lowers the priority of this process where the system allows it. On Linux a priority is that of a
// thread, and a new thread inherits it; the second pass finds threads that began during the first.
func lowerPriority() {
	for range 2 {
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			if id, err := strconv.Atoi(t.Name()); err == nil {
				_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowNice)
			}
		}
	}
}

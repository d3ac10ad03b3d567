package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

type hubProcess struct {
	*framework.Process
	*framework.Client
	dir string
	// took is the time until ready.
	took time.Duration
}

// startHub starts a hub with its data in dir and waits until it is ready.
func startHub(dir string, flags ...string) (*hubProcess, error) {
	port, err := framework.FreePort()
	if err != nil {
		return nil, err
	}
	return startHubAt(dir, port, flags...)
}

// startHubAt is startHub with a given port.
func startHubAt(dir string, port int, flags ...string) (*hubProcess, error) {
	program, err := framework.Bin("kedge-hub")
	if err != nil {
		return nil, err
	}
	return startProgram(program, dir, port, flags...)
}

// startProgram is startHubAt with the program of a hub.
func startProgram(program, dir string, port int, flags ...string) (*hubProcess, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	tokens := filepath.Join(dir, "tokens.csv")
	newcomers := make([]string, max(signUps, signUpsAtOnce))
	for i := range newcomers {
		newcomers[i] = newcomer(i)
	}
	if err := framework.WriteTokens(tokens, newcomers...); err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	began := time.Now()
	p, err := framework.StartProcess(program, append([]string{
		"--data-dir", dir, "--spare-organizations", "0", "--spare-workspaces", "0", "--token-file", tokens, "--listen-address", address,
		"--metrics-listen-address", "", "--kcp-port", "0", "--etcd-client-port", "0", "--etcd-peer-port", "0",
		"--create-timeout", "1m", "--default-org-quota", "10000", "--default-workspace-quota", "10000",
	}, flags...)...)
	if err != nil {
		return nil, err
	}
	h := &hubProcess{Process: p, dir: dir}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(framework.Long)
	for {
		if h.Client == nil {
			h.Client, _ = framework.NewClient("https://"+address, filepath.Join(dir, "tls", "ca.crt"))
		} else if a, err := h.Try(framework.Call{Method: http.MethodGet, Path: "/readyz"}); err == nil && a.Code == http.StatusOK {
			h.took = time.Since(began)
			return h, nil
		}
		select {
		case <-p.Ended():
			return nil, fmt.Errorf("the hub ended: %s", p.Output)
		case <-deadline:
			p.Kill()
			return nil, fmt.Errorf("the hub did not become ready: %s", p.Output)
		case <-tick.C:
		}
	}
}

// measureStarts starts a bare kcp and a hub, cold and warm, and once more for the memory that they have when they are idle.
func measureStarts(dir string) ([]row, error) {
	kcpDir := filepath.Join(dir, "kcp")
	if err := os.MkdirAll(kcpDir, 0o700); err != nil {
		return nil, err
	}
	hubDir := filepath.Join(dir, "start")
	var rows []row
	for _, what := range []string{"start, cold", "start, warm"} {
		began := time.Now()
		k, err := framework.StartKCP(kcpDir)
		if err != nil {
			return nil, err
		}
		bare := time.Since(began)
		if err := k.Stop(); err != nil {
			return nil, err
		}
		h, err := startHub(hubDir)
		if err != nil {
			return nil, err
		}
		if err := h.Stop(); err != nil {
			return nil, fmt.Errorf("stop the hub: %w", err)
		}
		rows = append(rows, row{what, seconds(bare), seconds(h.took), ratio(h.took.Seconds(), bare.Seconds()), "≤ 1.15"})
	}
	memory, err := measureMemory(kcpDir, hubDir)
	return append(rows, memory...), err
}

// measureMemory compares a hub and a kcp, one after the other, each as long after a warm start as the other: the garbage of a
// start is given back late.
func measureMemory(kcpDir, hubDir string) ([]row, error) {
	kcp, err := framework.StartKCP(kcpDir)
	if err != nil {
		return nil, err
	}
	defer kcp.Kill()
	bare, err := settled(kcp.PID())
	if err != nil {
		return nil, err
	}
	if err := kcp.Stop(); err != nil {
		return nil, err
	}
	h, err := startHub(hubDir)
	if err != nil {
		return nil, err
	}
	defer h.Kill()
	hub, err := settled(h.PID())
	return []row{{"memory, idle", fmt.Sprintf("%d MiB", bare), fmt.Sprintf("%d MiB", hub), fmt.Sprintf("%+d MiB", hub-bare), "≤ +80 MiB"}}, err
}

func rss(pid int) (int, error) { return processMemory(pid, "VmRSS:") }

// processMemory returns a size of a process in MiB, by the name of its line in /proc/PID/status.
func processMemory(pid int, line string) (int, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(l, line); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10, err
		}
	}
	return 0, fmt.Errorf("no %s of process %d", line, pid)
}

// cpuOf returns the CPU time that a process has used.
func cpuOf(pid int) (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the program, in parentheses, may have spaces.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += time.Duration(n)
	}
	return ticks * time.Second / clockTicks, nil
}

// clockTicks is the number of ticks in a second of /proc/PID/stat on Linux.
const clockTicks = 100

func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }

func ratio(measured, baseline float64) string { return fmt.Sprintf("%.2f", measured/baseline) }

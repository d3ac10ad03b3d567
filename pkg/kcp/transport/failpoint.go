package transport

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
)

// failPointFile is the variable that names a file which says where the process is
// to be killed, for tests of what a crash leaves behind. The file is one line,
//
//	<run-id> <n> <before|after>
//
// and may change at any time: the n-th write since the run-id was first seen is
// the last; 0 is none of them. Every write is told of in the file of the same name
// with ".log":
//
//	<run-id> <k> <METHOD> <resource[/subresource]>
//
// Renewals of a Lease are no such writes, because when they come is chance.
const failPointFile = "KEDGE_FAIL_POINT_FILE"

// failPoints kills the process at a write, just before it is sent or just after
// its answer has come, before the caller knows.
type failPoints struct {
	file string

	mu    sync.Mutex
	run   string
	count int
}

func (f *failPoints) around(next http.RoundTripper) http.RoundTripper {
	return failing{next: next, failPoints: f}
}

type failing struct {
	next http.RoundTripper
	*failPoints
}

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	resource := resourceIn(r.URL.Path)
	if !mutating(r.Method) || resource == "leases" {
		return f.next.RoundTrip(r)
	}
	run, k, when := f.point()
	if run == "" {
		return f.next.RoundTrip(r)
	}
	if when == "before" {
		kill()
	}
	response, err := f.next.RoundTrip(r)
	f.log(fmt.Sprintf("%s %d %s %s\n", run, k, r.Method, resource))
	if when == "after" {
		kill()
	}
	return response, err
}

// point counts a write and returns when it is to kill: "before", "after", or
// neither. run is empty where the file says nothing.
func (f *failPoints) point() (run string, k int, when string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	raw, err := os.ReadFile(f.file)
	if err != nil {
		return "", 0, ""
	}
	var n int
	if _, err := fmt.Sscan(string(raw), &run, &n, &when); err != nil {
		return "", 0, ""
	}
	if run != f.run {
		f.run, f.count = run, 0
	}
	if f.count++; f.count != n {
		when = ""
	}
	return run, f.count, when
}

func (f *failPoints) log(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out, err := os.OpenFile(f.file+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = out.WriteString(line)
	_ = out.Close()
}

// kill ends the process as kill -9 does, and does not return.
func kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// resourceIn is the resource, and the subresource after a slash, of a request's
// path below ".../clusters/{cluster}/": never a name. It is "-" for any other.
func resourceIn(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for len(parts) > 0 && parts[0] != "clusters" {
		parts = parts[1:]
	}
	switch {
	case len(parts) > 4 && parts[2] == "api":
		parts = parts[4:]
	case len(parts) > 5 && parts[2] == "apis":
		parts = parts[5:]
	default:
		return "-"
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

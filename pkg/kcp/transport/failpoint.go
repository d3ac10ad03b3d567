//go:build failpoints

package transport

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// failPointFile is the environment variable that names a file with the write at which the
// process is killed, for tests of what a crash leaves behind. Only a program with the build tag
// failpoints reads it. The file is one line,
//
//	<run-id> <n> <before|after>
//
// and may change at any time. The process is killed at the n-th write since the run-id
// appeared; 0 never kills it. Every write is logged to the file of the same name with
// ".log":
//
//	<run-id> <k> <METHOD> <resource[/subresource]>
//
// Renewals of a Lease are not counted, because they come at random times, nor are
// SelfSubjectReviews and TokenReviews, which write nothing.
const failPointFile = "KEDGE_FAIL_POINT_FILE"

// failPoints kills the process at a write: just before it is sent, or just after its
// answer has arrived and before the caller has it.
type failPoints struct {
	file string

	mu    sync.Mutex
	run   string
	count int
}

// newFailPoints returns the layer that kills the process, or nil without failPointFile.
func newFailPoints() layer {
	file := os.Getenv(failPointFile)
	if file == "" {
		return nil
	}
	return (&failPoints{file: file}).around
}

func (f *failPoints) around(next http.RoundTripper) http.RoundTripper {
	return failing{next: next, failPoints: f}
}

type failing struct {
	next http.RoundTripper
	*failPoints
}

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	resource := resourceIn(r)
	if !mutating(r.Method) || resource == "leases" || resource == "selfsubjectreviews" || resource == "tokenreviews" {
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

// point counts a write and returns when to kill the process: "before", "after", or any
// other value for not at all. run is empty where the file says nothing.
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

// kill ends the process as "kill -9" does, and does not return.
func kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// resourceIn returns the resource, and the subresource after a slash, of a request below
// ".../clusters/{cluster}/". It never returns a name. Any other request is "-".
func resourceIn(r *http.Request) string {
	_, below, ok := strings.Cut(r.URL.Path, "/clusters/")
	if !ok {
		return "-"
	}
	_, path, _ := strings.Cut(below, "/")
	inner := r.Clone(r.Context())
	inner.URL.Path = "/" + path
	factory := request.RequestInfoFactory{APIPrefixes: map[string]sets.Empty{"api": {}, "apis": {}}, GrouplessAPIPrefixes: map[string]sets.Empty{"api": {}}}
	info, err := factory.NewRequestInfo(inner)
	switch {
	case err != nil || !info.IsResourceRequest:
		return "-"
	case info.Subresource != "":
		return info.Resource + "/" + info.Subresource
	}
	return info.Resource
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/faroshq/kedge-hub/test/framework"
)

// floodArgument is the argument that starts this program as a flood.
const floodArgument = "walls-flood"

// flooderName is the person that floods.
const flooderName = "victor"

// flooding is what a process that floods is told.
type flooding struct {
	Flood   string
	Lasting time.Duration
	// Hubs are the URLs of the hubs, and CAs the files that they are verified with.
	Hubs, CAs []string
	// Kubeconfig is that of kcp's admin.
	Kubeconfig string
	// Org and Workspace are those of the flooder.
	Org, Workspace tenant
}

// floodProcess is a flood in a process of its own. The collection of its garbage and its connections are then none of
// the neighbour's.
type floodProcess struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  *framework.Output
}

// startFlood makes a tenant that floods, and starts its process, which prepares the flood.
func (s *stage) startFlood(name string, lasting time.Duration) (*floodProcess, error) {
	o := flooding{Flood: name, Lasting: lasting, Kubeconfig: s.kcp + "/admin.kubeconfig"}
	for _, h := range s.hubs {
		o.Hubs, o.CAs = append(o.Hubs, h.URL), append(o.CAs, h.CA)
	}
	var err error
	if o.Org, o.Workspace, err = s.newTenant(flooderName); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &floodProcess{command: exec.Command("nice", "-n", "10", program, floodArgument), errors: &framework.Output{}}
	f.command.Stderr, f.command.SysProcAttr = f.errors, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if f.in, err = f.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewReader(out)
	if err := f.command.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(f.in).Encode(o); err != nil {
		f.kill()
		return nil, err
	}
	var ready bool
	if err := f.line(&ready); err != nil {
		f.kill()
		return nil, err
	}
	return f, nil
}

// line reads one answer of the process.
func (f *floodProcess) line(into any) error {
	raw, err := f.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the flood ended: %w: %s", err, f.errors)
	}
	return json.Unmarshal(raw, into)
}

// begin starts the flood.
func (f *floodProcess) begin() error {
	_, err := f.in.Write([]byte("begin\n"))
	return err
}

// result waits for the end of the flood.
func (f *floodProcess) result() (sent, error) {
	counted := sent{}
	err := f.line(&counted)
	return counted, err
}

func (f *floodProcess) kill() {
	_ = f.command.Process.Kill()
	_ = f.command.Wait()
}

// serveFlood is the process of a flood. It reads what to do, prepares it, says so, and floods when it is told to.
func serveFlood(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	raw, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	s := &flooder{}
	if err := json.Unmarshal(raw, &s.flooding); err != nil {
		return err
	}
	var pem []byte
	for _, file := range s.CAs {
		ca, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pem = append(pem, ca...)
	}
	f := floodNamed(s.Flood)
	s.client = clientFor(pem)
	framework.TransportOf(s.client).MaxIdleConnsPerHost = f.streams
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if f.prepare != nil {
		if err := f.prepare(s); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(true); err != nil {
		return err
	}
	if _, err := lines.ReadBytes('\n'); err != nil {
		return err
	}
	return answers.Encode(s.run(f))
}

// flooder is the tenant that floods.
type flooder struct {
	flooding
	client *http.Client
}

// run floods for the time that was asked for, and counts the answers by code.
func (s *flooder) run(f wallFlood) sent {
	ctx, cancel := context.WithTimeout(context.Background(), s.Lasting)
	defer cancel()
	counted := sent{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for stream := range f.streams {
		running.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				code, err := f.step(ctx, s, stream, turn)
				// A request that the end of the flood cut is none that the hub left unanswered.
				if err != nil && ctx.Err() != nil {
					return
				}
				mu.Lock()
				counted[code]++
				mu.Unlock()
			}
		})
	}
	running.Wait()
	return counted
}

// send sends a call to the hub whose turn it is and returns the code of the answer, which it discards.
func (s *flooder) send(ctx context.Context, hub int, c framework.Call) (int, error) {
	response, err := s.open(ctx, hub, c)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err = io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}

// open sends a call as the flooder. Its body is text or is sent as JSON.
func (s *flooder) open(ctx context.Context, hub int, c framework.Call) (*http.Response, error) {
	body, ok := c.Body.(string)
	if !ok && c.Body != nil {
		raw, err := json.Marshal(c.Body)
		if err != nil {
			return nil, err
		}
		body = string(raw)
	}
	r, err := http.NewRequestWithContext(ctx, c.Method, s.Hubs[hub%len(s.Hubs)]+c.Path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range c.Header {
		r.Header[name] = values
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.As != "" {
		r.Header.Set("Authorization", "Bearer "+framework.Token(c.As))
	}
	if c.Org != "" {
		r.Header.Set("X-Kedge-Org", c.Org)
	}
	if c.Workspace != "" {
		r.Header.Set("X-Kedge-Workspace", c.Workspace)
	}
	return s.client.Do(r)
}

// establish sends a call that prepares a flood. It is sent again while a limit refuses it or the Workspace is new.
func (s *flooder) establish(c framework.Call) error {
	return framework.Wait(framework.Long, func() error {
		response, err := s.open(context.Background(), 0, c)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		raw, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode >= http.StatusMultipleChoices {
			err = fmt.Errorf("%s %s: %d %s", c.Method, c.Path, response.StatusCode, raw)
		}
		return err
	})
}

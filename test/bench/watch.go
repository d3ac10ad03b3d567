package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/faroshq/kedge-hub/test/framework"
)

const (
	// watchEvents is the number of watched events.
	watchEvents = 1000
	// replays is the number of replays, alternately through the hub and from kcp.
	replays = 9
)

// arrival is an event and the time at which it was complete.
type arrival struct {
	line []byte
	at   time.Time
}

// watchOpen is an open watch.
type watchOpen struct {
	body io.ReadCloser
	in   *bufio.Reader
	stop context.CancelFunc
}

// openWatch opens a watch as a person. It runs until it is closed.
func openWatch(client *http.Client, url string, header http.Header) (*watchOpen, error) {
	ctx, stop := context.WithTimeout(context.Background(), framework.Long)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		stop()
		return nil, err
	}
	r.Header = header
	// A client with a timeout would end the watch.
	response, err := (&http.Client{Transport: client.Transport}).Do(r) //nolint:bodyclose // close does
	if err != nil {
		stop()
		return nil, err
	}
	w := &watchOpen{response.Body, bufio.NewReaderSize(response.Body, 64<<10), stop}
	if response.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(response.Body)
		w.close()
		return nil, fmt.Errorf("GET %s: %s %s", url, response.Status, raw)
	}
	return w, nil
}

func (w *watchOpen) close() {
	w.stop()
	_ = w.body.Close()
}

// next reads one event without decoding it, so that reading costs little.
func (w *watchOpen) next() (arrival, error) {
	line, err := w.in.ReadBytes('\n')
	return arrival{line, time.Now()}, err
}

func (w *watchOpen) take(n int) ([]arrival, error) {
	all := make([]arrival, 0, n)
	for range n {
		a, err := w.next()
		if err != nil {
			return nil, fmt.Errorf("the watch ended after %d events of %d: %w", len(all), n, err)
		}
		all = append(all, a)
	}
	return all, nil
}

// event is the decoded part of a ConfigMap's event.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Data map[string]string `json:"data"`
	} `json:"object"`
}

// measureWatch compares a watch through the hub with one in kcp: the delay of each event while
// both are open, and the rate of the same events when they are replayed.
func measureWatch(h *hubProcess) ([]row, error) {
	org, err := create(h, "dave", "/api/orgs", "")
	if err != nil {
		return nil, err
	}
	ws, err := create(h, "dave", "/api/orgs/"+org.UUID+"/workspaces", org.UUID)
	if err != nil {
		return nil, err
	}
	config, kcpCA, err := kcpOf(h)
	if err != nil {
		return nil, err
	}
	ca, err := caOf(h)
	if err != nil {
		return nil, err
	}
	const maps = "/api/v1/namespaces/default/configmaps"
	ways := [2]way{{clientFor(kcpCA), config.Host + "/clusters/" + ws.ClusterID + maps}, {clientFor(ca), h.URL + "/clusters/" + ws.ClusterID + maps}}
	began, err := ways[0].createMap()
	if err != nil {
		return nil, err
	}
	delays, err := watchDelays(ways, began)
	if err != nil {
		return nil, err
	}
	speeds, err := replayed(ways, began)
	if err != nil {
		return nil, err
	}
	return []row{
		{fmt.Sprintf("a watch of %d events, replayed", watchEvents), fmt.Sprintf("%.0f/s", speeds[0]), fmt.Sprintf("%.0f/s", speeds[1]), ratio(speeds[1], speeds[0]), "≥ 0.70"},
		{"a watched event, added delay, p50", "", "", later(delays[len(delays)/2]), "≤ +1ms"},
		{"a watched event, added delay, p99", "", "", later(delays[len(delays)*99/100]), "≤ +1ms"},
	}, nil
}

func later(d time.Duration) string { return fmt.Sprintf("%+.3fms", d.Seconds()*1000) }

// way is one of the two routes to the ConfigMaps of a Workspace: the hub or kcp.
type way struct {
	client *http.Client
	url    string
}

const watchedMap = "bench-watch"

func (w way) watch(resourceVersion string) (*watchOpen, error) {
	return openWatch(w.client, w.url+"?watch=true&fieldSelector=metadata.name%3D"+watchedMap+"&resourceVersion="+resourceVersion, bearer("dave"))
}

// createMap creates the watched ConfigMap and returns its resource version.
func (w way) createMap() (string, error) {
	raw, err := w.write(http.MethodPost, w.url, "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+watchedMap+`"},"data":{"n":"0"}}`)
	if err != nil {
		return "", err
	}
	var e event
	err = json.Unmarshal(raw, &e.Object)
	return e.Object.Metadata.ResourceVersion, err
}

func (w way) write(method, url, kind, body string) ([]byte, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = bearer("dave")
	r.Header.Set("Content-Type", kind)
	response, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s %s", method, url, response.Status, raw)
	}
	return raw, err
}

// watchDelays patches the ConfigMap in kcp while both watches are open, and returns the
// additional delay of each event through the hub, sorted.
func watchDelays(ways [2]way, resourceVersion string) ([]time.Duration, error) {
	var took [2][]arrival
	var running errgroup.Group
	for i, w := range ways {
		open, err := w.watch(resourceVersion)
		if err != nil {
			return nil, err
		}
		defer open.close()
		running.Go(func() (err error) {
			took[i], err = open.take(watchEvents)
			return err
		})
	}
	for n := range watchEvents {
		if _, err := ways[0].write(http.MethodPatch, ways[0].url+"/"+watchedMap, "application/merge-patch+json", `{"data":{"n":"`+strconv.Itoa(n+1)+`"}}`); err != nil {
			return nil, err
		}
	}
	if err := running.Wait(); err != nil {
		return nil, err
	}
	delays := make([]time.Duration, 0, watchEvents)
	for n := range watchEvents {
		for i := range ways {
			var e event
			if err := json.Unmarshal(took[i][n].line, &e); err != nil {
				return nil, err
			}
			if e.Type != "MODIFIED" || e.Object.Data["n"] != strconv.Itoa(n+1) {
				return nil, fmt.Errorf("event %d is another one: %s", n+1, took[i][n].line)
			}
		}
		delays = append(delays, took[1][n].at.Sub(took[0][n].at))
	}
	slices.Sort(delays)
	return delays, nil
}

// replayed watches from before the first event and returns the median of events per second
// for each route.
func replayed(ways [2]way, resourceVersion string) (perSecond [2]float64, err error) {
	var took [2][]time.Duration
	for range replays {
		for i, w := range ways {
			began := time.Now()
			open, err := w.watch(resourceVersion)
			if err != nil {
				return perSecond, err
			}
			_, err = open.take(watchEvents)
			took[i] = append(took[i], time.Since(began))
			open.close()
			if err != nil {
				return perSecond, err
			}
		}
	}
	for i := range took {
		perSecond[i] = watchEvents / median(took[i]).Seconds()
	}
	return perSecond, nil
}

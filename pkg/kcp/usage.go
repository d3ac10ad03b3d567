package kcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// The first page is small, because the size of the objects is not known. Later pages have about
	// pageBytes, so that kcp holds no more than that for each.
	firstPage, maxPage, pageBytes = 20, 500, 4 << 20
)

// Usage is what a logical cluster stores.
type Usage struct {
	Objects, Bytes int64
	// ByResource are the numbers of objects by "group/resource".
	ByResource map[string]int64
}

// Usage reads all objects of a logical cluster page by page, and returns their number and their size as
// JSON. An error of one resource is an error of all: what cannot be read must not count as nothing.
func (c *Clients) Usage(ctx context.Context, cluster string) (Usage, error) {
	u := Usage{ByResource: map[string]int64{}}
	if err := c.countGroup(ctx, cluster, "", []string{"/api/v1"}, &u); err != nil {
		return Usage{}, err
	}
	// kcp has no aggregated discovery of these.
	var groups metav1.APIGroupList
	if _, err := c.read(ctx, cluster, "/apis", decodeInto(&groups)); err != nil {
		return Usage{}, err
	}
	for _, group := range groups.Groups {
		bases := []string{"/apis/" + group.PreferredVersion.GroupVersion}
		for _, version := range group.Versions {
			bases = append(bases, "/apis/"+version.GroupVersion)
		}
		if err := c.countGroup(ctx, cluster, group.Name, bases, &u); err != nil {
			return Usage{}, err
		}
	}
	return u, nil
}

// countGroup counts each resource of a group in the first version that has it. The paths of the versions
// may repeat.
func (c *Clients) countGroup(ctx context.Context, cluster, group string, bases []string, u *Usage) error {
	asked, counted := map[string]bool{}, map[string]bool{}
	for _, base := range bases {
		if asked[base] {
			continue
		}
		asked[base] = true
		var version metav1.APIResourceList
		if _, err := c.read(ctx, cluster, base, decodeInto(&version)); err != nil {
			return err
		}
		for _, r := range version.APIResources {
			// What cannot be created is not stored for the tenant.
			if counted[r.Name] || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "create") {
				continue
			}
			counted[r.Name] = true
			objects, bytes, err := c.countResource(ctx, cluster, base+"/"+r.Name)
			if err != nil {
				return err
			}
			u.Objects, u.Bytes = u.Objects+objects, u.Bytes+bytes
			u.ByResource[group+"/"+r.Name] += objects
		}
	}
	return nil
}

func decodeInto(to any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(to) }
}

func (c *Clients) countResource(ctx context.Context, cluster, path string) (objects, bytes int64, err error) {
	limit, next := int64(firstPage), ""
	for {
		query := url.Values{"limit": {strconv.FormatInt(limit, 10)}}
		if next != "" {
			query.Set("continue", next)
		}
		var page page
		found, err := c.read(ctx, cluster, path+"?"+query.Encode(), page.decode)
		if err != nil {
			return 0, 0, err
		}
		objects, bytes, next = objects+page.objects, bytes+page.bytes, page.next
		if !found || next == "" {
			return objects, bytes, nil
		}
		limit = min(max(pageBytes/cmp.Or(bytes/max(objects, 1), 1), firstPage), maxPage)
	}
}

// read sends a GET and hands the body over. found is false for a resource that has been removed since
// discovery.
func (c *Clients) read(ctx context.Context, cluster, path string, decode func(io.Reader) error) (found bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.ClusterURL(cluster)+path, http.NoBody)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "application/json")
	answer, err := c.http.Do(r)
	if err != nil {
		return false, err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return false, nil
	default:
		return false, fmt.Errorf("read %s of %s: %s", path, cluster, answer.Status)
	}
	if err := decode(answer.Body); err != nil {
		return false, fmt.Errorf("parse %s of %s: %w", path, cluster, err)
	}
	return true, nil
}

// page is one page of a list, of which only one object at a time is in memory.
type page struct {
	objects, bytes int64
	next           string
}

func (p *page) decode(r io.Reader) error {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, errors.New("the list is no object"))
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "metadata":
			var m struct {
				Continue string `json:"continue"`
			}
			err = d.Decode(&m)
			p.next = m.Continue
		case "items":
			err = p.items(d)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *page) items(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		// null is an empty list.
		return err
	}
	for d.More() {
		var object json.RawMessage
		if err := d.Decode(&object); err != nil {
			return err
		}
		p.objects, p.bytes = p.objects+1, p.bytes+int64(len(object))
	}
	_, err := d.Token()
	return err
}

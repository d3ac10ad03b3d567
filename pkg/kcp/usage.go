package kcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Definitions and Bindings are the resources that say which others a logical cluster has, as "group/resource".
const (
	Definitions = "apiextensions.k8s.io/customresourcedefinitions"
	Bindings    = "apis.kcp.io/apibindings"
)

const (
	// The first page is small, because the size of the objects is not known. Later pages have about
	// pageBytes, so that kcp holds no more than that for each.
	firstPage, maxPage, pageBytes = 20, 500, 4 << 20
)

// Stored are the number of objects and their size as JSON.
type Stored struct{ Objects, Bytes int64 }

// Usage is what a logical cluster stores, by "group/resource".
type Usage struct {
	ByResource map[string]Stored
	// Unread are the resources that kcp lists in discovery and cannot read, such as those of an APIExport
	// that is gone. An entry that ends in a slash is a group without discovery.
	Unread []string
	// Owned are the resources of the logical cluster's own definitions that kcp has accepted, and Bound those of its
	// APIBindings and those that are in discovery alone. kcp may list them or not: it stores their objects nevertheless.
	Owned, Bound []string

	skip         func(resource string, object []byte) bool
	owned, bound map[string]bool
}

// Usage reads all objects of a logical cluster page by page. A resource that kcp refuses to read is in
// Unread, because a tenant can have one. Where kcp does not answer, or does not say which resources there are, the whole
// is an error. Objects for which skip is true do not count; it gets "group/resource" and the object as JSON.
func (c *Clients) Usage(ctx context.Context, cluster string, skip func(resource string, object []byte) bool) (Usage, error) {
	u := Usage{ByResource: map[string]Stored{}, skip: skip, owned: map[string]bool{}, bound: map[string]bool{}}
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
	u.Owned, u.Bound = slices.Sorted(maps.Keys(u.owned)), slices.Sorted(maps.Keys(u.bound))
	u.skip, u.owned, u.bound = nil, nil, nil
	return u, nil
}

// note takes from an object which resources there are. Of one that cannot be parsed nothing is taken: kcp has validated
// all of them.
func (u *Usage) note(resource string, object []byte) {
	switch resource {
	case Definitions:
		var d struct {
			Spec struct {
				Group string `json:"group"`
				Names struct {
					Plural string `json:"plural"`
				} `json:"names"`
			} `json:"spec"`
			Status struct {
				Conditions []metav1.Condition `json:"conditions"`
			} `json:"status"`
		}
		// One that was never established has no objects.
		if json.Unmarshal(object, &d) == nil && meta.IsStatusConditionTrue(d.Status.Conditions, "Established") {
			u.owned[d.Spec.Group+"/"+d.Spec.Names.Plural] = true
		}
	case Bindings:
		var b struct {
			Status struct {
				BoundResources []struct {
					Group    string `json:"group"`
					Resource string `json:"resource"`
				} `json:"boundResources"`
			} `json:"status"`
		}
		if json.Unmarshal(object, &b) == nil {
			for _, r := range b.Status.BoundResources {
				u.bound[r.Group+"/"+r.Resource] = true
			}
		}
	}
}

// tells reports whether a resource, or one of a group without discovery, says which others there are.
func tells(unread string) bool {
	return slices.ContainsFunc([]string{Definitions, Bindings}, func(resource string) bool {
		return unread == resource || strings.HasSuffix(unread, "/") && strings.HasPrefix(resource, unread)
	})
}

// countGroup counts each resource of a group in the first version in which it can be read. The paths of
// the versions may repeat. A version in which kcp does not find a resource says nothing of what is stored.
func (c *Clients) countGroup(ctx context.Context, cluster, group string, bases []string, u *Usage) error {
	asked, unread := map[string]bool{}, map[string]bool{}
	var refusal error
	for _, base := range bases {
		if asked[base] {
			continue
		}
		asked[base] = true
		var version metav1.APIResourceList
		if _, err := c.read(ctx, cluster, base, decodeInto(&version)); refused(err) {
			unread[group+"/"], refusal = true, err
			continue
		} else if err != nil {
			return err
		}
		for _, r := range version.APIResources {
			name := group + "/" + r.Name
			_, counted := u.ByResource[name]
			// What can be neither created nor deleted is not stored for the tenant. Objects of a definition that is being
			// deleted cannot be created any more, and stay for as long as they have finalizers.
			kept := slices.ContainsFunc(r.Verbs, func(verb string) bool { return verb == "create" || verb == "delete" })
			if counted || !kept || !slices.Contains(r.Verbs, "list") {
				continue
			}
			stored, found, err := c.countResource(ctx, cluster, base+"/"+r.Name, func(object []byte) bool {
				u.note(name, object)
				return u.skip(name, object)
			})
			switch {
			case refused(err):
				unread[name], refusal = true, err
			case err != nil:
				return err
			case !found:
				u.bound[name] = true
			default:
				u.ByResource[name] = stored
				delete(unread, name)
			}
		}
	}
	all := slices.Sorted(maps.Keys(unread))
	if slices.ContainsFunc(all, tells) {
		return refusal
	}
	u.Unread = append(u.Unread, all...)
	return nil
}

func decodeInto(to any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(to) }
}

// countResource counts the objects of a list. found is false if kcp does not find the resource.
func (c *Clients) countResource(
	ctx context.Context, cluster, path string, skip func([]byte) bool,
) (s Stored, found bool, err error) {
	limit, next := int64(firstPage), ""
	for {
		query := url.Values{"limit": {strconv.FormatInt(limit, 10)}}
		if next != "" {
			query.Set("continue", next)
		}
		page := page{skip: skip}
		found, err := c.read(ctx, cluster, path+"?"+query.Encode(), page.decode)
		if err != nil || !found {
			return Stored{}, false, err
		}
		s.Objects, s.Bytes, next = s.Objects+page.objects, s.Bytes+page.bytes, page.next
		if next == "" {
			return s, true, nil
		}
		limit = min(max(pageBytes/cmp.Or(s.Bytes/max(s.Objects, 1), 1), firstPage), maxPage)
	}
}

// refusedRead is an answer of kcp that refuses a read for as long as its cause lasts.
type refusedRead struct{ path, cluster, status string }

func (e *refusedRead) Error() string {
	return fmt.Sprintf("read %s of %s: %s", e.path, e.cluster, e.status)
}

func refused(err error) bool {
	var e *refusedRead
	return errors.As(err, &e)
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
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout:
		return false, fmt.Errorf("read %s of %s: %s", path, cluster, answer.Status)
	default:
		return false, &refusedRead{path, cluster, answer.Status}
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
	skip           func(object []byte) bool
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
		if !p.skip(object) {
			p.objects, p.bytes = p.objects+1, p.bytes+int64(len(object))
		}
	}
	_, err := d.Token()
	return err
}

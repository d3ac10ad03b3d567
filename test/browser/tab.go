package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// look is how often a condition in a page is asked for where no navigation says that it may have
// changed.
const look = 30 * time.Millisecond

// tab is a tab of the browser and the navigations in it.
type tab struct {
	ctx context.Context
	// moved has room for one: a page was loaded, or changed its URL, since it was read last.
	moved chan struct{}
}

func newTab(ctx context.Context) *tab {
	t := &tab{ctx: ctx, moved: make(chan struct{}, 1)}
	// The context has a target already, so that this cannot fail.
	_ = chromedp.Listen(ctx, func(event any) {
		switch event.(type) {
		case *page.EventFrameNavigated, *page.EventLoadEventFired, *page.EventNavigatedWithinDocument:
			select {
			case t.moved <- struct{}{}:
			default:
			}
		}
	})
	return t
}

// pause waits for a navigation in the tab, or a moment. It returns false after the end of ctx.
func (t *tab) pause(ctx context.Context) bool {
	moment := time.NewTimer(look)
	defer moment.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.moved:
	case <-moment.C:
	}
	return true
}

// navigations are the answers of Chromium to a command that meets a navigation: the page that
// was asked is gone, and the next one can be asked.
var navigations = []string{
	"Inspected target navigated or closed",
	"Execution context was destroyed",
	"Cannot find context with specified id",
	"Cannot find default execution context",
	"uniqueContextId not found",
	"No node with given id",
	"Could not find node with given id",
	"Node with given id does not belong to the document",
	"No frame for given id",
	"Frame with the given id",
	"net::ERR_ABORTED",
}

func navigated(err error) bool {
	for _, text := range navigations {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// again asks until the answer is not that the page is being left.
func (t *tab) again(ctx context.Context, ask func() (any, error)) (any, error) {
	for {
		v, err := ask()
		if err == nil || !navigated(err) || !t.pause(ctx) {
			return v, err
		}
	}
}

// asked is again for one action.
func asked[T any](ctx context.Context, t *tab, action chromedp.Action[T]) (any, error) {
	return t.again(ctx, func() (any, error) {
		v, err := chromedp.Run(ctx, action)
		if _, none := any(v).(chromedp.Void); none {
			return nil, err
		}
		return v, err
	})
}

// once carries out an action that is not repeated: where a navigation cuts it off, the action may
// be what caused it.
func once(ctx context.Context, action chromedp.Action[chromedp.Void]) error {
	if err := chromedp.Do(ctx, action); err != nil && !navigated(err) {
		return err
	}
	return nil
}

// at waits until the tab's URL begins with prefix, and returns the URL.
func (t *tab) at(ctx context.Context, prefix string) (string, error) {
	for last := any(""); ; {
		now, err := asked(ctx, t, chromedp.Location())
		if err != nil {
			return "", fmt.Errorf("the tab is at %q: %w", last, err)
		}
		if last = now; strings.HasPrefix(now.(string), prefix) {
			return now.(string), nil
		}
		if !t.pause(ctx) {
			return "", fmt.Errorf("the tab is at %q", last)
		}
	}
}

// until waits until an expression is true. An expression that fails is asked again, because the
// page may not have its elements yet.
func (t *tab) until(ctx context.Context, expression string) error {
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")", chromedp.EvalAwaitPromise))
		if ok && err == nil {
			return nil
		}
		if !t.pause(ctx) {
			shown, _ := chromedp.Run(context.WithoutCancel(ctx), chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
			return errors.New("not true in time; the tab shows " + shown)
		}
	}
}

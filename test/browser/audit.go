package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// violations runs the rules of axe-core that have one of the tags. It returns, for each element
// that violates one, the rule, the element and what is wrong.
const violations = `axe.run(document, {runOnly: {type: 'tag', values: %s}, resultTypes: ['violations']}).then((r) =>
	r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 300) + ': ' + n.failureSummary)))`

// audit checks the page with axe-core. The script runs in a world of its own, because the
// Content-Security-Policy of the page permits no script but those of its origin.
func audit(ctx context.Context, file string, tags []string) (found []string, err error) {
	script, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	values, err := json.Marshal(tags)
	if err != nil {
		return nil, err
	}
	tree, err := chromedp.Call(ctx, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	world, err := chromedp.Call(ctx, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.FrameTree.Frame.ID, WorldName: "axe"})
	if err != nil {
		return nil, err
	}
	yes := true
	evaluate := func(expression string) (json.RawMessage, error) {
		r, err := chromedp.Call(ctx, runtime.Evaluate, runtime.EvaluateParams{
			Expression: expression, ContextID: world.ExecutionContextID, AwaitPromise: &yes, ReturnByValue: &yes,
		})
		if err == nil && r.ExceptionDetails != nil {
			err = fmt.Errorf("%s: %s", r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
		}
		if err != nil {
			return nil, err
		}
		return json.RawMessage(r.Result.Value), nil
	}
	if _, err := evaluate("typeof axe !== 'undefined' || void (() => {" + string(script) + "\n})()"); err != nil {
		return nil, fmt.Errorf("load %s: %w", file, err)
	}
	raw, err := evaluate(fmt.Sprintf(violations, values))
	if err != nil {
		return nil, fmt.Errorf("run axe-core: %w", err)
	}
	return found, json.Unmarshal(raw, &found)
}

// Command browser drives a Chromium for the tests. It reads steps from its standard input,
// one JSON object a line, carries them out in a tab, and answers each with a line. It is a
// module of its own, so that its dependencies are not those of the product.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// stepLimit is the time limit of one step. A step waits for the element that it names.
const stepLimit = time.Minute

// maxStep is the maximum length of a step in bytes.
const maxStep = 1 << 20

// step is what to do in a tab, by name: goto (URL), fill (Selector, Value), click (Selector),
// text (Selector), at (URL, a prefix), eval (Value, an expression), wait (Value, an expression
// that becomes true), keys (Value), back, media (Value, light or dark), resize (Width, Height),
// overflow, cookies, console, audit (File, the script of axe-core; Value, tags of rules) or
// screenshot (File). A tab whose name begins with "private" has cookies of its own.
type step struct {
	Do       string       `json:"do"`
	Tab      string       `json:"tab"`
	URL      string       `json:"url"`
	Selector chromedp.CSS `json:"selector"`
	Value    string       `json:"value"`
	File     string       `json:"file"`
	Width    int64        `json:"width"`
	Height   int64        `json:"height"`
}

// result answers a step.
type result struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

// cookie is a cookie that the browser keeps.
type cookie struct {
	Name     string `json:"name"`
	Value    string `json:"value"`
	Domain   string `json:"domain"`
	Path     string `json:"path"`
	Secure   bool   `json:"secure"`
	HTTPOnly bool   `json:"httpOnly"`
	SameSite string `json:"sameSite"`
}

func main() {
	program := flag.String("chromium", "chromium", "the browser")
	trust := flag.String("trust", "", "hashes of the public keys of certificates that the browser takes, comma-separated: base64 of SHA-256")
	flag.Parse()
	if err := run(*program, *trust); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func run(program, trust string) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("headless", "new"))
	if trust != "" {
		options = append(options, chromedp.Flag("ignore-certificate-errors-spki-list", trust))
	}
	// Chromium's sandbox does not work as root, which containers of CI run as.
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	first, closeTabs := chromedp.NewContext(allocated)
	defer closeTabs()
	if err := chromedp.Do(first); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	seen := &console{}
	go seen.collect(chromedp.Console(first))
	tabs := map[string]*tab{"": newTab(first)}
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, maxStep)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("read a step: %w", err)
		}
		if _, ok := tabs[s.Tab]; !ok {
			var options []chromedp.ContextOption
			if strings.HasPrefix(s.Tab, "private") {
				options = append(options, chromedp.WithNewBrowserContext())
			}
			// All tabs end with the first one.
			opened, _ := chromedp.NewContext(first, options...) //nolint:govet // see above
			if err := chromedp.Do(opened); err != nil {
				return fmt.Errorf("open a tab: %w", err)
			}
			go seen.collect(chromedp.Console(opened))
			tabs[s.Tab] = newTab(opened)
		}
		value, err := do(tabs[s.Tab], s, seen)
		r := result{Value: value}
		if err != nil {
			r.Error = fmt.Sprintf("%s %s%s%s: %v", s.Do, s.Selector, s.URL, s.Value, err)
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func do(t *tab, s step, seen *console) (any, error) {
	ctx, cancel := context.WithTimeout(t.ctx, stepLimit)
	defer cancel()
	switch s.Do {
	case "goto":
		return asked(ctx, t, chromedp.Navigate(s.URL))
	case "fill":
		return asked(ctx, t, chromedp.Steps(chromedp.WaitVisible(s.Selector), chromedp.Clear(s.Selector), chromedp.SendKeys(s.Selector, s.Value)))
	case "click":
		if _, err := asked(ctx, t, chromedp.WaitVisible(s.Selector)); err != nil {
			return nil, err
		}
		return nil, once(ctx, chromedp.Click(s.Selector))
	case "text":
		return asked(ctx, t, chromedp.Text(s.Selector))
	case "at":
		return t.at(ctx, s.URL)
	case "eval":
		return asked(ctx, t, chromedp.Evaluate[any](s.Value, chromedp.EvalAwaitPromise))
	case "wait":
		return nil, t.until(ctx, s.Value)
	case "keys":
		return nil, once(ctx, chromedp.KeyEvent(s.Value))
	case "back":
		return nil, once(ctx, chromedp.NavigateBack())
	case "media":
		return t.again(ctx, func() (any, error) {
			return chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.Value}},
			})
		})
	case "resize":
		return asked(ctx, t, chromedp.EmulateViewport(s.Width, s.Height))
	case "overflow":
		// By how many pixels the page is wider than the window.
		return asked(ctx, t, chromedp.Evaluate[int]("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
	case "cookies":
		return t.again(ctx, func() (any, error) { return cookies(ctx) })
	case "console":
		return seen.all(), nil
	case "audit":
		return t.again(ctx, func() (any, error) { return audit(ctx, s.File, strings.Fields(s.Value)) })
	case "screenshot":
		png, err := t.again(ctx, func() (any, error) { return chromedp.Run(ctx, chromedp.FullScreenshot(100)) })
		if err != nil {
			return nil, err
		}
		return nil, os.WriteFile(s.File, png.([]byte), 0o600)
	default:
		return nil, errors.New("there is no such step")
	}
}

func cookies(ctx context.Context) ([]cookie, error) {
	all, err := chromedp.Call(ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		return nil, err
	}
	found := []cookie{}
	for _, c := range all.Cookies {
		found = append(found, cookie{
			Name: c.Name, Value: c.Value, Domain: c.Domain, Path: c.Path,
			Secure: c.Secure, HTTPOnly: c.HTTPOnly, SameSite: string(c.SameSite),
		})
	}
	return found, nil
}

// console collects what the browser's console shows: violations of the content security
// policy, scripts that fail, resources that do not load.
type console struct {
	mu    sync.Mutex
	lines []string
}

func (c *console) collect(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return
		}
		c.mu.Lock()
		c.lines = append(c.lines, fmt.Sprint(m))
		c.mu.Unlock()
	}
}

func (c *console) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.lines...)
}

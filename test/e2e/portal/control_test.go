package portal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/faroshq/kedge-hub/test/framework"
)

// control shows that what the tests look for is found: elements that a screen reader cannot name,
// what the Content-Security-Policy refuses, and scripts that fail.
func control(t *testing.T, alice *person) {
	alice.t = t
	if _, err := framework.Bin("axe.min.js"); err == nil {
		alice.Eval(t, "void document.querySelector('main').append(document.createElement('button'))", nil)
		require.Contains(t, strings.Join(alice.Violations(t), "\n"), "button-name")
	}
	for script, line := range map[string]string{
		"void document.body.setAttribute('style', 'color: red')":                     "Content Security Policy",
		"void setTimeout(() => { throw new Error('nobody catches this'); })":         "nobody catches this",
		"void fetch('https://elsewhere.example/').catch(() => {})":                   "elsewhere.example",
		"void (() => { try { document.body.innerHTML = '<b>' } catch { /* */ } })()": "TrustedHTML",
	} {
		alice.Eval(t, script, nil)
		framework.Eventually(t, framework.Long, func() error {
			for _, shown := range alice.Console(t) {
				if strings.Contains(shown, line) && !expected.MatchString(shown) {
					return nil
				}
			}
			return fmt.Errorf("the console does not show %q: %s", line, alice.Console(t))
		})
	}
}

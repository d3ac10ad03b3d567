package portal

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/faroshq/kedge-hub/test/framework"
)

// loginPages looks at the pages on which people sign in, which the hub renders itself.
func loginPages(t *testing.T, s *scene) {
	p := s.person(t, "device")
	p.open("/auth/token-login?return_to=/ui/")
	p.looks("login-token")
	p.enterToken("nobody", "/ui/")
	p.sees("not known here")
	p.looks("login-token-unknown")
	p.open("/auth/device/verify")
	p.looks("login-device")
	typeCode := func(code string) {
		p.Fill(t, "#user_code", code)
		p.Click(t, "#continue")
		p.Until(t, "!!document.querySelector('#login')")
	}
	typeCode("WRONG")
	p.Click(t, "#login")
	s.dex.LogInWith(t, p.Chromium, "carol")
	p.sees("no such code")
	p.looks("login-device-unknown")
	code := s.client.Do(t, framework.Call{
		Method: http.MethodPost, Path: "/auth/device", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		Body: url.Values{"client_id": {"kedge-cli"}, "description": {"a computer " + hostile}}.Encode(),
	}, http.StatusOK).Text("user_code")
	p.open("/auth/device/verify?user_code=" + code)
	p.misses(code)
	typeCode(code)
	p.sees(code)
	p.looks("login-device-code")
	p.Click(t, "#login")
	s.dex.LogInWith(t, p.Chromium, "carol")
	p.sees("a computer " + hostile)
	p.looks("login-device-confirm")
	p.Click(t, "#deny")
	p.Until(t, "!document.querySelector('#deny')")
	p.looks("login-device-denied")
	p.Open(t, framework.NewLogin().URL(s.client))
	s.dex.LogInWith(t, p.Chromium, "carol")
	p.sees("Continue only if")
	p.looks("login-computer")
}

// Package login serves /auth: the hub is the OAuth authorization server of its command line
// (RFC 6749, 7636, 8252, 8414, 8628, 8693, 7009) and a client of the operator's identity provider.
// It also logs browsers in to the portal, and has the few pages that a login needs.
//
// There are three kinds of login: authorize (command line), login (portal) and device/login (a
// code that another device shows). Each validates its request, stores the state of the login in
// an encrypted cookie, and redirects to the identity provider. callback decrypts the cookie,
// exchanges the provider's code, signs the person up and completes the login of that kind.
//
// # Decisions
//
//   - A malformed authorization request is answered with a page of the hub and is never
//     redirected: redirect_uri is not trusted before it is exactly a loopback callback.
//   - The login cookie binds a login to one browser. It is encrypted, lives ten minutes and is
//     deleted by the callback in every outcome but one: a replica that does not have its key keeps it, and asks the
//     person to try again. The hub keeps no state of a login in progress, so any replica can serve its callback.
//   - A command line gets a code after a click on a page of the hub, each time: another user of the
//     computer can listen on a loopback port, and a link can name that port. The page is not
//     skipped for a description that was confirmed before: the author of a link chooses the
//     description, too, and a browser reports a link in a mail program as an address that the person
//     entered.
//   - Between the login and the confirmation of a computer or of a device code, the provider's grant
//     travels in a hidden field of the page, encrypted and bound to the browser's cookie: it is too
//     large for a cookie, and an unconfirmed login leaves no Session in kcp. The name of the Session
//     follows from the login, so that a login is completed once on all replicas.
//   - A person types the code of a device, and it travels in the encrypted cookie: no link brings somebody to
//     the button that lets the device of a stranger in. verification_uri_complete opens the same empty page.
//   - A user code is looked at after the login, once for each login: before it, the pages would tell
//     strangers which codes there are, and each look reads kcp.
//   - Limits distinguish by proof. A request with a genuine secret, cookie or code has the limit of
//     its session. A browser in which a command line was logged in has a cookie that says no more than
//     that, and the limit of its person. Other requests have the limit of their peer, because they cost little: to begin a
//     login costs an encryption. What costs more than that, which is a request to the provider or an
//     object of a device, is shared equally by networks. No limit of all clients together is taken
//     before the provider has authenticated somebody.
//   - The page that leads to the provider has a link and no form: browsers also apply the
//     form-action of a Content-Security-Policy to the redirects after a form, and the hub does not
//     know where the provider redirects to.
//   - The link of an Invitation has its secret in the fragment, which no server and no Referer sees. Its page
//     sends the secret by POST, and it travels through the login in an encrypted cookie of its own. A person
//     who is new here signs up with it.
//   - A parameter that is given twice is refused, and unknown ones are ignored. Secrets are read
//     from bodies only, because URLs are logged.
//   - The ID token of a job has the limit of its subject if a known key has signed it, which is found
//     out before any limit: that costs less than the request itself. A flood of bad tokens from the
//     network of the job does not keep it out.
//   - A soft-deleted person can log in, because undelete needs a session. A person whose
//     registration is pending or rejected cannot.
//   - For development, /auth/token-login exchanges a static token for a session of the portal.
//     Such a session has no grant of a provider. It stores a hash that is derived from that of
//     the token, and is valid while the token file contains the token. The token stays valid
//     after the session has ended.
package login

// Package auth authenticates bearer tokens. An Authenticator verifies a token and returns
// an Identity; Union asks several in turn. Only the token counts: no other request header
// is read.
//
// ID tokens come from one OpenID Connect issuer (OIDC). Decisions:
//
//   - Claims are checked before the signature, so that a token with invalid claims never causes a
//     request to the issuer.
//   - The hub caches the issuer's keys. An unknown key ID causes at most one request in ten
//     seconds. The answer is errs.Unavailable until a request that began after the token arrived
//     has returned without the key, because the issuer may have rotated its keys.
//   - A token is identified by the hash of its signed part, and every part must have its canonical
//     encoding. One signature has several valid forms, and an ended Session must refuse them all.
//   - A person is identified by issuer and subject. The username is prefixed, and compared with the
//     User's.
//   - kcp must derive the same username, because rights are bound to it. JWTAuthenticator configures
//     kcp accordingly, and a Comparison checks it with one token of each issuer and with every
//     static token.
//     kcp 0.32 verifies no EdDSA signatures, so people of an issuer that uses them cannot use kubectl.
//
// ID tokens of jobs come from other issuers (Workloads). They authenticate nobody: /auth/token
// exchanges them for tokens of Bots.
//
// Static tokens come from a CSV file in the format of kube-apiserver's
// --token-auth-file. kcp is given the same file and must derive the same username, so the
// username in kcp is the one in the file, without a prefix. Usernames and groups that begin
// with "system:" are refused, because kcp would take them for its own. A username that nobody can
// read, such as a blank one, is refused from every source.
package auth

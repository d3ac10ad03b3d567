// Package auth authenticates bearer tokens. An Authenticator verifies a token and returns
// an Identity; Union asks several in turn. Only the token counts: no other request header
// is read.
//
// Static tokens come from a CSV file in the format of kube-apiserver's
// --token-auth-file. kcp is given the same file and must derive the same username, so the
// username in kcp is the one in the file, without a prefix. Usernames and groups that begin
// with "system:" are refused, because kcp would take them for its own.
package auth

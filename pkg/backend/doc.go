// Package backend tells whether the server of a provider answers.
//
// The URL of such a server is written by tenants, so the request must not reach what only the
// hub can reach, and must carry nothing of value:
//
//   - The name is resolved once, every address of it is checked, and the connection goes to a
//     checked address: a name that resolves differently a moment later changes nothing.
//   - Redirects are not followed, proxies of the environment are not used, and neither
//     credentials nor cookies are sent.
//   - The answer is not read beyond its header. Any status counts as an answer.
package backend

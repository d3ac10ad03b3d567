// Package backend probes whether the server of a provider answers.
//
// Tenants write the URL of such a server. The request must therefore not reach addresses that only
// the hub can reach, and must carry no credentials:
//
//   - The name is resolved once, each of its addresses is checked, and the connection goes to a
//     checked address. A name that resolves differently a moment later has no effect.
//   - The rule of the caller decides about addresses and ports. It knows the addresses of the hub
//     itself, which are resolved for every probe.
//   - Redirects are not followed, proxies of the environment are not used, and neither
//     credentials nor cookies are sent.
//   - The answer is not read beyond its header. Any status counts as an answer.
package backend

// Package portal serves the web pages of the hub below /ui/: static files that are embedded
// as they stand, and nothing that depends on the caller. The pages call /api and /auth.
//
// # Decisions
//
//   - The files are ES modules, custom elements and CSS of the web platform. No program
//     generates or bundles them, so a machine with Go alone builds and runs the portal.
//   - Every path of a page returns the same document, whose script reads the path. The URL
//     contains the Organization and the Workspace, so that two tabs can show different
//     Workspaces and a link can be shared.
//   - The Content-Security-Policy permits scripts and styles of this origin only, and requires
//     Trusted Types without permitting a policy: no script can turn text into markup.
//   - A form sends If-Match with the ETag of the object that the person saw. If somebody else
//     changed a field that is shown, the page shows both values and the person decides. If
//     only other fields changed, the page sends the form again by itself.
//   - A page that cannot reach the hub retries, and keeps the input. A POST without an answer is
//     repeated with the same Idempotency-Key.
//   - Every answer has the hash of the file as its ETag and is revalidated: a browser runs modules
//     of two releases of the hub together for one page view at most.
package portal

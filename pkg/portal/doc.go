// Package portal serves the web pages of the hub below /ui/: static files that are embedded
// as they stand, and nothing that depends on the caller. The pages call /api and /auth.
//
// # Decisions
//
//   - The files are ES modules, custom elements and CSS of the web platform. No program
//     generates or bundles them, so a machine with Go alone builds and runs the portal.
//   - A path that is a page and not a file is answered with the same document, which reads
//     the path: the Organization and the Workspace stand in the URL, so that two tabs are two
//     places and a link can be sent.
//   - The Content-Security-Policy permits scripts and styles of this origin only, and requires
//     Trusted Types without permitting a policy: no script can turn text into markup.
//   - A form sends If-Match with the object that the person saw. If somebody else changed a field
//     that is shown, the page shows both values and the person decides. If they
//     changed anything else, the page sends the form again by itself.
//   - A page that cannot reach the hub asks until it can, and keeps what was typed. A POST
//     without an answer is repeated with the same Idempotency-Key.
//   - Every answer has an ETag that is the hash of the file and is revalidated: a browser never
//     runs modules of two releases of the hub together for longer than one page view.
package portal

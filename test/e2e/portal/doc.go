// Package portal tests the portal in a real Chromium against the built hub with its kcp: what
// people do on each page, from the sign-in to the token of a bot and back to undelete.
package portal

// Package portal tests the portal in a real Chromium against the built hub with an embedded kcp:
// the actions of people on each page, from the sign-in to tokens of bots and undeletion.
package portal

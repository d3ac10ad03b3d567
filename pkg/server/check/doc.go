// Package check is the command kedge-hub check: it tells whether a hub can serve with a
// configuration, and which flag mends what is wrong. It starts nothing and writes nothing.
package check

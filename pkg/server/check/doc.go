// Package check is the command kedge-hub check: it tells whether a hub can serve with a
// configuration, and which flag mends what is wrong. With --promote it
// prints how the data of an embedded kcp is served without one. It starts nothing and writes nothing.
package check

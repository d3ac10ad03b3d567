// Package mergepatch reads the members of a JSON merge patch (RFC 7396), in
// which what is absent stays and what is null is taken away. A struct of
// json.RawMessage tells the two apart; pointers do not.
package mergepatch

// Package mergepatch reads the members of a JSON merge patch (RFC 7396), in which an absent
// member stays as it is and null removes it. Handlers decode into json.RawMessage fields,
// which tell absent and null apart; pointers do not.
package mergepatch

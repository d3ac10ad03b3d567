package tenancy

import "strings"

// botKeyPrefix begins the keys of Bots among callers. No User can have such a name.
const botKeyPrefix = "bot:"

// BotKey is the key of a Bot as a caller. account is the UID of its ServiceAccount: the
// tokens of an account that was replaced are another caller's.
func BotKey(account string) string { return botKeyPrefix + account }

// BotAccountOf returns the UID of the ServiceAccount in a key that BotKey made. ok is false
// for a User.
func BotAccountOf(key string) (account string, ok bool) { return strings.CutPrefix(key, botKeyPrefix) }

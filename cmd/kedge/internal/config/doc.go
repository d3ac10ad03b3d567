// Package config reads and writes the file in which kedge stores its logins. The file has
// mode 0600 and is replaced atomically.
package config

// Package config reads and writes the file in which kedge stores its logins, one per profile.
// The file has mode 0600 in a folder of mode 0700 and is replaced atomically. A process changes it
// under a lock and reads it again first, so that no process undoes the change of another. A file
// that cannot be parsed is renamed, and the logins in it are lost.
package config

// Package config reads and writes the file in which kedge stores its logins, one per profile.
// The file has mode 0600 in a folder of mode 0700 and is replaced atomically. A change is made
// under a lock on the file, to what the file says then, so that no process undoes the change of
// another. A file that cannot be understood is renamed, and the logins in it are lost.
package config

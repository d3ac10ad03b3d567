// Package wire converts what several resources answer with to the types of apis/rest/v1.
package wire

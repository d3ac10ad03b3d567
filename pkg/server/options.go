package server

import "github.com/faroshq/kedge-hub/pkg/server/options"

// Options are the flags of kedge-hub before validation.
type Options = options.Options

// Config is a validated configuration. Only Options.Complete and Options.CompleteWithoutServing return one.
type Config = options.Config

// NewOptions returns the default options.
func NewOptions() *Options { return options.New() }

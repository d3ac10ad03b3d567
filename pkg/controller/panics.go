package controller

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// panicError is the error of a panic, which was logged with its stack.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// contain is deferred and converts a panic to an error, so that a bug with one object does not
// stop the reconciliation of others.
func contain(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		log.From(ctx).Error("reconcile panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = &panicError{p}
	}
}

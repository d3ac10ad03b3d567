package controller

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/faroshq/kedge-hub/pkg/log"
)

// panicError stands for a panic that was logged with its stack.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// contain, deferred, turns a panic into an error: a bug that one object meets
// must not end the work on all the others.
func contain(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		log.From(ctx).Error("reconcile panicked", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = &panicError{p}
	}
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
	"github.com/faroshq/kedge-hub/pkg/client"
)

// object is an object of the API, with its JSON as the hub sent it.
type object interface{ JSON() []byte }

// as reads fields of an object that the client has decoded before.
func as[T any](o object) (fields T) {
	_ = json.Unmarshal(o.JSON(), &fields)
	return fields
}

// printList reads a list to its end and prints it, as the hub would answer it on one page. A table shows of
// each item the JSON that flat returns, with texts instead of objects; without flat, that of the hub.
func printList[T object](a *app, f format, list iter.Seq2[T, error], columns table, flat func(T) ([]byte, error)) error {
	items := []json.RawMessage{}
	for item, err := range list {
		raw := item.JSON()
		if err == nil && flat != nil && f.isTable() {
			raw, err = flat(item)
		}
		if err != nil {
			return err
		}
		items = append(items, raw)
	}
	return a.printValue(f, map[string]any{"items": items}, columns)
}

// collection is what the client has of the objects of a noun.
type collection[T object] interface {
	List(ctx context.Context, options ...client.Option) iter.Seq2[T, error]
	Get(ctx context.Context, name string, options ...client.Option) (*T, error)
	Delete(ctx context.Context, name string, options ...client.Option) (*T, error)
}

// resource are the commands of one noun, whose objects the client has as C.
type resource[T object, C collection[T]] struct {
	*app
	columns table
	output  format
	// open opens the session and returns the objects. args are the arguments before those of the
	// object.
	open func(cmd *cobra.Command, args []string) (*session, C, error)
	// check refuses an argument before anything is sent. It can be nil.
	check func(arg string) error
	// name is the name in the path of the object that an argument means; nil if that is the argument.
	name func(ctx context.Context, c C, arg string) (string, error)
	// chosen is the name of the object that a command without an argument is about. It can be nil.
	chosen func(ctx context.Context, s *session) (string, error)
	// candidates are the arguments that a shell offers for a list.
	candidates func(items []T) []cobra.Completion
	// advise adds to an error. It can be nil.
	advise func(error) error
	// describe prints more after a table. It can be nil.
	describe func(o object) error
	// warn looks at each object of a list before it is printed. It can be nil.
	warn func(T)
	// filters are the flags of a list.
	filters []*filter
}

// filter is a flag of a list, and the parameter of the request that it sets.
type filter struct{ flag, parameter, usage, value string }

// failed adds advice to an error.
func (r *resource[T, C]) failed(err error) error {
	if err != nil && r.advise != nil {
		return r.advise(err)
	}
	return err
}

// listing makes commands print the list.
func (r *resource[T, C]) listing(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		printing(r.app, cmd, &r.output, r.columns, r.failed, func(cmd *cobra.Command, args []string) (iter.Seq2[T, error], error) {
			_, c, err := r.open(cmd, args)
			var options []client.Option
			for _, f := range r.filters {
				options = append(options, client.Query(f.parameter, f.value))
			}
			if err != nil || r.warn == nil {
				return c.List(cmd.Context(), options...), err
			}
			return each(c.List(cmd.Context(), options...), r.warn), nil
		})
		for _, f := range r.filters {
			cmd.Flags().StringVar(&f.value, f.flag, "", f.usage)
		}
	}
}

// each calls f with the objects of a list as they are read.
func each[T any](list iter.Seq2[T, error], f func(T)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for o, err := range list {
			if err == nil {
				f(o)
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// lister opens the session and lists what the arguments of a command name.
type lister[T object] func(cmd *cobra.Command, args []string) (iter.Seq2[T, error], error)

// printing makes a command print a list. failed adds advice to an error.
func printing[T object](a *app, cmd *cobra.Command, output *format, columns table, failed func(error) error, list lister[T]) {
	if cmd.Args == nil {
		cmd.Args = noArgs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := list(cmd, args)
		if err != nil {
			return err
		}
		return failed(printList(a, *output, all, columns, nil))
	}
	output.flag(cmd)
}

// found opens the session and finds the object that the first argument means, or the chosen one.
func (r *resource[T, C]) found(cmd *cobra.Command, args []string) (s *session, c C, name string, err error) {
	if r.check != nil {
		if err := r.check(args[0]); err != nil {
			return nil, c, "", err
		}
	}
	if s, c, err = r.open(cmd, nil); err != nil {
		return s, c, "", err
	}
	switch {
	case len(args) == 0:
		name, err = r.chosen(cmd.Context(), s)
	case r.name == nil:
		name = args[0]
	default:
		name, err = r.name(cmd.Context(), c, args[0])
	}
	return s, c, name, r.failed(err)
}

// about makes a command send a request about the object that its first argument means, and print
// the answer.
func (r *resource[T, C]) about(cmd *cobra.Command, columns table,
	send func(ctx context.Context, s *session, c C, name string, args []string) (object, error),
) *cobra.Command {
	cmd.ValidArgsFunction = r.complete
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, c, name, err := r.found(cmd, args)
		if err != nil {
			return err
		}
		o, err := send(cmd.Context(), s, c, name, args)
		if err != nil {
			return r.failed(err)
		}
		return r.show(o, columns)
	}
	r.output.flag(cmd)
	return cmd
}

// show prints an object.
func (r *resource[T, C]) show(o object, columns table) error {
	err := r.print(r.output, o.JSON(), columns)
	if err != nil || r.describe == nil || !r.output.isTable() {
		return err
	}
	return r.describe(o)
}

// getting makes a command print one object.
func (r *resource[T, C]) getting(cmd *cobra.Command) *cobra.Command {
	return r.about(cmd, r.columns, func(ctx context.Context, _ *session, c C, name string, _ []string) (object, error) {
		o, err := c.Get(ctx, name)
		return *orNone(o), err
	})
}

// orNone replaces nil, which comes with an error.
func orNone[T any](o *T) *T {
	if o == nil {
		return new(T)
	}
	return o
}

// deleting makes a command delete an object, for good. It asks the question first, and says then
// that it is done.
func (r *resource[T, C]) deleting(cmd *cobra.Command, question, done string) *cobra.Command {
	ask := &consent{app: r.app}
	cmd.ValidArgsFunction = r.complete
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		_, c, name, err := r.found(cmd, args)
		if err != nil {
			return err
		}
		if err := ask.agreed(cmd.Context(), fmt.Sprintf(question, args[0])); err != nil {
			return err
		}
		gone, err := c.Delete(cmd.Context(), name, client.Representation())
		if err != nil {
			return r.failed(err)
		}
		fmt.Fprintf(r.Err, done, args[0])
		// What gives no right has no receipt.
		r.receipt(new(as[rest.Receipt](*gone)))
		return nil
	}
	return ask.first(cmd)
}

// complete completes the first argument.
func (r *resource[T, C]) complete(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return r.offer(cmd, func(ctx context.Context) ([]cobra.Completion, error) {
		cmd.SetContext(ctx)
		_, c, err := r.open(cmd, nil)
		if err != nil {
			return nil, err
		}
		items, err := client.Collect(c.List(ctx))
		if err != nil {
			return nil, err
		}
		return r.candidates(items), nil
	})
}

// byName offers objects that people know by a name.
func byName[T any](name func(T) (name, description string)) func([]T) []cobra.Completion {
	return func(items []T) []cobra.Completion {
		var found []cobra.Completion
		for _, item := range items {
			found = append(found, cobra.CompletionWithDesc(name(item)))
		}
		return found
	}
}

// is reports whether the hub refused a request with an HTTP status.
func is(err error, code int) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Code() == code
}

// notFoundAdvice adds a command to a NotFound error.
func notFoundAdvice(err error, text string) error {
	if is(err, http.StatusNotFound) {
		return fmt.Errorf("%w; to see %s", err, text)
	}
	return err
}

// unchanged adds no advice to an error.
func unchanged(err error) error { return err }

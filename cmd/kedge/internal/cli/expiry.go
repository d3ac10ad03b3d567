package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	rest "github.com/faroshq/kedge-hub/apis/rest/v1"
)

// soonWithin is the time before an end from which on it is shown in words.
const soonWithin = 7 * 24 * time.Hour

// endColumn returns the column of an end. Its cells say what is soon in words.
func endColumn() [3]string { return [3]string{"END", "expiresAt"} }

// endIn returns the text of an end.
func endIn(at string, now time.Time) string {
	end, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	switch left := end.Sub(now); {
	case left <= 0:
		return "ended"
	case left < soonWithin:
		return "ends in " + inWords(left)
	}
	return at
}

// inWords returns the text of a time that is left.
func inWords(left time.Duration) string {
	switch {
	case left >= 48*time.Hour:
		return fmt.Sprintf("%d days", left/(24*time.Hour))
	case left >= 2*time.Hour:
		return fmt.Sprintf("%d hours", left/time.Hour)
	}
	return fmt.Sprintf("%d min", max(1, left/time.Minute))
}

// never is the end of what does not end by time.
const never = "never"

// parseEnd reads an end: a time, a duration from now, or never, which is null.
func parseEnd(text string, now time.Time) (rest.Field[string], error) {
	if text == never {
		return rest.Null[string](), nil
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return rest.Set(text), nil
	}
	var in life
	if err := in.Set(text); err != nil {
		return nil, errors.New("give a time such as 2030-01-31T18:00:00Z, a duration such as 30d or 12h, or never")
	}
	return rest.Set(now.Add(time.Duration(in)).UTC().Format(time.RFC3339)), nil
}

func (m *members) setExpiryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set-expiry USER WHEN", Short: "Have a membership end by time, or not any more", ValidArgsFunction: m.complete,
		Long: "Set the end of a membership in the chosen " + m.noun + `: a time, a duration from now that is at
least a minute, or never. From then on it gives nothing, and the hub removes it.`,
		Example: "  " + m.command + " set-expiry bob 30d\n  " + m.command + " set-expiry bob 2030-01-31T18:00:00Z\n  " +
			m.command + " set-expiry bob never",
		Args: memberAnd("end", "when the membership ends", func(end string) error {
			_, err := parseEnd(end, time.Now())
			return err
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, t, err := m.named(cmd, args[0])
			if err != nil {
				return err
			}
			end, err := parseEnd(args[1], time.Now())
			if err != nil {
				return err
			}
			changed, err := all.Update(cmd.Context(), args[0], rest.UpdateWorkspaceMemberRequest{ExpiresAt: end})
			if err != nil {
				return m.unknown(explained(err, args[0]+" is", t.Org))
			}
			return m.show(changed, m.columns)
		},
	}
	m.output.flag(cmd)
	return cmd
}
